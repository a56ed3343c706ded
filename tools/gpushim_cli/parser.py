# SPDX-License-Identifier: Apache-2.0
"""The argument parser of every verb."""
import argparse


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that takes no abbreviations and ends its help with an example.

    usage_status is the exit status of a wrong command line.
    """

    def __init__(self, verb, summary, example, usage=None, usage_status=2):
        super().__init__(prog=f"gpushim {verb}", usage=usage, description=summary,
                         epilog=f"example:\n{example}", allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.usage_status = usage_status

    def error(self, message):
        """Ends the program with one line on stderr."""
        self.exit(self.usage_status, f"{self.prog}: {message} (see {self.prog} --help)\n")
