# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor, the CPU libraries: what to ask them, and what their answers mean."""
import math
import os
import re

from .doctor_findings import note, ok, warn

PREFIXES, SUFFIXES = ("", "scipy_"), ("", "64_", "_64")
PLAIN_THREADS = ["MKL_Get_Max_Threads", "bli_thread_get_num_threads"]
PLAIN_VERSIONS = ["bli_info_get_version_str"]
VARIABLES = (("openblas", "OPENBLAS_NUM_THREADS"), ("mkl", "MKL_NUM_THREADS"),
             ("blis", "BLIS_NUM_THREADS"))
WIDTHS = {4: "LP64", 8: "ILP64", 0: "integer width unknown"}


def questions(facts):
    """Returns what doctor_child.describe_libraries has to know."""
    def openblas(what):
        return [f"{prefix}openblas_get_{what}{suffix}" for prefix in PREFIXES
                for suffix in SUFFIXES]
    spellings = [{"name": entry["spelling"], "gemm": entry["name"],
                  "isamax": entry["name"].replace("dgemm", "isamax"),
                  "cblas": entry["spelling"].startswith("CBLAS")}
                 for entry in facts.entries if entry["routine"] == "dgemm"]
    return {"spellings": spellings, "threads": openblas("num_threads") + PLAIN_THREADS,
            "versions": openblas("config") + PLAIN_VERSIONS}


def vendor(row):
    """Returns what a library is: "OpenBLAS 0.3.21", "MKL", or ""."""
    version = row["version"] or ""
    match = re.match(r"OpenBLAS\s+\S+", version)
    if match:
        return match.group()
    name = os.path.basename(row["path"])
    if "mkl" in name:
        return "MKL"
    return f"BLIS {version}".strip() if "blis" in name else ""


def describe(row):
    """Returns a library with its kind, its integer width and its threads, as a text."""
    widths = sorted({WIDTHS.get(width, "?") for width in row["spellings"].values()})
    threads = row["threads"]
    parts = [vendor(row), *widths,
             "" if threads is None else "1 thread" if threads == 1 else f"{threads} threads"]
    return f"{os.path.basename(row['path'])} ({', '.join(filter(None, parts))})"


def check_width(rows):
    """Returns warnings about libraries whose integer width is not proven."""
    return [warn("capture", f"{os.path.basename(row['path'])}: integer width not proven for "
                 f"{', '.join(sorted(bad))}; such calls stay on the CPU",
                 "use another BLAS", "U310")
            for row in rows
            for bad in [[name for name, width in row["spellings"].items() if width not in (4, 8)]]
            if bad]


def quota_of(text):
    """Returns the cores that a cpu.max allows ("200000 100000": 2), or None."""
    match = re.fullmatch(r"(\d+) (\d+)\s*", text)
    return math.ceil(int(match[1]) / int(match[2])) if match and int(match[2]) else None


def control_group_cores():
    """Returns the cores that the control groups of this process allow, or None."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            group = re.search(r"^0::(/.*)$", file.read(), re.MULTILINE)
    except OSError:
        return None
    folder, found = (group[1] if group else "/"), []
    while True:
        try:
            with open(f"/sys/fs/cgroup{folder}/cpu.max", encoding="ascii") as file:
                found.append(quota_of(file.read()))
        except (OSError, ValueError):
            pass
        if folder == "/":
            return min((cores for cores in found if cores), default=None)
        folder = os.path.dirname(folder)


def allowed_cores():
    """Returns how many cores a program started here may use."""
    return min(len(os.sched_getaffinity(0)), control_group_cores() or math.inf)


def check_threads(rows, cores):
    """Returns findings about the threads of CPU libraries on this many cores."""
    findings = []
    for row in rows:
        threads, name = row["threads"], vendor(row) or os.path.basename(row["path"])
        if threads is None:
            findings.append(note("threads", f"{name} does not say how many it uses"))
        elif threads > cores:
            variable = next((variable for kind, variable in VARIABLES if kind in name.lower()),
                            "OMP_NUM_THREADS")
            findings.append(warn("threads", f"{name} uses {threads} threads on {cores} cores",
                                 f"export {variable}={cores}   (otherwise the GPU looks better "
                                 "than it is)"))
        elif threads < cores:
            findings.append(note("threads", f"{name} uses {threads} of {cores} cores"))
        else:
            findings.append(ok("threads", f"{name} uses {threads} of {cores} cores"))
    return list(dict.fromkeys(findings))
