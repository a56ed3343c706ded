# SPDX-License-Identifier: Apache-2.0
"""Entry point: finds the verb, runs it, turns failures into one line and an exit status."""
import importlib
import os
import signal
import sys

from .errors import CliError
from .names import maybe

# Verb, and what it does. The module of the same name has main(arguments), which returns the exit
# status, and FAILURE_STATUS, that of a CliError.
VERBS = {
    "run": "run a program with the library in front of its BLAS",
    "doctor": "is the library active here, and will it be for this program",
    "report": "what ran where in a run, why, and what it cost",
    "symbols": "the routines and exported names that are intercepted",
    "env": "every setting, its value and where the value came from",
    "runs": "list or delete recorded runs",
}


def help_text():
    """Returns the text of gpushim --help."""
    verbs = "\n".join(f"  {verb:<9} {meaning}" for verb, meaning in VERBS.items())
    return (f"usage: gpushim VERB [options]\n\n{verbs}\n\n"
            "gpushim VERB --help says more; gpushim --version prints the version.\n\n"
            "example:\n  gpushim run app.py && gpushim report")


def end_like_other_programs():
    """Lets a closed pipe and Ctrl-C end this program silently, as they end any Unix program."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def prepare_streams():
    """Makes stdout and stderr take any text, also when they are closed or cannot encode it."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")


def run_verb(verb, arguments):
    """Runs one verb; returns its exit status."""
    module = importlib.import_module(f"gpushim_cli.{verb}")
    try:
        status = module.main(arguments)
        sys.stdout.flush()
        return status
    except (CliError, OSError) as error:
        print(f"gpushim {verb}: {error}", file=sys.stderr)
        drop_output()
        return module.FAILURE_STATUS


def drop_output():
    """Lets what stdout still holds go nowhere, so that Python does not fail on it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def print_version():
    """Prints the version of the library; returns the exit status."""
    from . import tables
    try:
        print(f"gpushim {tables.load().version}")
    except CliError as error:
        print(f"gpushim: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments):
    """Runs the command line arguments (without the program name); returns the exit status."""
    end_like_other_programs()
    prepare_streams()
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0
    if arguments[0] == "--version":
        return print_version()
    if arguments[0] not in VERBS:
        print(f"gpushim: {arguments[0]!r} is not a verb{maybe(arguments[0], VERBS)} "
              f"(one of {', '.join(VERBS)})", file=sys.stderr)
        return 2
    return run_verb(arguments[0], arguments[1:])
