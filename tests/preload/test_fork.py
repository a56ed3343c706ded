# SPDX-License-Identifier: Apache-2.0
"""Forks: a child of a process with a live device stays on the CPU, any other may start its own."""
import pytest
from support import check_good, program, run_preloaded, sanitizer


def fork(what, **options):
    """Runs fork.c; returns the Result, which is good."""
    return check_good(run_preloaded([program("fork"), what], timeout=30, **options), "")


def per_process(result):
    """Returns (calls, device started, device state) of each process, parents first."""
    rows = sorted(result.report["processes"], key=lambda row: row["started_unix_s"])
    return [(row["calls"], row["device"] != "", row["device_state"]) for row in rows]


def test_before_the_device_is_used():
    """Parent and child each have a device."""
    result = fork("before")
    assert result.reasons() == {"R002": 5}, result
    assert sorted(per_process(result)) == [(2, True, None), (3, True, None)]


@pytest.mark.parametrize("how, cpu, gpu", [
    ("after", 6, 4), ("_Fork", 3, 3), ("clone", 3, 3), ("twice", 2, 2), ("thread", 2, 3)])
def test_after_the_device_was_used(how, cpu, gpu):
    """The child computes on the CPU and says why; the parent goes on on the device."""
    result = fork(how)
    assert result.reasons() == {"R002": gpu, "L806": cpu}, result
    parent, *children = per_process(result)
    assert parent == (gpu, True, None)
    assert children and all(row[1:] == (False, "L806") for row in children), per_process(result)
    assert sum(row[0] for row in children) == cpu
    assert all("forked" in row["flags"] for row in result.report["processes"][1:])


def test_after_with_vfork_and_exec():
    """A new program has nothing to do with the device of its parent."""
    result = fork("vfork")
    assert result.reasons() == {"R002": 3}, result
    assert [row[1] for row in per_process(result)] == [True, True]


def test_generations():
    """Only the grandchild descends from a process that used the device before."""
    result = fork("generations")
    assert result.reasons() == {"R002": 3, "L806": 2}, result


@pytest.mark.skipif(sanitizer() == "tsan",
                    reason="TSan takes the parent's threads for the child's own")
@pytest.mark.parametrize("how", ["starting", "starting _Fork"])
def test_while_the_device_is_starting(how):
    """The child does not wait for a start-up that goes on elsewhere."""
    result = fork(how, env={"FAKECUDA_START_MS": "700"})
    assert result.reasons() == {"R002": 3, "L806": 2}, result


@pytest.mark.skipif(sanitizer() is not None,
                    reason="a sanitizer's allocator stays locked in a child forked meanwhile")
def test_while_other_threads_compute():
    """Nothing that they hold at that moment stops a child."""
    result = fork("running")
    assert result.reasons("cpu") == {"L806": 20}, result
    assert result.gpu_calls() > 1


@pytest.mark.parametrize("how", ["small", "small _Fork"])
def test_small_calls_belong_to_the_process_that_made_them(how):
    """What the parent had counted before the fork is not counted again by the child."""
    result = fork(how, mode="auto", fakecuda=False)
    # _Fork runs no handler: what a child counts before its first decided call is not known to be
    # its own, and is left out.
    lost = 0 if how == "small" else 2
    assert result.reasons() == {"L801": 2, "S101": 25 - lost}, result
    assert sorted(row["calls"] for row in result.report["processes"]) == [10 - lost, 17]
