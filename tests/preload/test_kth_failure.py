# SPDX-License-Identifier: Apache-2.0
"""Every CUDA call fails once, at once and late, and from each call on all of them do: the results
stay right, nothing is printed, and the audit says why the CPU had to step in."""
import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import pytest
from support import LONG, WORKERS, program, run_preloaded

CALLS = 6
COMMAND = ["gemm_driver", "--few"]
# What may be the reason of a call that the device gave up, or of one after it.
FALLBACKS = {"E901", "E902", "E906", "M401", "M402", "L801", "L802", "L803", "L805", "L809"}
RELEASES = ("cuMemFreeAsync", "cuMemPoolTrimTo")
STICKY, OUT_OF_MEMORY = 719, 2


@lru_cache(maxsize=None)
def undisturbed():
    """Returns {entry point: calls} of a run in which nothing fails."""
    result = run_preloaded([program(COMMAND[0]), *COMMAND[1:]])
    assert result.status == 0 and result.gpu_calls() == CALLS, result
    assert result.counts["failures"] == 0 and result.counts["settings.bad"] == 0, result.counts
    assert result.live() == {}, result.counts
    return {name[len("call."):]: count for name, count in result.counts.items()
            if name.startswith("call.") and count > 0}


def single_failures(suffix="", names=None):
    """Returns the FAKECUDA_FAIL_AT of every call there is, one each."""
    return [f"{name}:{k}{suffix}" for name, count in undisturbed().items()
            for k in range(1, count + 1) if names is None or name in names]


def failures_from(suffix=""):
    """Returns the FAKECUDA_FAIL_AT for all calls from the k-th on, for every k."""
    return [f"{k}+{suffix}" for k in range(1, sum(undisturbed().values()) + 1)]


def objections(place):
    """Runs the program with that failure; returns what is wrong with the outcome, or None."""
    settings = {"FAKECUDA_FAIL_AT": place}
    result = run_preloaded([program(COMMAND[0]), *COMMAND[1:]], env=settings)
    on_cpu = result.reasons("cpu")
    wrong = []
    if result.status != 0 or result.stdout != f"ok {CALLS} cases\n" or result.stderr != "":
        wrong.append("the outcome of the program")
    if result.counts.get("failures", 0) < 1 or result.counts["settings.bad"] != 0:
        wrong.append("nothing was made to fail")
    if result.gpu_calls() + result.cpu_calls() != CALLS:
        wrong.append("a call is missing in the report")
    if sum(on_cpu.values()) != result.cpu_calls() or not set(on_cpu) <= FALLBACKS:
        wrong.append("the reasons")
    if "+" not in place and "status" not in place and set(on_cpu) & {"E902", "E906"}:
        wrong.append("one error that can be survived put the device out of use")
    # An entry point that releases memory and fails has not released it.
    may_leak = "+" in place or place.startswith(RELEASES) or f"status={STICKY}" in place
    if not may_leak and result.live() != {}:
        wrong.append(f"leak {result.live()}")
    return f"{place}: {', '.join(wrong)}\n{result}" if wrong else None


def check_all(places):
    """Fails with the first few of the places whose outcome is wrong."""
    with ThreadPoolExecutor(WORKERS) as pool:
        wrong = [text for text in pool.map(objections, places) if text]
    assert not wrong, f"{len(wrong)} of {len(places)}:\n" + "\n".join(wrong[:5])


def test_each_call_fails():
    """One call of one entry point returns an error at once."""
    check_all(single_failures())


def test_each_call_fails_late():
    """Its work fails half-done, and the next synchronisation reports it."""
    check_all(single_failures(":late"))


@pytest.mark.parametrize("suffix", ["", ":late"])
def test_all_calls_fail_from_one_on(suffix):
    """A device that is gone for good."""
    places = failures_from(suffix)
    check_all(places if LONG or not suffix else places[::4])


@pytest.mark.parametrize("status", [STICKY, OUT_OF_MEMORY])
@pytest.mark.parametrize("when", ["", ":late"])
def test_each_call_fails_with(status, when):
    """Errors that are treated apart: a lost context, a full device."""
    names = [name for name in undisturbed() if name.startswith("cu") and "cublas" not in name]
    places = single_failures(f"{when}:status={status}", names)
    check_all(places if LONG else list(itertools.islice(places, status % 3, None, 3)))


def test_failures_that_meet_the_results():
    """The copy back fails late while the program goes on: C, which is also an input, survives."""
    places = [place for name in ("cuMemcpyDtoHAsync_v2", "cuMemcpy2DAsync_v2")
              for place in single_failures(":late", [name])]
    assert len(places) >= CALLS
    for place in places:
        assert objections(place) is None


@pytest.mark.skipif(not LONG, reason="GPUSHIM_LONG=1: 64 failures in each part of the sweep")
@pytest.mark.parametrize("when", ["", ":late"])
def test_failures_in_the_sweep(when, tmp_path):
    """Failures at places all over the sweep of arguments."""
    def sweep(k):
        result = run_preloaded([program("gemm_driver"), "--every", "97"], timeout=120,
                               env={"FAKECUDA_FAIL_AT": f"{k}{when}", "GPUSHIM_ERROR_LIMIT": "0"})
        assert result.status == 0 and result.stderr == "", f"{k}{when}\n{result}"
        assert set(result.reasons("cpu")) <= FALLBACKS | {"S103", "U305"}, f"{k}{when}\n{result}"
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(sweep, range(120, 120 + 64 * 83, 83)))
