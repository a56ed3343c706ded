# SPDX-License-Identifier: Apache-2.0
"""No usable device, a full one, one that other processes fill: the CPU, a code, no storm of
attempts (C57, C74, C76)."""
import os

import pytest
from support import FAKECUDA, check_good, program, run_preloaded

# What the doubles return from cuInit, and what that means.
INIT_STATUS = {100: "L802", 101: "L802", 34: "L801", 803: "L803", 804: "L803", 3: "L809",
               35: "L809", 46: "L809", 304: "L809", 800: "L809", 802: "L809", 999: "L809", 2: "L809"}


def many(*arguments, **options):
    """Runs many.c; returns the Result, which is good."""
    return check_good(run_preloaded([program("many"), *map(str, arguments)], timeout=60,
                                    **options), "")


def state(result):
    """Returns the device state of the only process."""
    process, = result.report["processes"]
    return process["device_state"]


@pytest.mark.parametrize("status", sorted(INIT_STATUS))
def test_driver_that_does_not_start(status):
    """Each of its reasons has a code, and it is asked once."""
    result = many(100, env={"FAKECUDA_INIT_STATUS": str(status)})
    assert result.reasons() == {INIT_STATUS[status]: 100}, result
    assert state(result) == INIT_STATUS[status]
    assert result.counts["call.cuInit"] == 1, result.counts
    event = [event for event in result.report["events"] if event["event"] == "device"]
    assert event and event[0]["detail"] == status, event


@pytest.mark.parametrize("visible", ["", "-1", "99", "MIG-00000000-0000-0000-0000-000000000000",
                                     "GPU-bad", "NoDevFiles"])
def test_visible_devices(visible):
    """Lists that name no device, in every form there is."""
    result = many(100, env={"CUDA_VISIBLE_DEVICES": visible})
    assert result.reasons() == {"L802": 100}, result
    assert result.counts["call.cuInit"] == 1, result.counts


@pytest.mark.parametrize("visible", ["0,0", "1"])
def test_visible_devices_of_another_machine(visible):
    """A list that the driver itself objects to."""
    assert many(20, env={"CUDA_VISIBLE_DEVICES": visible}).reasons() == {"L802": 20}


@pytest.mark.parametrize("settings, code", [
    ({"FAKECUDA_DEVICES": "0"}, "L802"), ({"GPUSHIM_DEVICE": "none"}, "L802"),
    ({"GPUSHIM_DEVICE": "7"}, "L802"), ({"GPUSHIM_CUDA_PATH": "/nonexistent"}, "L801")])
@pytest.mark.parametrize("mode", ["force", "verify"])
def test_no_device(settings, code, mode):
    """No device, none wanted, no driver."""
    result = many(100, mode=mode, env=settings)
    assert result.reasons() == {code: 100}, result


def test_no_device_in_auto_mode():
    """It takes no start-up to find that there is no driver."""
    result = many(3, 400, mode="auto", fakecuda=False)
    assert result.reasons() == {"L801": 3}, result


def test_the_driver_alone(tmp_path):
    """A driver without cuBLAS."""
    os.symlink(os.path.join(FAKECUDA, "libcuda.so.1"), tmp_path / "libcuda.so.1")
    result = many(100, env={"GPUSHIM_CUDA_PATH": str(tmp_path)})
    assert result.reasons() == {"L804": 100}, result
    assert result.counts == {} or result.counts["call.cuInit"] <= 1, result.counts


def test_a_library_that_lacks_entry_points(tmp_path):
    """A file of the right name with other contents."""
    os.symlink(os.path.join(FAKECUDA, "libcuda.so.1"), tmp_path / "libcuda.so.1")
    os.symlink(os.path.join(FAKECUDA, "libcuda.so.1"), tmp_path / "libcublas.so.13")
    assert many(10, env={"GPUSHIM_CUDA_PATH": str(tmp_path)}).reasons() == {"L805": 10}


def test_a_library_that_is_none(tmp_path):
    """A file that cannot be loaded, and a folder that cannot be read."""
    (tmp_path / "libcuda.so.1").write_text("not a library")
    assert many(10, env={"GPUSHIM_CUDA_PATH": str(tmp_path)}).reasons() == {"L801": 10}


@pytest.mark.parametrize("rank, ordinal", [("0", 0), ("3", 1), ("x", 0)])
def test_local_rank(rank, ordinal):
    """Processes of one node spread over its devices."""
    result = many(2, env={"FAKECUDA_DEVICES": "2", "OMPI_COMM_WORLD_LOCAL_RANK": rank})
    assert result.reasons() == {"R002": 2}
    assert result.report["processes"][0]["device"].endswith(f" {ordinal}")


@pytest.mark.parametrize("command, calls", [([100], 100), (["--threads"], 8)])
@pytest.mark.parametrize("place", ["cublasCreate_v2:1+", "cuDevicePrimaryCtxRetain:1+",
                                   "cuMemPoolCreate:1+", "cuStreamCreate:1+"])
def test_set_up_that_fails(command, calls, place):
    """It is tried at the first use, from however many threads, and its failure is remembered
    (C76)."""
    result = many(*command, env={"FAKECUDA_FAIL_AT": place})
    assert result.reasons() == {"L809": calls}, result
    assert result.counts["call.cuInit"] == 1, result.counts
    assert result.counts["call." + place.split(":")[0]] <= 2, result.counts


def test_one_line_at_most():
    """GPUSHIM_VERBOSE=1 is one line at exit, whatever happened a hundred times."""
    for settings in ({"FAKECUDA_FAIL_AT": "cublasCreate_v2:1+"}, {"FAKECUDA_INIT_STATUS": "100"}):
        result = run_preloaded([program("many"), "30", "900"],
                               env=dict(settings, GPUSHIM_VERBOSE="1"))
        assert result.status == 0 and result.stdout == "", result
        assert len(result.stderr.splitlines()) == 1 and "CPU only: L80" in result.stderr, result


# ---- memory ----

def test_too_large_for_the_device():
    """Operands over the allowed share are not tried; smaller ones still go to the device."""
    result = many(3, 1700, env={"FAKECUDA_MEM": "64M"})
    assert result.reasons() == {"M401": 3}, result
    assert many(3, 400, env={"FAKECUDA_MEM": "64M"}).reasons() == {"R002": 3}


def test_over_the_users_limit():
    """The user's own limit has a code of its own."""
    assert many(2, 700, env={"GPUSHIM_MEM_LIMIT": "8M"}).reasons() == {"M403": 2}


def test_memory_that_is_taken_meanwhile():
    """Allocations that fail are not repeated at once, and end when there is memory again (C57)."""
    # Allocations 1 to 3 are the start-up's and the first call's; the next twelve find nothing.
    result = many(40, 40, 20, env={"FAKECUDA_FAIL_AT": "cuMemAllocFromPoolAsync:3"})
    assert result.reasons()["M402"] == 1, result
    assert 1 <= result.reasons()["M401"] <= 8, result
    assert result.reasons()["R002"] >= 31, result


def test_memory_that_stays_taken():
    """With nothing left the attempts get rarer: 0.1 s, 0.2 s, 0.4 s apart."""
    result = many(100, 40, 10, env={"FAKECUDA_FAIL_AT": "cuMemAllocFromPoolAsync:5+"})
    assert result.gpu_calls() == 1, result
    assert set(result.reasons("cpu")) == {"M401", "M402"}, result
    assert 2 <= result.reasons()["M402"] <= 6, result


def test_no_memory_for_a_start():
    """A device so full that it cannot be started is cold, not refused, and asked again later."""
    result = many(60, 40, 5, env={"FAKECUDA_MEM": "8M"})
    assert set(result.reasons()) <= {"M401", "M402"} and result.cpu_calls() == 60, result
    assert result.counts["call.cuInit"] <= 2, result.counts
    assert state(result) is None, "the device has not been refused"


def test_memory_by_two_sizes():
    """After a call that did not fit in truth, a smaller one does: nothing was leaked."""
    result = check_good(run_preloaded(
        ["sh", "-c", "for size in 1700 300; do '%s' 2 $size; done" % program("many")],
        env={"FAKECUDA_MEM": "64M", "GPUSHIM_MEM_LIMIT": "1G"}))
    assert result.reasons()["R002"] == 2 and result.reasons()["M402"] >= 1, result
    assert result.live() == {}, result.counts


# ---- start-up in auto mode ----

def test_start_up_in_the_background():
    """It begins when the savings missed have paid for it; no call waits for it."""
    result = many(60, 1000, mode="auto", env={"FAKECUDA_START_MS": "300",
                                              "GPUSHIM_MIN_SPEEDUP": "0.0001"})
    reasons = result.reasons()
    assert set(reasons) <= {"G504", "L807", "R001"}, result
    assert reasons.get("G504", 0) > 1, result


def test_few_calls_start_nothing():
    """What cannot pay for a start-up does not cause one."""
    result = many(3, 400, mode="auto", env={"GPUSHIM_MIN_SPEEDUP": "0.0001"})
    assert result.reasons() == {"G504": 3}, result
    assert result.counts.get("call.cuInit", 0) == 0, result.counts


def test_observe_never_starts_a_device():
    """It says what auto would have done, on paper."""
    result = many(30, 700, mode="observe")
    assert result.reasons() == {"P705": 30}, result
    assert result.counts.get("calls", 0) == 0, result.counts
    assert sum(row["calls"] for row in result.report["would"]) == 30
