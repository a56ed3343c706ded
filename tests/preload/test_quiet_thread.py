# SPDX-License-Identifier: Apache-2.0
"""A program's thread is left as it was found, and its signals and forks meet no state of ours."""
import pytest
from support import base_environment, program, run, run_preloaded, sanitizer

MODES = [("auto", False), ("force", True)]


def plain(what, folder):
    """Runs quiet.c without the preload."""
    return run([program("quiet"), what], base_environment(), folder)


@pytest.mark.parametrize("mode, fakecuda", MODES)
@pytest.mark.parametrize("what", ["cancel", "clearenv"])
def test_as_without_the_preload(what, mode, fakecuda, tmp_path):
    """A pending cancellation at the first call; an environment that clearenv has taken away."""
    result = run_preloaded([program("quiet"), what], mode=mode, fakecuda=fakecuda, timeout=20)
    expected = plain(what, tmp_path)
    assert (result.status, result.stdout, result.stderr) == \
        (expected.status, expected.stdout, expected.stderr), result


@pytest.mark.parametrize("what, start_ms", [("fork in start-up", "3000"), ("fork in runs", "10")])
def test_child_that_only_exits(what, start_ms):
    """It waits neither for a start-up nor for runs that are its parent's."""
    result = run_preloaded([program("quiet"), what], mode="force", timeout=30,
                           env={"FAKECUDA_START_MS": start_ms})
    assert (result.status, result.stdout) == (0, "child 7, at once\n"), result


def test_floating_point_flags(tmp_path):
    """Our arithmetic raises none in the program's thread. (The double's own would, on the host.)"""
    result = run_preloaded([program("quiet"), "flags"], mode="auto", fakecuda=False)
    assert result.stdout == plain("flags", tmp_path).stdout == "flags 0\n", result


@pytest.mark.skipif(sanitizer() is not None, reason="a sanitizer's run time locks in exit itself")
@pytest.mark.parametrize("mode, fakecuda", MODES)
def test_handler_that_exits(mode, fakecuda):
    """Signals wait for the end of a run: exit finds no lock held by the frame below it."""
    result = run_preloaded([program("quiet"), "handler"], mode=mode, fakecuda=fakecuda, timeout=20)
    assert (result.status, result.stderr) == (3, ""), result
