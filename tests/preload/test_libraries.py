# SPDX-License-Identifier: Apache-2.0
"""Whose code runs when the CPU computes: several libraries, other preloads, none at all."""
import os

import pytest
from support import check_good, program, run_plain, run_preloaded, sanitizer

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


@pytest.mark.parametrize("mode, fakecuda", [("auto", False), ("force", False), ("force", True),
                                            ("verify", True)])
@pytest.mark.parametrize("before, after", [("1", ""), ("", "1"), ("2", ""), ("", "2"), ("1", "2"),
                                           ("2", "1"), ("12", ""), ("21", ""), ("", "12")])
def test_other_wrappers(before, after, mode, fakecuda):
    """Each layer is entered once per call, whichever comes first, and whether it calls the next
    one or jumps to it (C02)."""
    files = {"1": program("libwrap.so"), "2": program("libwrap2.so")}
    result = check_good(run_preloaded(
        [program("wrapped")], mode=mode, fakecuda=fakecuda, timeout=10,
        before=[files[name] for name in before], after=[files[name] for name in after]))
    offloaded = mode == "force" and fakecuda
    # Behind us, a wrapper does not see what the device takes.
    expected = [2 if name in before else -1 if name not in after else 0 if offloaded else 2
                for name in "12"]
    assert result.stdout == "{} {}\n".format(*expected), result
    if mode == "force":
        assert result.reasons() == {"R002" if offloaded else "L801": 2}, result


@pytest.mark.parametrize("fakecuda", [False, True])
def test_a_wrapper_in_the_program(fakecuda):
    """The program's own dgemm_ goes on to the next definition, which is ours."""
    result = check_good(run_preloaded([program("wrapped-own")], fakecuda=fakecuda, timeout=10))
    assert result.stdout == "2 -1\n", result
    assert result.reasons() == {"R002" if fakecuda else "L801": 2}, result


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
