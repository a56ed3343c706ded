# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor, Python programs: a probe in the program's interpreter, under the preload.

The user's program is not run. NumPy, SciPy and scikit-learn, as far as they are installed there,
compute one product each in mode observe, and the audit tells which of them came through.
"""
import os
import tempfile

from . import rundir
from .doctor_ask import ask
from .doctor_blas import check_width, describe, questions
from .doctor_elf import Elf, NotElf
from .doctor_findings import fail, note, ok, warn
from .doctor_here import is_mapped, preloaded_environment
from .doctor_program import check_elf, check_secure
from .gsl import AuditFile, FormatError

PACKAGES = ["numpy", "scipy", "sklearn"]
SETTINGS = {"MODE": "observe", "AUDIT": "all", "MIN_TIME": "1ns", "ROUTINES": "all",
            "VERBOSE": "0", "RUN_ID": "doctor", "AUDIT_LIMIT": "16M"}
NOT_SEEN = ("its products did not come through the library: modules opened with RTLD_DEEPBIND, "
            "names fetched by dlsym, a static BLAS, or names that gpushim symbols does not list")


class Probe:
    """What a probe found.

    answer    what doctor_child.ask_python says, or None; problem: why there is no answer
    blas      the rows of the BLAS libraries that are mapped
    links     calling module -> CPU library, paths as in the audit
    """

    def __init__(self, answer, problem, links, library):
        self.answer, self.problem, self.links = answer, problem, links
        self.blas = [row for row in (answer["blas"] if answer else [])
                     if not is_same(row["path"], library)]

    def packages(self):
        """Returns the rows of the packages that the interpreter has."""
        return self.answer["packages"] if self.answer else []

    def module(self):
        """Returns the path of a module of the program that calls BLAS, or ""."""
        return next((row["file"] for row in self.packages()), "")

    def libraries(self):
        """Returns the rows of the CPU libraries that served a call; of all that are mapped when
        none did."""
        served = [row for row in self.blas if any(is_same(path, row["path"])
                                                  for path in self.links.values())]
        return served or self.blas


def is_same(path, other):
    """Returns whether two paths are of one file; audit files cut the front off long ones."""
    if path.startswith("..."):
        return other.endswith(path[3:])
    return os.path.realpath(path) == os.path.realpath(other)


def audit_links(folder):
    """Returns calling module -> CPU library of all records of a run."""
    links = {}
    if not os.path.isdir(folder):
        return links
    for path in rundir.files_ending(folder, ".gsl"):
        try:
            file = AuditFile(path)
            for caller, provider in file.records(("caller", "provider")):
                links[file.module(caller)] = file.module(provider)
        except (FormatError, OSError):
            continue
    return links


def run_probe(python, library, facts):
    """Returns the Probe of an interpreter (the words that start it) under the library."""
    with tempfile.TemporaryDirectory(prefix="gpushim-doctor-") as folder:
        variables = {f"GPUSHIM_{name}": value for name, value in SETTINGS.items()}
        environment = preloaded_environment(library, GPUSHIM_AUDIT_DIR=folder, **variables)
        answer, problem = ask(python, "python", environment, packages=PACKAGES,
                              **questions(facts))
        links = audit_links(os.path.join(folder, SETTINGS["RUN_ID"]))
        return Probe(answer, problem, links, library)


def check_mapped(program, probe, library, ours):
    """Returns findings about whether the library got into the interpreter."""
    exe = probe.answer["exe"]
    name = os.path.basename(exe)
    led = f" (runs {program.scripts[0]})" if program.scripts else ""
    try:
        findings = check_elf(Elf(exe), ours) + check_secure(exe)
    except (OSError, NotElf):
        findings = []
    if findings:
        return findings
    if not is_mapped(library, probe.answer["files"]):
        return [fail("preload", f"{name} runs without the library in it: LD_PRELOAD is taken "
                     "away on the way", f"start the interpreter itself: {exe}")]
    return [ok("preload", f"{name} is dynamic, not setuid; ld.so maps the library{led}")]


def own_callers(package, probe):
    """Returns the libraries that served the modules of a package."""
    part = f"/{package['name']}/"
    return [path for caller, path in probe.links.items() if part in caller]


def library_text(path, probe, told):
    """Returns a served library, described the first time it is told."""
    if path in told:
        return "the same"
    told.add(path)
    row = next((row for row in probe.blas if is_same(path, row["path"])), None)
    return describe(row) if row else os.path.basename(path)


def check_package(package, probe, told):
    """Returns the Finding about one package; told: libraries that were described before."""
    name = f"{package['name']} {package['version']}".strip()
    if package["error"]:
        return warn("capture", f"{name}: {package['error']}", "repair its installation")
    paths = list(dict.fromkeys(own_callers(package, probe)))
    if paths:
        return ok("capture", f"{name} -> " + ", ".join(library_text(path, probe, told)
                                                       for path in paths))
    if package["name"] == "sklearn" and probe.links:
        return ok("capture", f"{name} through numpy and scipy")
    if not probe.blas:
        return fail("capture", f"{name} has no BLAS library mapped: it was built without one, or "
                    "with a static one", "install the wheel, or the packages of the system")
    mapped = ", ".join(os.path.basename(row["path"]) for row in probe.blas)
    return fail("capture", f"{name} ({mapped}): {NOT_SEEN}",
                "gpushim symbols; sys.getdlopenflags() in the program")


def check_packages(program, probe):
    """Returns findings about the packages of an interpreter."""
    if not probe.packages():
        return [warn("capture", f"{program.name} has none of numpy, scipy, sklearn; what other "
                     "modules call cannot be told from here",
                     "gpushim run -v it, then gpushim report")]
    told = set()
    findings = [check_package(row, probe, told) for row in probe.packages()]
    return findings + check_width(probe.libraries())


def check_python(program, library, ours, facts):
    """Returns (findings, Probe or None) about a Python program."""
    if library is None:
        return [note("capture", "not tried: there is no library to put in front")], None
    probe = run_probe(program.python, library, facts)
    if probe.answer is None:
        text = f"a probe in {' '.join(program.python)}: {probe.problem}"
        return [fail("capture", text, "does that Python work without gpushim?")], probe
    return check_mapped(program, probe, library, ours) + check_packages(program, probe), probe
