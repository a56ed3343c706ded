# SPDX-License-Identifier: Apache-2.0
"""Makes tests/ and tests/python/ importable; prints the summary of test_suites.py."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "python")]
import summary  # noqa: E402  (needs the line above)
from preloaded import runner  # noqa: E402,F401  (a fixture of all tests here)


def pytest_terminal_summary(terminalreporter):
    """Prints the table, and writes it to the file that GPUSHIM_PEERS_RESULTS names."""
    if not summary.ROWS:
        return
    terminalreporter.section("other projects' tests, without and with the preload")
    for line in summary.lines():
        terminalreporter.write_line(line)
    for row in summary.ROWS:
        for test, plain, preloaded in row["unstable"]:
            terminalreporter.write_line(f"unstable by itself: {row['environment']} {test} "
                                        f"({plain}, {preloaded})")
    if os.environ.get("GPUSHIM_PEERS_RESULTS"):
        summary.write(os.environ["GPUSHIM_PEERS_RESULTS"])
