# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor, programs that are no Python: which BLAS they are linked to.

The ELF files are followed as ld.so would; nothing of the program is run.
"""
import os
import re
import shutil
import subprocess
import sys

from .doctor_ask import ask
from .doctor_blas import describe, questions
from .doctor_elf import Elf, NotElf
from .doctor_findings import fail, ok, warn
from .output import plural

DEFAULT_FOLDERS = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"]
LIBRARIES_MAX = 2000
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "busybox")
LATER = "one that it opens later cannot be told from here"
ASK_A_RUN = "gpushim run -v it, then gpushim report: what was intercepted stands there"


def loader_cache():
    """Returns the libraries of the loader's cache: name -> list of paths."""
    tool = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    cache = {}
    if tool is None:
        return cache
    try:
        done = subprocess.run([tool, "-p"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=20, check=False,
                              encoding="utf-8", errors="surrogateescape")
    except (OSError, subprocess.SubprocessError):
        return cache
    for name, path in re.findall(r"^\t(\S+) \(.*\) => (.+)$", done.stdout, re.MULTILINE):
        cache.setdefault(name, []).append(path)
    return cache


class Links:
    """Everything an executable is linked to.

    objects   list of Elf, the executable first, in the order in which ld.so loads them
    missing   names that are not found
    """

    def __init__(self, path, wanted):
        self._wanted, self._cache = wanted, loader_cache()
        self._paths = [folder for folder in
                       os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":") if folder]
        self.missing = []
        self.objects = [Elf(path, wanted)]
        self._known = {os.path.realpath(path)}
        self._follow()

    def _follow(self):
        """Adds what the objects need, level by level."""
        parents = {0: []}
        at = 0
        while at < len(self.objects) < LIBRARIES_MAX:
            elf = self.objects[at]
            chain = [*elf.rpath, *parents[at]]
            for name in elf.needed:
                found = self._find(name, elf, chain)
                if found is not None:
                    parents[len(self.objects)] = chain
                    self.objects.append(found)
            at += 1

    def _find(self, name, elf, chain):
        """Returns the Elf of a library that elf needs; None when known already, or missing."""
        if any(other.soname == name for other in self.objects):
            return None
        for path in self._candidates(name, elf, chain):
            try:
                found = Elf(path, self._wanted)
            except (OSError, NotElf):
                continue
            if (found.bits, found.machine) != (elf.bits, elf.machine):
                continue
            real = os.path.realpath(path)
            if real in self._known:
                return None
            self._known.add(real)
            return found
        self.missing.append(name)
        return None

    def _candidates(self, name, elf, chain):
        """Returns the paths at which ld.so looks for a name, in its order."""
        if "/" in name:
            return [name]
        folders = [*([] if elf.runpath else chain), *self._paths, *elf.runpath]
        return [*(os.path.join(folder, name) for folder in folders), *self._cache.get(name, []),
                *(os.path.join(folder, name) for folder in DEFAULT_FOLDERS)]


def no_blas(program, links):
    """Returns the finding about a program that is not linked to any BLAS."""
    if program.name in SHELLS:
        script = program.scripts[0] if program.scripts else program.name
        return warn("capture", f"{script} is a shell script: the programs it starts inherit the "
                    "library; which ones cannot be told from here",
                    "gpushim doctor -- the program that it starts")
    return warn("capture", f"{program.name} is linked to no BLAS "
                f"({plural(len(links.objects) - 1, 'shared object')} followed); {LATER}", ASK_A_RUN)


def check_users(program, links, providers):
    """Returns the finding about who calls the BLAS that a program is linked to, and which it is."""
    inside = {id(elf) for elf in providers}
    users = [elf for elf in links.objects if elf.undefined and id(elf) not in inside]
    names = ", ".join(os.path.basename(elf.path) for elf in providers)
    if not users:
        return warn("capture", f"{program.name} is linked to {names} and takes none of its names: "
                    "calls through dlsym go past the library", ASK_A_RUN)
    callers = ", ".join(os.path.basename(elf.path) for elf in users[:4])
    callers += f" and {len(users) - 4} more" if len(users) > 4 else ""
    return ok("capture", f"{callers} -> {names}")


def check_links(program, facts):
    """Returns (findings about the BLAS of a program that is no Python, rows of its libraries).

    The rows are those of doctor_child.describe_libraries.
    """
    try:
        links = Links(program.path, {entry["name"] for entry in facts.entries})
    except (OSError, NotElf) as error:
        return [warn("capture", f"{program.path} cannot be followed: {error}", ASK_A_RUN)], []
    findings = [warn("capture", f"not found: {name}", "LD_LIBRARY_PATH, or install it")
                for name in links.missing]
    if links.objects[0].defined:
        text = (f"{program.name} holds a BLAS of its own ({sorted(links.objects[0].defined)[0]}, "
                "…): its calls never leave it")
        return findings + [fail("capture", text, "link the program to a shared BLAS")], []
    providers = [elf for elf in links.objects[1:] if elf.defined]
    if not providers:
        return findings + [no_blas(program, links)], []
    findings.append(check_users(program, links, providers))
    answer, problem = ask([sys.executable], "libraries", paths=[elf.path for elf in providers],
                          **questions(facts))
    rows = answer["blas"] if answer else []
    if answer is None:
        findings.append(warn("capture", f"asking the libraries: {problem}", ASK_A_RUN))
    elif rows:
        findings.append(ok("capture", "; ".join(describe(row) for row in rows)))
    return findings, rows
