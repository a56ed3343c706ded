# SPDX-License-Identifier: Apache-2.0
"""gpushim run: puts the library in front of a program and becomes that program."""
import errno
import os
import re
import signal
import sys
import time

from .errors import CliError
from .names import maybe
from .parser import Parser
from .places import LIBRARY, find_file

FAILURE_STATUS = 125
PREFIX = "GPUSHIM_"
OPTIONS_WITH_VALUE = ("--mode", "-e")
USAGE = """gpushim run [options] [--] COMMAND [ARGUMENT ...]
       gpushim run [options] SCRIPT.py [ARGUMENT ...]
       gpushim run [options] -m MODULE [ARGUMENT ...]"""
SUMMARY = """Runs a program with libgpushim.so in front of its BLAS. A command that ends in .py,
and -m MODULE, are run by the Python that runs gpushim. Afterwards: gpushim report.

Exit status: that of the program; 125 when gpushim itself fails, 126 when the command cannot be
executed, 127 when it is not found."""
EXAMPLE = """  gpushim run -v --mode observe -- python app.py
  gpushim run -e MIN_SPEEDUP=1.5 app.py"""


def make_parser():
    """Returns the parser of everything before the command."""
    parser = Parser("run", SUMMARY, EXAMPLE, usage=USAGE, usage_status=FAILURE_STATUS)
    loud = parser.add_mutually_exclusive_group()
    loud.add_argument("-v", dest="verbose", action="count", default=0,
                      help="also the first call of each reason; -vv: every decided call (stderr)")
    loud.add_argument("-q", dest="quiet", action="store_true", help="no line at exit")
    parser.add_argument("--mode", metavar="MODE", help="GPUSHIM_MODE for this run")
    parser.add_argument("-e", dest="set", metavar="NAME=VALUE", action="append", default=[],
                        help="any other setting, with or without GPUSHIM_ (see gpushim env)")
    return parser


def split_command(arguments):
    """Returns (options of gpushim run, command of the program), both lists of words."""
    place = 0
    while place < len(arguments):
        word = arguments[place]
        if word == "--":
            return arguments[:place], python_if_script(arguments[place + 1:])
        if word == "-m":
            return arguments[:place], [sys.executable, *arguments[place:]]
        if not word.startswith("-"):
            return arguments[:place], python_if_script(arguments[place:])
        place += 2 if word in OPTIONS_WITH_VALUE else 1
    return arguments, []


def python_if_script(command):
    """Returns command, with this Python in front when its first word is a .py file."""
    if command and command[0].endswith(".py") and os.path.isfile(command[0]):
        return [sys.executable, *command]
    return command


def setting(assignment, names):
    """Returns the (variable, value) of a NAME=VALUE word; CliError for an unknown name."""
    name, equals, value = assignment.partition("=")
    short = name[len(PREFIX):] if name.startswith(PREFIX) else name
    if not equals:
        raise CliError(f"-e {assignment}: not of the form NAME=VALUE")
    if short not in names:
        raise CliError(f"-e {assignment}: {short!r} is not a setting{maybe(short, names)}")
    return PREFIX + short, value


def chosen_settings(options):
    """Returns the dict of variables that the options of gpushim run set."""
    chosen = {}
    if options.quiet:
        chosen[PREFIX + "VERBOSE"] = "0"
    elif options.verbose:
        chosen[PREFIX + "VERBOSE"] = str(min(options.verbose + 1, 3))
    if options.mode is None and not options.set:
        return chosen
    from . import settings, tables  # only here: a plain run starts without reading the tables
    rows = tables.load().settings
    if options.mode is not None:
        row = next(row for row in rows if row["name"] == "MODE")
        if not settings.is_valid(row, options.mode):
            raise CliError(f"--mode {options.mode}: {settings.expected(row)}")
        chosen[PREFIX + "MODE"] = options.mode
    names = [row["name"] for row in rows]
    chosen.update(setting(assignment, names) for assignment in options.set)
    return chosen


def new_run_id():
    """Returns a name for this run that is safe as a file name: UTC time, host, process id."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", os.uname().nodename)[:64]
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{host}-{os.getpid()}"


def preload(library, earlier):
    """Returns LD_PRELOAD with library first, then the entries of the earlier value.

    The loader splits the value at blanks and colons and knows no quotes.
    """
    if re.search(r"[\s:]", library):
        raise CliError(f"LD_PRELOAD cannot hold the path {library!r}: "
                       "it contains a blank or a colon")
    others = [entry for entry in re.split(r"[ :]+", earlier) if entry and entry != library]
    return ":".join([library, *others])


def undo_python_start(environment):
    """Takes back what the start of Python changed for the program that replaces it.

    Python ignores two signals, and in the C locale it sets LC_CTYPE (PEP 538).
    """
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return
    before = [entry.partition(b"=")[2] for entry in entries if entry.startswith(b"LC_CTYPE=")]
    environment.pop("LC_CTYPE", None)
    if before:
        environment["LC_CTYPE"] = os.fsdecode(before[0])


def program_environment(options):
    """Returns the environment of the program."""
    environment = dict(os.environ)
    undo_python_start(environment)
    environment.update(chosen_settings(options))
    environment["LD_PRELOAD"] = preload(find_file(LIBRARY), environment.get("LD_PRELOAD", ""))
    # An empty value counts as unset, as in the library.
    for name, default in (("VERBOSE", "1"), ("RUN_ID", new_run_id())):
        environment[PREFIX + name] = environment.get(PREFIX + name) or default
    return environment


def execute(command, environment):
    """Becomes the command; returns an exit status only when that fails, as env(1) does."""
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError as error:
        status, problem = 127, error
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            run_by_shell(command, environment)
        status, problem = 126, error
    print(f"gpushim run: {command[0]}: {os.strerror(problem.errno)}", file=sys.stderr)
    return status


def run_by_shell(command, environment):
    """Runs a script that has no #! line by /bin/sh, as execvp(3) does; returns only on failure."""
    import shutil
    try:
        os.execve("/bin/sh", ["/bin/sh", shutil.which(command[0]) or command[0], *command[1:]],
                  environment)
    except OSError:
        return


def main(arguments):
    """Runs the verb; returns an exit status only when the program could not be started."""
    before, command = split_command(arguments)
    parser = make_parser()
    options = parser.parse_args(before)
    if not command:
        parser.error("no command given")
    return execute(command, program_environment(options))
