# SPDX-License-Identifier: Apache-2.0
"""gpushim symbols: the routines and the exported names that are intercepted."""
from fnmatch import fnmatchcase

from . import tables
from .errors import CliError
from .output import Screen, plural, print_json
from .parser import Parser

FAILURE_STATUS = 1
SUMMARY = """Shows every routine that is intercepted, whether the GPU can run it, and its exported
names."""
EXAMPLE = "  gpushim symbols 'dge*'\n  gpushim symbols --markdown > routines.md"


def make_parser():
    """Returns the parser of the verb."""
    parser = Parser("symbols", SUMMARY, EXAMPLE)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document")
    form.add_argument("--markdown", action="store_true", help="a Markdown table")
    parser.add_argument("pattern", nargs="*", metavar="ROUTINE",
                        help="shell patterns of routine names; all by default")
    return parser


def symbol_rows(facts, patterns):
    """Returns the routines that match a pattern (all for none), each as a dict: what tables.json
    says of it, its "name" as "routine", and its exported "names", a list of dicts."""
    names = {}
    for entry in facts.entries:
        names.setdefault(entry["routine"], []).append(without(entry, "routine"))
    return [{"routine": row["name"], **without(row, "name"), "names": names.get(row["name"], [])}
            for row in facts.routines
            if not patterns or any(fnmatchcase(row["name"], pattern) for pattern in patterns)]


def without(row, key):
    """Returns a copy of a dict without one key."""
    return {name: value for name, value in row.items() if name != key}


def by_spelling(row):
    """Returns the exported names of a routine as spelling -> list of names."""
    spellings = {}
    for name in row["names"]:
        spellings.setdefault(name["spelling"], []).append(name["name"])
    return spellings


def print_markdown(rows):
    """Prints one Markdown table, a column per spelling."""
    spellings = list(dict.fromkeys(name["spelling"] for row in rows for name in row["names"]))
    print("| routine | meaning | GPU | " + " | ".join(spellings) + " |")
    print("| --- " * (3 + len(spellings)) + "|")
    for row in rows:
        names = by_spelling(row)
        cells = [f"`{row['routine']}`", row["meaning"].replace("|", "\\|"), yes_no(row["gpu"])]
        cells += [", ".join(f"`{name}`" for name in names.get(spelling, []))
                  for spelling in spellings]
        print("| " + " | ".join(cells) + " |")


def yes_no(value):
    """Returns "yes" or "no"."""
    return "yes" if value else "no"


def print_text(rows):
    """Prints a line per routine and below it a line per spelling."""
    screen = Screen(plain=True)
    for row in rows:
        screen.line(f"{row['routine']:<10} GPU {yes_no(row['gpu']):<4} {row['meaning']}",
                    indent=" " * 20)
        for spelling, names in by_spelling(row).items():
            screen.line(f"  {spelling:<18} {' '.join(names)}", indent=" " * 21)
    print(f"{plural(len(rows), 'routine')}, {sum(row['gpu'] is True for row in rows)} of them on "
          f"the GPU, {sum(len(row['names']) for row in rows)} names")


def main(arguments):
    """Runs the verb; returns the exit status."""
    options = make_parser().parse_args(arguments)
    rows = symbol_rows(tables.load(), options.pattern)
    if options.pattern and not rows:
        raise CliError(f"no intercepted routine matches {' '.join(options.pattern)}")
    if options.json:
        print_json(rows)
    elif options.markdown:
        print_markdown(rows)
    else:
        print_text(rows)
    return 0
