# SPDX-License-Identifier: Apache-2.0
"""What the verbs print: JSON, and lines and tables as plain text or through rich."""
import importlib.util
import json
import os
import sys
import textwrap

WIDTH = 100
LAST_COLUMN_MIN = 24
# Cells with exactly these words are coloured; the numbers are ANSI colours.
COLOURS = {"expected": ("green", 32), "worth a look": ("yellow", 33), "error": ("red", 31)}


def print_json(value):
    """Prints value as one JSON document."""
    print(json.dumps(value, indent=1))


def duration(seconds):
    """Returns a duration in seconds as text: "123 s", "1.23 s", "45.6 ms", "80.0 us", "0 s"."""
    if seconds == 0:
        return "0 s"
    unit, size = next(((unit, size) for unit, size in (("s", 1), ("ms", 1e-3))
                       if seconds >= size), ("us", 1e-6))
    value = seconds / size
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def data_size(count):
    """Returns a number of bytes as text: "512 B", "1.5 MiB"."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def plural(count, word, ending="s"):
    """Returns a number with its noun: "1 run", "2 runs"."""
    return f"{count} {word}{'' if count == 1 else ending}"


def printable(value):
    """Returns value on one line; control characters, which a terminal would obey, become "?"."""
    line = str(value).replace("\n", ", ")
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def use_colour():
    """Returns whether stdout takes colours; NO_COLOR and FORCE_COLOR decide when set."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def coloured(padded, cell):
    """Returns the padded text of a cell with the colour of its word, if it has one."""
    if cell not in COLOURS:
        return padded
    return padded.replace(cell, f"\033[{COLOURS[cell][1]}m{cell}\033[0m")


class Screen:
    """Prints the text form of a verb.

    plain: aligned text without colours, whatever stdout is. Otherwise rich is used where it is
    installed and stdout is a terminal, and the same aligned text elsewhere.
    """

    def __init__(self, plain=False):
        self.colour = not plain and use_colour()
        self.rich = (not plain and sys.stdout.isatty()
                     and importlib.util.find_spec("rich") is not None)

    def line(self, text="", indent=""):
        """Prints a text, wrapped; following lines start with indent."""
        text = printable(text)
        for row in textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False,
                                 break_on_hyphens=False) or [""]:
            print(row)

    def parts(self, parts):
        """Prints the parts that are not empty with dots between them; lines break at the dots."""
        row = ""
        for part in map(printable, filter(None, parts)):
            if row and len(row) + len(part) + 3 > WIDTH:
                print(row)
                row = "  " + part
            else:
                row = f"{row} · {part}" if row else part
        print(row)

    def table(self, heads, rows):
        """Prints a table with a blank line before it.

        heads: column titles; one that starts with ">" is for a column of numbers, aligned to the
        right. rows: lists of cells. The last column is wrapped.
        """
        print()
        right = [head.startswith(">") for head in heads]
        heads = [head.lstrip(">") for head in heads]
        rows = [[printable(cell) for cell in row] for row in rows]
        if self.rich:
            self._rich_table(heads, right, rows)
        else:
            self._text_table(heads, right, rows)

    def _rich_table(self, heads, right, rows):
        """Prints a table through rich."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
        table = Table(box=None, pad_edge=False, header_style="bold")
        for place, head in enumerate(heads):
            last = place == len(heads) - 1
            table.add_column(head, justify="right" if right[place] else "left",
                             no_wrap=not last, overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell, style=COLOURS.get(cell, ("",))[0]) for cell in row))
        console = Console(highlight=False)
        console.width = min(WIDTH, console.width)
        console.print(table)

    def _text_table(self, heads, right, rows):
        """Prints a table as aligned text."""
        widths = [max(map(len, column)) for column in zip(heads, *rows)]
        room = max(LAST_COLUMN_MIN, WIDTH - sum(widths[:-1]) - 2 * (len(widths) - 1))
        for row in [heads, *rows]:
            last = [row[-1].rjust(min(widths[-1], room))] if right[-1] else textwrap.wrap(
                row[-1], room, break_long_words=False, break_on_hyphens=False)
            padded = [self._cell(cell, width, to_right)
                      for cell, width, to_right in zip(row[:-1], widths, right)]
            print("  ".join(padded + last[:1]).rstrip())
            for more in last[1:]:
                print(" " * (sum(widths[:-1]) + 2 * (len(widths) - 1)) + more)

    def _cell(self, cell, width, to_right):
        """Returns a cell padded to its column, coloured if it is a word with a colour."""
        padded = cell.rjust(width) if to_right else cell.ljust(width)
        return coloured(padded, cell) if self.colour else padded
