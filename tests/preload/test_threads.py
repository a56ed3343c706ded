# SPDX-License-Identifier: Apache-2.0
"""Many threads at once: each result right, each call counted."""
import signal

import pytest
from support import LONG, check_good, program, run_preloaded


def threads(what, **options):
    """Runs threads.c; returns the Result, which is good."""
    return check_good(run_preloaded([program("threads"), what], timeout=120, **options), "")


def test_threads_that_come_and_go():
    """The counts of 1000 short threads are exact."""
    result = threads("come and go", mode="auto", fakecuda=False)
    assert result.reasons() == {"L801": 1, "S101": 17000}, result


def test_threads_that_have_gone_before_a_kill():
    """What ended threads have counted is in the file."""
    result = run_preloaded([program("threads"), "killed"], mode="auto", fakecuda=False)
    assert result.status == -signal.SIGKILL and result.stderr == "", result
    assert result.reasons() == {"L801": 1, "S101": 17000}, result


@pytest.mark.parametrize("what, calls", [("products", 240), ("crowd", 1200)])
def test_products_of_all_threads(what, calls):
    """Eight threads, and more than there are streams; each product has its own size."""
    for _ in range(10 if LONG else 2):
        result = threads(what)
        assert result.reasons() == {"R002": calls}, result
        assert result.live() == {}, result.counts


def test_all_threads_start_the_device():
    """Whoever is first starts it, once; the others wait and use it."""
    for _ in range(50 if LONG else 10):
        result = threads("first", env={"FAKECUDA_START_MS": "20"})
        assert result.reasons() == {"R002": 8}, result
        assert result.counts["call.cuDevicePrimaryCtxRetain"] == 1, result.counts
        assert result.counts["call.cuInit"] == 1, result.counts


@pytest.mark.parametrize("mode", ["force", "verify"])
def test_bands_of_one_matrix(mode):
    """What lies between the rows of a result belongs to other threads (C52)."""
    result = threads("bands", mode=mode)
    assert result.reasons() == {"R002" if mode == "force" else "P707": 320}, result


def test_inputs_that_may_not_be_written():
    """Read-only pages, a read-only file and the stack (C53)."""
    assert threads("read only").reasons() == {"R002": 1}


def test_arrays_that_vanish_after_the_call():
    """A result is final when the call returns (C99)."""
    assert threads("gone").reasons() == {"R002": 200}


@pytest.mark.parametrize("place", ["cuMemcpyDtoHAsync_v2:40+", "cublasDgemm_v2:30",
                                   "cuStreamSynchronize:55:late", "cuStreamCreate:4",
                                   "cublasCreate_v2:3+"])
def test_failures_among_threads(place):
    """A device that fails one thread, or all, half-way."""
    result = threads("products", env={"FAKECUDA_FAIL_AT": place})
    assert result.gpu_calls() + result.cpu_calls() == 240, result
    assert 0 < result.cpu_calls() and set(result.reasons("cpu")) <= {"E901", "E902", "E906"}
