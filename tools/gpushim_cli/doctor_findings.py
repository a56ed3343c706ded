# SPDX-License-Identifier: Apache-2.0
"""What gpushim doctor found: one Finding a fact, with its remedy."""
from collections import namedtuple

OK, NOTE, WARN, FAIL = "ok", "note", "warn", "FAIL"

# status: one of the four above; code: a reason code such as "L801", or None; remedy: or None.
Finding = namedtuple("Finding", "status area code text remedy")


def ok(area, text):
    """Returns a Finding that all is well."""
    return Finding(OK, area, None, text, None)


def note(area, text, code=None):
    """Returns a Finding that is worth knowing and asks for nothing."""
    return Finding(NOTE, area, code, text, None)


def warn(area, text, remedy, code=None):
    """Returns a Finding that does not keep the library from working."""
    return Finding(WARN, area, code, text, remedy)


def fail(area, text, remedy, code=None):
    """Returns a Finding that keeps calls from the GPU."""
    return Finding(FAIL, area, code, text, remedy)
