# SPDX-License-Identifier: Apache-2.0
"""Other projects' own tests pass under the preload exactly where they pass without it.

A test whose outcome differs fails the suite by name unless the plain run, repeated, shows the same
outcome by itself, or differences.txt says why it may differ. GPUSHIM_LONG=1: all tests of each
package, in every environment. GPUSHIM_PEERS_RESULTS: a file for the table, as JSON.
"""
import pytest
from suites import (SUITES, allowed, differing, present_modules, probe, pythons, run_both,
                    unstable)
from summary import ROWS

PYTHONS = pythons()
CASES = [(suite, name) for name in PYTHONS for suite in SUITES
         if name in suite.due_in(list(PYTHONS))]


def both(sides, *outcomes):
    """Returns how many tests have one of the outcomes, the same on both sides."""
    plain, preloaded = (side.tests for side in sides)
    return sum(plain[name] in outcomes and plain[name] == preloaded.get(name) for name in plain)


def table_row(suite, name, sides, **differences):
    """Returns what the summary says of one run."""
    plain, preloaded = sides
    process = preloaded.process
    row = {"suite": suite.name, "environment": name, "versions": probe(PYTHONS[name])["versions"],
           "tests": len(plain.tests), "passed": both(sides, "passed"),
           "failed_both": both(sides, "failure", "error"), "skipped": both(sides, "skipped"),
           "differ": len(differences["differences"])}
    row.update({key: [list(each) for each in found] for key, found in differences.items()})
    row.update(device_calls=process.gpu_calls(), cpu_calls=process.calls("cpu"),
               reasons={reason["code"]: reason["calls"] for reason in process.report["reasons"]},
               processes=len(process.report["processes"]),
               plain_s=round(plain.seconds, 1), preloaded_s=round(preloaded.seconds, 1))
    return row


@pytest.mark.parametrize("suite, name", CASES, ids=[f"{s.name}-{name}" for s, name in CASES])
def test_same_outcomes(suite, name, tmp_path):
    """The same tests pass, on the device, and nothing went wrong there."""
    python = PYTHONS[name]
    modules = present_modules(python, suite.modules)
    if not modules or "pytest" not in probe(python)["versions"]:
        pytest.skip(f"{name} has no {'pytest' if modules else suite.modules[0]}")
    sides = plain, preloaded = run_both(tmp_path, python, modules, suite.keyword)

    rows = differing(plain.tests, preloaded.tests)
    excused = [row for row in rows if row[0] in allowed()]
    rows = [row for row in rows if row not in excused]
    moody = unstable(tmp_path, python, suite.keyword, rows)
    rows = [row for row in rows if row not in moody]
    ROWS.append(table_row(suite, name, sides, differences=rows, excused=excused, unstable=moody))

    assert not rows, "\n".join(f"{test}: {a} without, {b} with the preload" for test, a, b in rows)
    process = preloaded.process
    assert not {code for code in process.codes() if code[0] in "EM"}, process.report["reasons"]
    assert both(sides, "passed") > 0, process.stdout[-2000:]
    assert process.gpu_calls() >= suite.least, process.report["reasons"]


CONTROL = """
import os
import numpy as np
def test_same(): assert (np.ones((9, 9)) @ np.ones((9, 9)) == 9).all()
def test_fails(): assert False
def test_differs(): assert "LD_PRELOAD" not in os.environ
"""


def test_a_difference_is_found(tmp_path):
    """The comparison itself: one test that only fails under the preload."""
    (tmp_path / "test_control.py").write_text(CONTROL)
    sides = plain, preloaded = run_both(tmp_path, PYTHONS["system"],
                                        [str(tmp_path / "test_control.py")], None)
    assert both(sides, "passed") == both(sides, "failure") == 1
    [(name, before, after)] = differing(plain.tests, preloaded.tests)
    assert name.endswith("::test_differs") and (before, after) == ("passed", "failure")
    assert preloaded.process.gpu_calls("dgemm") == 1
