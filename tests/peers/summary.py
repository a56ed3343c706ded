# SPDX-License-Identifier: Apache-2.0
"""The table at the end of test_suites.py, printed and as a file."""
import json
import os
import platform
import subprocess
import sys
import time

ROWS = []
COLUMNS = ("suite", "environment", "tests", "passed", "failed_both", "skipped", "differ",
           "device_calls", "cpu_calls", "plain_s", "preloaded_s")


def lines():
    """Returns the table as lines, "passed" being the tests that pass on both sides."""
    cells = [[name.replace("_", " ") for name in COLUMNS]]
    cells += [[str(row[name]) for name in COLUMNS] for row in ROWS]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return ["  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))) for row in cells]


def commit():
    """Returns the commit of the checkout, "" where there is none."""
    done = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse",
                           "--short", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return done.stdout.strip()


def write(path):
    """Writes the rows with what they were measured on."""
    document = {
        "what": "other projects' tests without and with the preload: force, tests/fakecuda",
        "command": " ".join(["GPUSHIM_LONG=" + os.environ.get("GPUSHIM_LONG", "0"),
                             "python -m pytest", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"), "commit": commit(), "machine": platform.platform(),
        "cores": os.cpu_count(), "rows": ROWS}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
