# SPDX-License-Identifier: Apache-2.0
"""The level-3 routines other than gemm: every combination of arguments on the device double, on
several CPU libraries and in both widths."""
import json
import os
import re

import pytest
from support import BUILD, LONG, check_good, program, run_plain, run_preloaded

DRIVERS = ["level3_driver", "level3_driver-netlib", "level3_driver64", "level3_driver-own",
           "level3_driver-own64"]
# All of it takes minutes a time. Primes, so that each argument keeps taking every value.
SHARE = ["--every", "1" if LONG else "31"]
SMALL_SHARE = ["--every", "11" if LONG else "97"]


def drive(driver, tmp_path, *options, mode="force", **more):
    """Runs a driver; returns its Result and its own account of its calls, by routine."""
    tally = os.path.join(tmp_path, "tally")
    result = run_preloaded([program(driver), "--tally", tally, *options], mode=mode, timeout=900,
                           **more)
    check_good(result)
    assert re.search(r"^ok \d+ cases\n$", result.stdout, re.MULTILINE), result
    with open(tally, encoding="utf-8") as file:
        return result, json.load(file)


def total(tally, fate):
    """Returns how many calls of all routines have that fate."""
    return sum(row[fate] for row in tally.values())


def by_code(result, where=None):
    """Returns {reason: calls} without what netlib's CBLAS calls inside its own calls."""
    reasons = result.reasons(where)
    reasons.pop("A602", None)
    return reasons


def without_zeros(counts):
    """Returns the counts that are not 0."""
    return {code: count for code, count in counts.items() if count > 0}


@pytest.mark.parametrize("driver", DRIVERS)
def test_on_the_device(driver, tmp_path):
    """In force mode exactly the calls that may run on the device do, and each result is right."""
    result, tally = drive(driver, tmp_path, *SHARE)
    for routine, fates in tally.items():
        assert fates["device"] >= 8, (routine, fates)
        assert result.gpu_calls(routine) == fates["device"], (routine, result)
        assert result.cpu_calls(routine) == sum(fates.values()) - fates["device"], (routine, result)
    assert result.reasons("gpu") == {"R002": total(tally, "device")}, result
    assert by_code(result, "cpu") == without_zeros(
        {code: total(tally, code) for code in ("S103", "U305", "U307")}), result
    assert result.live() == {}, result.counts


@pytest.mark.parametrize("driver", DRIVERS)
def test_verified(driver, tmp_path):
    """In verify mode the CPU's results stay, and no difference beyond rounding is reported."""
    result, tally = drive(driver, tmp_path, *SHARE, mode="verify")
    codes = {code: total(tally, code) for code in ("S103", "U305", "U307")}
    assert by_code(result) == without_zeros({"P707": total(tally, "device"), **codes}), result


@pytest.mark.parametrize("mode", ["auto", "observe", "off", "force"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_on_the_cpu(driver, mode, tmp_path):
    """Where the CPU computes, nothing of what the caller passes changes on the way."""
    result, tally = drive(driver, tmp_path, *SMALL_SHARE, mode=mode, fakecuda=False)
    assert result.gpu_calls() == 0, result
    if mode == "force": # each call is decided, and there is no device
        assert result.reasons()["L801"] == total(tally, "device") > 400, result


@pytest.mark.parametrize("driver", ["level3_driver", "level3_driver-own"])
def test_without_the_64_bit_interface(driver, tmp_path):
    """CUDA 12's names, from a folder of their own."""
    result, tally = drive(driver, tmp_path, *SMALL_SHARE,
                          env={"GPUSHIM_CUDA_PATH": os.path.join(BUILD, "fakecuda12")})
    assert result.reasons("gpu") == {"R002": total(tally, "device")}, result


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("mode, fakecuda", [("force", True), ("verify", True), ("auto", False)])
def test_illegal_calls(driver, mode, fakecuda, tmp_path):
    """What the library says of them is what it says without us; C stays, the device is not asked
    (C19)."""
    plain = run_plain([program(driver), "--illegal"])
    result, tally = drive(driver, tmp_path, "--illegal", mode=mode, fakecuda=fakecuda)
    assert result.stdout == plain.stdout, f"{plain}\n{result}"
    assert result.gpu_calls() == 0 and result.counts == {}, result
    calls = sum(total(tally, fate) for fate in ("U307", "S101"))
    if "own" not in driver:
        assert calls > 200 and plain.stdout.count("[") >= calls * .98, plain
    if mode != "auto":
        assert by_code(result) == without_zeros(
            {code: total(tally, code) for code in ("U307", "S101")}), result
