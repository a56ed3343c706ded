# SPDX-License-Identifier: Apache-2.0
"""The end of a process: its status is its own, nothing is printed, and it does not take long."""
import signal

import pytest
from support import LONG, program, run_preloaded

TIMES = 100 if LONG else 8


def leave(way, *arguments, status=0, name="exit", **options):
    """Runs exit.c once; returns the Result, whose status is as expected."""
    result = run_preloaded([program(name), way, *arguments], timeout=30, **options)
    assert (result.status, result.stdout, result.stderr) == (status, "", ""), result
    return result


@pytest.mark.parametrize("way, status", [
    ("return", 6), ("exit", 7), ("_exit", 8), ("quick_exit", 9), ("pthread_exit", 0),
    ("SIGKILL", -signal.SIGKILL), ("SIGTERM", -signal.SIGTERM), ("abort", -signal.SIGABRT)])
def test_after_use(way, status):
    """The audit is whole however the process ended, and says whether it did so in order."""
    for _ in range(TIMES):
        result = leave(way, status=status)
        assert result.reasons() == {"R002": 4}, result
        process, = result.report["processes"]
        in_order = way in ("return", "exit", "pthread_exit")
        assert process["closed"] == in_order, process
        assert process["device"] != "" and process["device_state"] is None, process


@pytest.mark.parametrize("way", ["older handler", "newer handler"])
def test_calls_of_exit_handlers(way):
    """They are computed by whom it may be, and counted."""
    for _ in range(TIMES):
        result = leave(way)
        assert sum(result.reasons().values()) == 7, result
        assert set(result.reasons("cpu")) <= {"L808"} and result.gpu_calls() >= 4, result


def test_calls_of_exit_handlers_alone():
    """A device whose first use is in an exit handler is used, or not: never a crash."""
    for _ in range(TIMES):
        result = leave("only in a handler")
        assert sum(result.reasons().values()) == 3, result
        assert set(result.reasons()) <= {"R002", "L808"}, result


def test_during_start_up():
    """A start-up of a minute does not keep a process for longer than the bound."""
    result = leave("beside a thread", "200", env={"FAKECUDA_START_MS": "60000"})
    assert result.seconds < 5, result.seconds
    assert result.gpu_calls() == 0, result


def test_short_before_the_start_up_is_done():
    """Exit falls into each part of a start-up, and of the first calls."""
    for pause in range(60 if LONG else 20):
        result = leave("beside a thread", str(pause * (1 if LONG else 3)))
        assert result.seconds < 5, result.seconds


def test_while_threads_compute():
    """Calls under way end before the driver does."""
    for pause in range(TIMES * 5):
        result = leave("beside many threads", str(60 + pause), name="exit-netlib")
        assert result.seconds < 5, result.seconds
        assert set(result.reasons("cpu")) <= {"L808"}, result


@pytest.mark.parametrize("way, status", [("return", 6), ("SIGKILL", -signal.SIGKILL)])
def test_on_the_cpu(way, status):
    """Without a device it is no different."""
    result = leave(way, status=status, fakecuda=False)
    assert result.reasons() == {"L801": 4}, result
