# SPDX-License-Identifier: Apache-2.0
"""Whose code runs when the CPU computes: several libraries, other preloads, none at all."""
import os

import pytest
from support import LIBRARY, check_good, facts, program, run_plain, run_preloaded, sanitizer

PLUGINS = {"plugin.so": "libopenblas.so.0", "plugin64.so": "libopenblas64.so.0",
           "plugin-netlib.so": "libblas.so.3"}


def host(*plugins, **options):
    """Runs host.c with these plugins; returns the Result, which is good."""
    names = [name if name.startswith("--") else program(name) for name in plugins]
    return check_good(run_preloaded([program("host"), *names], **options), "")


def test_two_widths_under_one_name():
    """Each plugin's calls go to its own library, in its own integer width."""
    result = host("plugin.so", "plugin64.so", "plugin-netlib.so", fakecuda=False)
    reasons = result.reasons()
    assert reasons["L801"] == 30, result  # netlib's CBLAS calls its Fortran name: nested
    assert set(reasons) <= {"L801", "A602"}, result
    assert {os.path.basename(path) for path in result.report["providers"]} == set(
        PLUGINS.values()), result.report["providers"]
    assert {os.path.basename(row["module"]) for row in result.report["callers"]} == set(PLUGINS)


def test_two_widths_on_the_device():
    """The width of each library is known, so that both may use the device."""
    result = host("plugin64.so", "plugin.so")
    assert result.reasons() == {"R002": 20}, result


@pytest.mark.parametrize("order", [("plugin.so", "plugin64.so"), ("plugin64.so", "plugin.so")])
def test_a_caller_without_a_library(order):
    """Two providers of different width and no evidence for either: the CPU, and said so."""
    result = host("--pointer", *order)
    assert result.reasons() == {"R002": 20, "U310": 1}, result


def test_a_caller_without_a_library_that_has_no_choice():
    """One provider only, or two of one width, is evidence enough (scikit-learn's case)."""
    assert host("--pointer", "plugin64.so").reasons() == {"R002": 11}
    assert host("--pointer", "plugin.so", "plugin-netlib.so").reasons("gpu") == {"R002": 21}


@pytest.mark.parametrize("name, library", [("gemm_driver", "libopenblas.so.0"),
                                           ("gemm_driver-netlib", "libblas.so.3")])
def test_the_provider_is_named(name, library):
    """A program's library is recorded by its path."""
    result = check_good(run_preloaded([program(name), "--few"]))
    assert [os.path.basename(path) for path in result.report["providers"]] == [library]


@pytest.mark.parametrize("position", ["before", "after"])
@pytest.mark.parametrize("mode, fakecuda", [("auto", False), ("force", False), ("force", True)])
def test_another_wrapper(position, mode, fakecuda):
    """Each layer is entered once per call, whichever comes first (C02)."""
    result = check_good(run_preloaded([program("wrapped")], mode=mode, fakecuda=fakecuda,
                                      timeout=10, **{position: [program("libwrap.so")]}))
    offloaded = mode == "force" and fakecuda
    # Behind us, the wrapper does not see what the device takes.
    entered = 0 if offloaded and position == "after" else 2
    assert result.stdout == f"{entered}\n", result
    if mode == "force":
        assert result.reasons() == {"R002" if offloaded else "L801": 2}, result


def test_two_wrappers():
    """One on each side."""
    both = {"before": [program("libwrap.so")], "after": [program("libwrap.so")]}
    result = check_good(run_preloaded([program("wrapped")], fakecuda=False, timeout=10, **both))
    assert result.reasons() == {"L801": 2}, result


def test_a_name_that_no_library_has():
    """The program ends as the loader would have ended it, and not before the call."""
    for preloaded in (True, False):
        run = run_preloaded if preloaded else run_plain
        result = run([program("missing"), "call"])
        assert result.status == 127 and result.stdout == "before\n", result
        assert "undefined symbol: scipy_dgemm_64_" in result.stderr, result
        assert len(result.stderr.splitlines()) == 1, result
    check_good(run_preloaded([program("missing")]), "before\n")


@pytest.mark.skipif(sanitizer() is not None, reason="a sanitizer's run time binds late by itself")
def test_everything_bound_at_once():
    """LD_BIND_NOW finds each name that the library needs (C10, C79)."""
    result = run_preloaded([program("many"), "2"], env={"LD_BIND_NOW": "1"})
    assert check_good(result, "").gpu_calls() == 2
    result = run_preloaded(["/bin/true"], env={"LD_BIND_NOW": "1"})
    check_good(result, "")


def test_every_exported_name_is_in_the_tables():
    """The library under test and the tables beside it are of one build."""
    assert os.path.getsize(LIBRARY) > 0 and len(facts().entries) >= 40
