# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor, the program: what is it, and does ld.so put a library in front of it?"""
import errno
import os
import re
import shutil
import stat

from .doctor_elf import Elf, NotElf, machine_name
from .doctor_findings import fail, ok, warn

PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:t|d|-dbg)?")
FLAGS_KEPT = re.compile(r"-[bBdEIOPqsSu]+")
SCRIPTS_MAX = 5
FIRST_LINE_BYTES = 4096


class Program:
    """What a command line starts.

    path      the file that the kernel starts in the end: an interpreter for a script
    scripts   the scripts that led to it
    python    the words that start it, when it is a Python, else None
    elf       its Elf, or None for a Python behind a script that is not followed
    """

    def __init__(self):
        self.path, self.scripts, self.python, self.elf = None, [], None, None

    @property
    def name(self):
        """Returns what to call it."""
        return os.path.basename(self.path)


class Unusable(Exception):
    """The command cannot be started, or not be looked into; holds the Finding."""

    def __init__(self, finding):
        super().__init__(finding.text)
        self.finding = finding


def cannot_start(word, reason, status):
    """Returns the exception for a command that the shell would refuse with this status."""
    finding = fail("preload", f"{word}: {reason} (gpushim run would end with {status})",
                   "name a program on PATH, or the path of an executable file")
    return Unusable(finding)


def locate(word):
    """Returns the path of the program that a word names, as execvp(3) finds it."""
    path = word if "/" in word else shutil.which(word)
    if path is None or not word:
        raise cannot_start(word or "''", "command not found", 127)
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        status = 127 if getattr(error, "errno", 0) in (errno.ENOENT, 0) else 126
        raise cannot_start(word, getattr(error, "strerror", None) or error, status) from error
    if stat.S_ISDIR(mode):
        raise cannot_start(word, "is a directory", 126)
    if not stat.S_ISREG(mode) or not os.access(path, os.X_OK):
        raise cannot_start(word, "is not executable", 126)
    return path


def read_start(path):
    """Returns the first bytes of a program."""
    try:
        with open(path, "rb") as file:
            return file.read(FIRST_LINE_BYTES)
    except OSError as error:
        raise Unusable(warn("preload", f"{path} cannot be read ({error.strerror}): whether the "
                            "library gets into it cannot be told",
                            "gpushim run it, then gpushim report")) from error


def interpreter_words(start):
    """Returns the words that the #! line starts, or None without one."""
    if not start.startswith(b"#!"):
        return None
    words = os.fsdecode(start[2:].split(b"\n", 1)[0]).split()
    if words and os.path.basename(words[0]) == "env":
        words = words[1:]
        while words and (words[0].startswith("-") or "=" in words[0]):
            words = words[1:]
    return words


def flags(words):
    """Returns the leading words that are plain options of Python."""
    kept = []
    for word in words:
        if not FLAGS_KEPT.fullmatch(word):
            break
        kept.append(word)
    return kept


def identify(command):
    """Returns the Program that a command (a list of words) starts; Unusable when there is none."""
    program, words = Program(), command
    for _ in range(SCRIPTS_MAX):
        program.path = locate(words[0])
        if PYTHON.fullmatch(os.path.basename(program.path)):
            program.python = [os.path.abspath(program.path), *flags(words[1:])]
        start = read_start(program.path)
        if start.startswith(b"\x7fELF"):
            return with_elf(program)
        if program.python:
            return program  # a wrapper, such as those of pyenv: the probe starts it
        program.scripts.append(program.path)
        words = interpreter_words(start)
        if words is None and b"\0" in start:
            raise cannot_start(program.path, "is neither a script nor an ELF file", 126)
        words = words or ["/bin/sh"]
    raise cannot_start(command[0], "scripts lead to scripts without end", 126)


def with_elf(program):
    """Completes a Program whose path is an ELF file."""
    try:
        program.elf = Elf(program.path)
    except (NotElf, OSError) as error:
        raise cannot_start(program.path, str(error), 126) from error
    return program


def secure_cause(path):
    """Returns (why ld.so starts the program in secure mode, for this user), or (None, False)."""
    status = os.stat(path)
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        return None, False
    if status.st_mode & stat.S_ISUID:
        return "setuid", status.st_uid != os.getuid()
    if status.st_mode & stat.S_ISGID and status.st_mode & stat.S_IXGRP:
        return "setgid", status.st_gid != os.getgid()
    try:
        os.getxattr(path, "security.capability")
        return "a program with file capabilities", os.getuid() != 0
    except OSError:
        return None, False


def check_secure(path):
    """Returns findings about what makes ld.so ignore LD_PRELOAD, and libgpushim inert."""
    cause, now = secure_cause(path)
    if cause is None:
        return []
    name = os.path.basename(path)
    if not now:
        return [warn("preload", f"{name} is {cause}: other users than its owner get it without "
                     "the library (ld.so ignores LD_PRELOAD)", "run a copy without that")]
    return [fail("preload", f"{name} is {cause}: ld.so ignores LD_PRELOAD",
                 f"run a copy without that: cp {path} .")]


def check_elf(elf, ours):
    """Returns findings about an executable; ours: the Elf of our library, or None."""
    name = os.path.basename(elf.path)
    if ours and (elf.bits, elf.machine) != (ours.bits, ours.machine):
        return [fail("preload", f"{name} is a {elf.bits}-bit program for {machine_name(elf)}, the "
                     f"library is {ours.bits}-bit for {machine_name(ours)}",
                     "a libgpushim built for that, or a 64-bit program")]
    if elf.interpreter is None and elf.bits == 64:
        return [fail("preload", f"{name} is static: no ld.so runs that could load a library",
                     "a dynamically linked build of the program")]
    if elf.interpreter is not None and "ld-musl" in elf.interpreter:
        return [fail("preload", f"{name} runs on musl ({elf.interpreter}), the library on glibc",
                     "a build for glibc, such as a Debian image instead of Alpine")]
    return []


def check_program(program, ours):
    """Returns findings about whether ld.so puts the library in front of an ELF program."""
    findings = check_elf(program.elf, ours) + check_secure(program.path)
    if findings:
        return findings
    led = f" (runs {program.scripts[0]})" if program.scripts else ""
    return [ok("preload", f"{program.name} is dynamic, not setuid{led}")]
