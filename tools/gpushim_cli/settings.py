# SPDX-License-Identifier: Apache-2.0
"""The settings as the library would read them now: environment over files over defaults.

Mirrors policy/settings.c and settings_file.c, so that gpushim env says what the library does.
"""
import os
import re
import stat

from .names import maybe, nearest
from .places import LIBDIR_VARIABLE, xdg_folder

PREFIX = "GPUSHIM_"
SYSTEM_FILE = "/etc/gpushim/gpushim.conf"
FILE_BYTES_MAX = 1 << 20
TEXT_BYTES_MAX = 1023
NUMBER = r"(?:\d+\.?\d*|\.\d+)"
SIZE = rf"{NUMBER}(?:B|[KMGT](?:i?B)?)?"
FORMS = {
    "count": (r"\d+", "a whole number, 0 or more"),
    "ratio": (rf"(?=.*[1-9]){NUMBER}", "a number above 0, such as 1.2"),
    "duration": (rf"{NUMBER}(?:ns|us|ms|s)|(?=\.?0)0*\.?0*",
                 "a time with its unit, such as 20us, 30ms or 2s"),
    "size": (SIZE, "a size, such as 512M or 2G"),
    "share": (rf"(?:100(?:\.0*)?|\d{{1,2}}(?:\.\d*)?|\.\d+)%|{SIZE}",
              "a share or a size, such as 80% or 2G"),
    "device": (r"auto|none|-?\d{1,6}", "auto, none, or the index of a visible device"),
}
FLAG_WORDS = ["0", "1", "no", "yes", "off", "on", "false", "true"]
WORD_KINDS = ("mode", "precision", "audit", "verbose")
UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def words(row):
    """Returns the values that a setting of fixed words takes, or None.

    The meaning of such a setting lists them: "auto: ...; off: ...", "0 silent; 1 one line ...".
    """
    if row["kind"] == "flag":
        return FLAG_WORDS
    if row["kind"] in WORD_KINDS:
        return [re.match(r"\s*(\w+)", part).group(1) for part in row["meaning"].split(";")]
    return None


def is_valid(row, value):
    """Returns whether the library understands value for the setting of this row."""
    if words(row) is not None:
        return value.lower() in words(row)
    if row["kind"] in FORMS:
        form = FORMS[row["kind"]][0]
        fits = re.fullmatch(form, value, re.IGNORECASE | re.ASCII) is not None
        return fits and (row["kind"] == "device" or in_range(value))
    return 0 < len(os.fsencode(value)) <= TEXT_BYTES_MAX


def in_range(value):
    """Returns whether the number value starts with, and the size it may be, are below 2^63."""
    number = float(re.match(NUMBER, value, re.ASCII).group())
    return number < 1 << 63 and (size_bytes(value) or 0) < 1 << 63


def expected(row):
    """Returns what a value of this setting must look like, as a phrase."""
    if words(row) is not None:
        return "one of " + ", ".join(words(row))
    return FORMS[row["kind"]][1] if row["kind"] in FORMS else "a text of at most 1023 bytes"


def size_bytes(text):
    """Returns the bytes that a size such as 512M stands for, or None when it is none."""
    match = re.fullmatch(rf"({NUMBER})([BKMGT]?)(?:i?B)?", text, re.IGNORECASE | re.ASCII)
    return int(float(match.group(1)) * UNITS[match.group(2).upper()]) if match else None


def parse_line(line):
    """Returns the (name, value) of one line of a settings file, or None for a malformed one."""
    match = re.match(r"([^=:]+)[=:](.*)", line, re.DOTALL)
    if match is None:
        return None
    value = re.split(r"(?:^|\s);", match.group(2), maxsplit=1)[0]
    return match.group(1).strip(), value.strip()


class Settings:
    """The settings in force.

    rows     the rows of config.def (dicts)
    values   name -> value in force (text)
    sources  name -> "default", "environment" or the path of a settings file
    unknown  list of dicts: GPUSHIM_ variables that are no settings, with "name" and "nearest"
    remarks  list of sentences about values and files that were refused
    """

    def __init__(self, rows):
        self.rows = {row["name"]: row for row in rows}
        self.values = {row["name"]: row["default"] for row in rows}
        self.sources = {row["name"]: "default" for row in rows}
        self.unknown = []
        self.remarks = []

    def take(self, name, value, source):
        """Uses value for the setting called name, unless it is empty or not understood."""
        row = self.rows[name]
        if value == "":
            return
        if not is_valid(row, value):
            self.remarks.append(f"{PREFIX}{name}={value} ({source}) is not understood, "
                                f"{self.values[name]} is used; expected: {expected(row)}")
            return
        self.values[name], self.sources[name] = value, source

    def take_file_line(self, path, number, line):
        """Uses one line, already stripped, of a settings file."""
        pair = parse_line(line)
        if pair is None:
            self.remarks.append(f"{path}:{number} is not of the form NAME = value")
            return
        name = pair[0].upper()
        name = name[len(PREFIX):] if name.startswith(PREFIX) else name
        if name == "CONFIG":
            self.remarks.append(f"{path}:{number} CONFIG is read from the environment only")
        elif name in self.rows:
            self.take(name, pair[1], path)
        else:
            self.remarks.append(f"{path}:{number} {name} is not a setting{maybe(name, self.rows)}")

    def take_file(self, path, must_exist):
        """Uses a settings file."""
        text, problem = read_settings_file(path)
        if problem is not None:
            if must_exist or not isinstance(problem, (FileNotFoundError, NotADirectoryError)):
                self.remarks.append(f"{path} is not used: {problem}")
            return
        for number, line in enumerate(text.lstrip("\ufeff").split("\n"), 1):
            line = line.strip()
            if line.startswith("[") and not line.startswith("[]"):
                self.remarks.append(f"{path}:{number} sections are not used, "
                                    "what follows is ignored")
                return
            if line and line[0] not in "#;[":
                self.take_file_line(path, number, line)

    def take_files(self):
        """Uses the settings files, the system's first."""
        config = os.environ.get(PREFIX + "CONFIG", "")
        if config in ("", "auto"):
            self.take_file(SYSTEM_FILE, must_exist=False)
            folder = xdg_folder("XDG_CONFIG_HOME", ".config")
            if folder is not None:
                self.take_file(os.path.join(folder, "gpushim", "gpushim.conf"), must_exist=False)
        elif not config.startswith("/"):
            self.remarks.append(f"{PREFIX}CONFIG={config} is not an absolute path: "
                                "no settings file is used")
        else:
            self.take_file(config, must_exist=True)

    def take_environment(self):
        """Uses the GPUSHIM_ variables, and notes those that are no settings."""
        for variable, value in sorted(os.environ.items()):
            if not variable.startswith(PREFIX) or variable == LIBDIR_VARIABLE:
                continue
            name = variable[len(PREFIX):]
            if name in self.rows:
                self.take(name, value, "environment")
            else:
                self.unknown.append({"name": variable,
                                     "nearest": nearest_variable(name, self.rows)})


def nearest_variable(name, known):
    """Returns the full name of the setting nearest to name, or None."""
    found = nearest(name, known)
    return PREFIX + found if found else None


def file_refusal(status):
    """Returns why the library would not read a file with this os.stat_result, or None."""
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if status.st_uid not in (0, os.geteuid()):
        return "owned by another user"
    return "larger than 1 MiB" if status.st_size > FILE_BYTES_MAX else None


def read_settings_file(path):
    """Returns (text, None), or (None, problem) when the library would not use the file."""
    try:
        # O_NONBLOCK: a FIFO of that name must not stop us.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            refusal = file_refusal(os.fstat(descriptor))
            if refusal is not None:
                return None, refusal
            with open(descriptor, "rb", closefd=False) as file:
                return file.read().decode("utf-8", "surrogateescape"), None
        finally:
            os.close(descriptor)
    except OSError as error:
        return None, error


def effective(rows):
    """Returns the Settings in force for a program started from here; rows as in tables.json."""
    settings = Settings(rows)
    settings.take_files()
    settings.take_environment()
    return settings
