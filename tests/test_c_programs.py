# SPDX-License-Identifier: Apache-2.0
"""Each C test program as one test case: unit tests, and the calls that cross the recording BLAS."""
import glob
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import (BUILD, LIBRARY, base_environment, facts,  # noqa: E402
                     run_preloaded, sanitizer)

UNIT_TESTS = sorted(os.path.splitext(os.path.basename(path))[0]
                    for path in glob.glob(os.path.join(HERE, "unit", "test_*.c")))


@pytest.mark.parametrize("name", UNIT_TESTS)
def test_unit(name, tmp_path):
    """A program of tests/unit."""
    program = os.path.join(BUILD, "tests", "unit", name)
    assert os.path.exists(program), f"{program} is missing: run make unit-tests"
    environment = dict(base_environment(), HOME=str(tmp_path), ASAN_OPTIONS="")
    done = subprocess.run([program], env=environment, cwd=os.path.dirname(HERE), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    skipped = re.findall(r"\[  SKIPPED \] (\S+)", done.stdout)
    for test in sorted(set(skipped)):
        print(f"skipped in {name}: {test}")


def caller(width, kinds):
    """Returns the command that calls every exported name of the recorder of that width."""
    program = os.path.join(BUILD, "tests", "abi", f"caller{width}")
    assert os.path.exists(program), f"{program} is missing: run make abi-tests"
    return [program, kinds]


def number_of_calls(result):
    """Returns how many calls a caller made, and how many of them were large, once it is clear that
    it is content."""
    assert result.status == 0 and result.stderr == "", result
    found = re.fullmatch(r"(skipped: .*\n)?ok (\d+) calls of (\d+) names, (\d+) large\n", result.stdout)
    assert found, result
    if found.group(1):
        print(found.group(1))
    assert int(found.group(3)) == len(facts().entries)
    return int(found.group(2)), int(found.group(4))


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("mode", ["auto", "observe"])
def test_what_arrives_without_a_device(width, mode):
    """Every argument of every exported name arrives bit for bit, small calls and decided ones."""
    result = run_preloaded(caller(width, "all"), mode=mode, fakecuda=False,
                           env={"GPUSHIM_MIN_TIME": "0.1us"})
    calls, large = number_of_calls(result)
    assert result.cpu_calls() == calls and result.gpu_calls() == 0, result
    reasons = result.reasons()
    # Decided, illegal, small and empty ones: each way through the stub has been taken.
    assert reasons.get("S101", 0) > 0 and reasons.get("S103", 0) > 0, reasons
    if mode == "auto":
        # Two kinds of large calls, and a third where sizes have 64 bits; with lengths and without.
        assert large == 2 * len(facts().entries) * (3 if width == 8 else 2)
        assert reasons["L801"] == large, reasons
    else:
        assert {"P705", "S101", "S103"} == set(reasons), reasons


@pytest.mark.parametrize("width", [4, 8])
def test_what_arrives_switched_off(width):
    """GPUSHIM_MODE=off is as good as no preload."""
    result = run_preloaded(caller(width, "all"), mode="off")
    number_of_calls(result)
    assert result.report["processes"] == []


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("mode", ["force", "verify"])
def test_what_arrives_of_calls_that_no_device_may_take(width, mode):
    """Illegal and empty calls reach the CPU library unchanged where all others would not."""
    result = run_preloaded(caller(width, "forwarded"), mode=mode)
    calls, _ = number_of_calls(result)
    assert result.gpu_calls() == 0 and result.cpu_calls() == calls, result
    # A negative size makes the work negative, which is counted with the small calls.
    assert set(result.reasons()) == {"S101", "S103", "U303", "U307"}, result
    assert result.reasons()["S101"] * 4 <= result.reasons()["U307"], result
    # None of them needs a device, so none was started.
    assert result.counts == {}, result.counts


def test_exported_names():
    """The library defines the names of the table for others, and nothing else."""
    listing = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], text=True,
                             stdout=subprocess.PIPE, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    if sanitizer():
        exported = {name for name in exported if not name.startswith(("__odr_asan", "__asan"))}
    assert exported == {row["name"] for row in facts().entries}


@pytest.mark.skipif(sanitizer() is not None, reason="a sanitizer build needs its run-time library")
def test_needed_libraries():
    """libc and libm only, and no fortified names that another libc lacks."""
    dynamic = subprocess.run(["readelf", "-dW", LIBRARY], text=True, stdout=subprocess.PIPE,
                             check=True).stdout
    assert set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) <= {"libc.so.6", "libm.so.6",
                                                            "ld-linux-x86-64.so.2"}
    undefined = subprocess.run(["nm", "-D", "--undefined-only", LIBRARY], text=True,
                               stdout=subprocess.PIPE, check=True).stdout
    assert not re.findall(r"__\w+_chk\b", undefined)
