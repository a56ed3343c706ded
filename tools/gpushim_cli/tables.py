# SPDX-License-Identifier: Apache-2.0
"""The facts of the C tables, from the tables.json that the build writes beside the library."""
import json

from .errors import CliError
from .gsl_header import NO_ROW
from .places import TABLES, find_file

PARTS = ("settings", "reasons", "routines", "entries")
# The library counts calls of these reasons without reading a clock (see reasons.def).
UNTIMED = ("SIZE_BELOW_FLOOR", "ALGO_NESTED")
NESTED = "ALGO_NESTED"
SMALL = "SIZE_BELOW_FLOOR"
SEVERAL = {"code": "?", "number": NO_ROW, "name": "SEVERAL", "class": "unknown", "severity": "look",
           "when": "counter rows ran out; these calls may have run on either side",
           "remedy": "nothing"}


class Tables:
    """The rows of tables.json, each a dict with the keys that tools/tables.json.in writes.

    version is that of the library; settings, reasons, routines and entries are lists of rows.
    """

    def __init__(self, content):
        self.version = content["version"]
        self.settings, self.reasons, self.routines, self.entries = (
            [row for row in content[part] if row is not None] for part in PARTS)
        self._reasons = {row["number"]: row for row in self.reasons}

    def setting_names(self):
        """Returns the names of the settings, without GPUSHIM_."""
        return [row["name"] for row in self.settings]

    def reason(self, number):
        """Returns the row of a reason number, with its "code" ("S102") added.

        A number that a newer library invented gets a row with the code "?123", and the counter
        row that takes what found no row of its own one with the code "?".
        """
        row = self._reasons.get(number)
        if number == NO_ROW:
            return dict(SEVERAL)
        if row is None:
            return {"code": f"?{number:03}", "number": number, "name": "UNKNOWN",
                    "class": "unknown", "severity": "look",
                    "when": "not known to this version of gpushim",
                    "remedy": "use the gpushim of the library that made this run"}
        return dict(row, code=f"{row['letter']}{row['number']:03}")


def load():
    """Returns the Tables of the library this tool belongs to; CliError when they cannot be read."""
    path = find_file(TABLES)
    try:
        with open(path, encoding="utf-8") as file:
            return Tables(json.load(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CliError(f"{path} cannot be used ({error}): run make again") from error
