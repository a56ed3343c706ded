#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test suites and ends with one line, `N passed, N failed, N skipped`.

    tests/run.py [--long] [--only NAME]

The C programs, the command line tool and the preload tests run once, on the system's Python; the
end-to-end tests run on the system's Python and in every environment that tests/environments.py
makes (wheels; newer Pythons where there are any). Other projects' tests and programs (peers) start
in the environments from one run on the system's Python. --long sets GPUSHIM_LONG=1: every campaign
in full. --only runs the suites whose name contains NAME.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SYSTEM_PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def environments():
    """Pythons of the virtual environments, made where missing."""
    listing = subprocess.run(
        [SYSTEM_PYTHON, "tests/environments.py", "--list"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return listing.stdout.split()


# What runs in the sanitizer builds: the C programs, alone and under the preload.
INSTRUMENTED = ["tests/test_c_programs.py", "tests/preload/test_gemm_driver.py",
                "tests/preload/test_threads.py", "tests/preload/test_fork.py",
                "tests/preload/test_guard.py"]


def suites():
    """(name, python, paths, environment) of each pytest run."""
    for name, python, paths in plain_suites():
        yield name, python, paths, {}
    for sanitizer in ("address", "thread"):
        yield (f"sanitizer:{sanitizer}", SYSTEM_PYTHON, INSTRUMENTED,
               {"GPUSHIM_TEST_BUILD": str(ROOT / f"build-{sanitizer}")})


def plain_suites():
    """(name, python, paths) of the suites of the ordinary build."""
    yield "c", SYSTEM_PYTHON, ["tests/test_c_programs.py"]
    yield "tools", SYSTEM_PYTHON, sorted(
        str(p.relative_to(ROOT)) for p in (ROOT / "tests/python").glob("test_cli_*.py"))
    yield "preload", SYSTEM_PYTHON, ["tests/preload"]
    end_to_end = sorted(
        str(p.relative_to(ROOT)) for p in (ROOT / "tests/python").glob("test_*.py")
        if not p.name.startswith("test_cli_"))
    for python in [SYSTEM_PYTHON, *environments()]:
        name = Path(python).parent.parent.name if ".venv" in python else "system"
        yield f"python:{name}", python, end_to_end
    yield "peers", SYSTEM_PYTHON, ["tests/peers"]


def counts(junit):
    """(passed, failed, skipped) of a junit file; a missing file is one failure."""
    try:
        suite = ElementTree.parse(junit).getroot()
    except (OSError, ElementTree.ParseError):
        return 0, 1, 0
    totals = [0, 0, 0]
    for case in suite.iter("testcase"):
        kinds = {child.tag for child in case}
        totals[1 if kinds & {"failure", "error"} else 2 if "skipped" in kinds else 0] += 1
    return tuple(totals)


def run_suite(name, python, paths, environment):
    """Runs one suite; returns its counts."""
    print(f"== {name}: {python}", flush=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        junit = os.path.join(folder, "junit.xml")
        status = subprocess.run(
            [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--junitxml={junit}",
             *paths], cwd=ROOT, env=environment).returncode
        passed, failed, skipped = counts(junit)
    if status not in (0, 1) and failed == 0:
        failed = 1  # interrupted, usage error, nothing collected
    print(f"== {name}: {passed} passed, {failed} failed, {skipped} skipped "
          f"in {time.monotonic() - begin:.0f} s", flush=True)
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--long", action="store_true", help="every campaign in full")
    parser.add_argument("--only", default="", metavar="NAME", help="suites whose name has NAME")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        # No test may read or leave anything in the home of whoever runs it.
        environment = dict(os.environ, XDG_STATE_HOME=state, XDG_CONFIG_HOME=state)
        environment = {k: v for k, v in environment.items()
                       if not k.startswith(("GPUSHIM_", "FAKECUDA_")) and k != "LD_PRELOAD"}
        if options.long:
            environment["GPUSHIM_LONG"] = "1"
        totals = [0, 0, 0]
        for name, python, paths, extra in suites():
            if options.only in name:
                found = run_suite(name, python, paths, dict(environment, **extra))
                totals = [a + b for a, b in zip(totals, found)]
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
