# SPDX-License-Identifier: Apache-2.0
"""Every combination of arguments, on the device double, on two CPU libraries and two widths."""
import json
import os
import re

import pytest
from support import LONG, check_good, program, run_preloaded

DRIVERS = ["gemm_driver", "gemm_driver-netlib", "gemm_driver64"]
# All of it takes 12 s a time. Prime, so that each argument keeps taking every value.
SHARE = [] if LONG else ["--every", "7"]


def drive(driver, tmp_path, *options, mode="force", **more):
    """Runs a driver; returns its Result, its number of cases and its own account of them."""
    tally = os.path.join(tmp_path, "tally")
    result = run_preloaded([program(driver), "--tally", tally, *options], mode=mode, timeout=300,
                           **more)
    check_good(result)
    cases = re.fullmatch(r"ok (\d+) cases\n", result.stdout)
    assert cases, result
    with open(tally, encoding="utf-8") as file:
        return result, int(cases.group(1)), json.load(file)


def expected_calls(tally, driver, fate):
    """Returns how many calls must show under a fate: those of the driver's own, and those that
    netlib's CBLAS makes when the driver calls it directly, past the preload."""
    return tally[fate] + (tally["direct"][fate] if driver == "gemm_driver-netlib" else 0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_on_the_device(driver, tmp_path):
    """In force mode exactly the calls that may run on the device do, and each result is right."""
    result, cases, tally = drive(driver, tmp_path, *SHARE)
    on_device = expected_calls(tally, driver, "device")
    assert on_device > 4000 and tally["device"] + tally["S103"] + tally["U305"] == cases
    assert result.reasons("gpu") == {"R002": on_device}, result
    reasons = result.reasons("cpu")
    reasons.pop("A602", None)  # netlib's CBLAS calls its Fortran names
    assert reasons == {"S103": tally["S103"],
                       "U305": expected_calls(tally, driver, "U305")}, result
    assert result.live() == {}, result


@pytest.mark.parametrize("driver", DRIVERS)
def test_verified(driver, tmp_path):
    """In verify mode the CPU's results stay, and no difference beyond rounding is reported."""
    result, _, tally = drive(driver, tmp_path, *SHARE, mode="verify")
    reasons = result.reasons()
    reasons.pop("A602", None)
    assert reasons == {"P707": expected_calls(tally, driver, "device"), "S103": tally["S103"],
                       "U305": expected_calls(tally, driver, "U305")}, result


@pytest.mark.parametrize("mode", ["auto", "observe", "off"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_on_the_cpu(driver, mode, tmp_path):
    """Where the CPU computes, nothing of what the caller passes changes on the way."""
    result, _, _ = drive(driver, tmp_path, "--every", "3" if LONG else "31", mode=mode)
    assert result.gpu_calls() == 0, result


def test_without_the_64_bit_interface(tmp_path):
    """CUDA 12's names, from a folder of their own."""
    from support import BUILD
    folder = os.path.join(BUILD, "fakecuda12")
    result, _, tally = drive("gemm_driver", tmp_path, "--every", "31",
                             env={"GPUSHIM_CUDA_PATH": folder})
    assert result.reasons("gpu") == {"R002": tally["device"]}, result
    libraries = result.report["processes"][0]["cuda_libraries"]
    assert any(path.endswith("/libcublas.so.12") for path in libraries), libraries
