# SPDX-License-Identifier: Apache-2.0
"""gpushim env: every setting, its value, and where the value came from."""
import os
import textwrap

from . import settings, tables
from .errors import CliError
from .output import WIDTH, Screen, print_json
from .parser import Parser

FAILURE_STATUS = 1
NOT_IN_A_FILE = ("CONFIG", "RUN_ID")
SUMMARY = """Shows every setting as a program started from here would read it: the environment,
over the settings files, over the defaults."""
EXAMPLE = "  gpushim env --set-only\n  gpushim env --write ~/.config/gpushim/gpushim.conf"


def make_parser():
    """Returns the parser of the verb."""
    parser = Parser("env", SUMMARY, EXAMPLE)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--set-only", action="store_true",
                        help="leave out those with their default")
    parser.add_argument("--write", metavar="FILE",
                        help="write a new settings file with these values instead")
    return parser


def setting_rows(chosen, set_only):
    """Returns a dict per setting: name, value, source, default, kind, meaning."""
    return [{"name": settings.PREFIX + name, "value": chosen.values[name],
             "source": chosen.sources[name], "default": row["default"], "kind": row["kind"],
             "meaning": row["meaning"]}
            for name, row in chosen.rows.items()
            if not set_only or chosen.sources[name] != "default"]


def print_text(rows, chosen):
    """Prints the settings, then what is wrong with some."""
    screen = Screen(plain=True)
    for row in rows:
        screen.line(f"{row['name']}={row['value']}  ({row['source']})")
        for line in textwrap.wrap(row["meaning"], WIDTH - 4):
            screen.line(line if not line else f"    {line}")
    for row in chosen.unknown:
        hint = f"; maybe {row['nearest']}?" if row["nearest"] else ""
        screen.line(f"unknown: {row['name']} is not a setting{hint}", indent="  ")
    for remark in chosen.remarks:
        screen.line(f"refused: {remark}", indent="  ")
    if not rows:
        screen.line("every setting has its default")


def file_line(name, value):
    """Returns the line of a settings file that gives a setting its value."""
    line = f"{name} = {value}"
    if "\n" in value or settings.parse_line(line) != (name, value):
        raise CliError(f"{settings.PREFIX}{name}: a settings file cannot hold the value {value!r}")
    return line


def file_text(chosen, set_only):
    """Returns the text of a settings file; settings with their default are commented out."""
    lines = ["# Settings of libgpushim: NAME = value. The environment (GPUSHIM_NAME) wins."]
    for name, row in chosen.rows.items():
        is_default = chosen.sources[name] == "default"
        if name in NOT_IN_A_FILE or (set_only and is_default):
            continue
        lines.append("")
        lines += textwrap.wrap(row["meaning"], WIDTH, initial_indent="# ", subsequent_indent="# ")
        lines.append(("# " if is_default else "") + file_line(name, chosen.values[name]))
    return "\n".join(lines) + "\n"


def write_file(path, text):
    """Writes a new file; CliError when there is one already."""
    try:
        with open(path, "x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except FileExistsError as error:
        raise CliError(f"{path} exists and is not replaced") from error
    except FileNotFoundError as error:
        raise CliError(f"{path}: make the folder {os.path.dirname(path)} first") from error


def main(arguments):
    """Runs the verb; returns the exit status."""
    options = make_parser().parse_args(arguments)
    chosen = settings.effective(tables.load().settings)
    rows = setting_rows(chosen, options.set_only)
    if options.write is not None:
        write_file(options.write, file_text(chosen, options.set_only))
        print(f"{options.write} written")
    elif options.json:
        print_json({"settings": rows, "unknown": chosen.unknown, "remarks": chosen.remarks})
    else:
        print_text(rows, chosen)
    return 0
