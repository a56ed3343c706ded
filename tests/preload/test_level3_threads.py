# SPDX-License-Identifier: Apache-2.0
"""Level-3 routines from many threads: several at once on the device, some failing, beside forks."""
import pytest
from support import LONG, check_good, program, run_plain, run_preloaded, sanitizer

CALLS = 8 * 6 * 9 # threads, rounds, families
FALLBACKS = {"E901", "E902", "E906", "M401", "M402"}


def threads(what, *arguments, **options):
    """Runs level3_threads.c; returns the Result, which is good."""
    return check_good(run_preloaded([program("level3_threads"), what, *arguments], timeout=300,
                                    **options))


@pytest.mark.parametrize("mode, code", [("force", "R002"), ("verify", "P707")])
def test_all_families_at_once(mode, code):
    """Each result is right, each call is recorded, nothing is left on the device (C63)."""
    for _ in range(10 if LONG else 2):
        result = threads("families", mode=mode)
        assert result.reasons() == {code: CALLS}, result
        assert result.live() == {}, result.counts


def test_on_the_cpu():
    """The same without a device."""
    assert threads("families", fakecuda=False).reasons() == {"L801": CALLS}


@pytest.mark.parametrize("place", [
    "cublasDsymm_v2:2", "cublasZtrsm_v2:1:late", "cuMemcpy2DAsync_v2:300", "cuStreamCreate:3",
    "cuMemcpy2DAsync_v2:200:late", "cuMemAllocFromPoolAsync:100", "cuStreamSynchronize:60:late",
    "cublasCreate_v2:2+", "cuMemcpyDtoHAsync_v2:20+", "cuMemAllocFromPoolAsync:150+"])
def test_failures(place):
    """A device that fails one thread, or all of them half-way."""
    result = threads("families", env={"FAKECUDA_FAIL_AT": place})
    assert result.counts["failures"] > 0 and result.counts["settings.bad"] == 0, result.counts
    assert result.gpu_calls() + result.cpu_calls() == CALLS, result
    assert 0 < result.cpu_calls() and set(result.reasons("cpu")) <= FALLBACKS, result


@pytest.mark.skipif(sanitizer() == "tsan", reason="TSan's dlopen waits in a child for a lock that "
                    "a thread of the parent held at the fork")
@pytest.mark.parametrize("place", [None, "cuMemcpy2DAsync_v2:100:late", "cublasCtrmm_v2:2+"])
def test_forks(place):
    """Children stay on the CPU, whatever the parent's threads were doing at the fork."""
    result = threads("forks", env={"FAKECUDA_FAIL_AT": place})
    assert result.gpu_calls() + result.cpu_calls() == CALLS + 1 + 6 * 9, result
    assert result.reasons()["L806"] == 6 * 9, result
    assert set(result.reasons("cpu")) <= FALLBACKS | {"L806"}, result
    if place is None:
        assert result.reasons("gpu") == {"R002": CALLS + 1}, result


def test_flood_is_counted():
    """Small products are counted and passed on; nobody asks for a device (C67)."""
    result = threads("flood", "30000", mode="auto")
    assert result.reasons() == {"S101": 120000} and result.counts == {}, result


@pytest.mark.skipif(sanitizer() is not None, reason="a sanitizer takes longer than any product")
def test_flood_takes_no_longer():
    """At most 1.2 times as long as without the preload (C67); the best of several runs."""
    command = [program("level3_threads"), "flood", "20000"]
    for _ in range(4):
        plain, preloaded = [], []
        for _ in range(5):
            plain.append(float(check_good(run_plain(command)).stdout))
            result = check_good(run_preloaded(command, mode="auto"))
            # Too few for a file: nothing was opened, mapped or started.
            assert result.counts == {} and result.report["processes"] == [], result
            preloaded.append(float(result.stdout))
        if min(preloaded) <= 1.2 * min(plain):
            return
    assert min(preloaded) <= 1.2 * min(plain), (plain, preloaded)
