# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor, what does not depend on the program: the library, settings, audit, limits."""
import os
import re
import resource
import subprocess
import sys
import tempfile

from . import rundir, settings
from .doctor_ask import ending
from .doctor_elf import UNAME_MACHINES, Elf, NotElf, machine_name
from .doctor_findings import fail, note, ok, warn
from .errors import CliError
from .output import data_size
from .places import LIBRARY, find_file
from .run import preload

NEEDED = re.compile(r"lib[cm]\.so\.6|ld-linux.*\.so\.\d")
NETWORK_SYSTEMS = re.compile(r"nfs\d?|cifs|smb3?|smbfs|lustre|gpfs|beegfs|ceph|afs|9p|panfs|wekafs|"
                             r"pvfs2|orangefs|fuse\.(sshfs|glusterfs|ceph.*|s3fs|gcsfuse)")
FIRST_BYTES = 2 << 20  # an audit file takes somewhat less at once
SHOW_MAPS = "print(open('/proc/self/maps', errors='replace').read())"
MODES = {"off": (fail, "P701", "the library is inert"),
         "observe": (warn, "P705", "the CPU runs everything, decisions are only recorded"),
         "verify": (warn, "P707", "the CPU results are kept, the GPU is only compared with them")}


def preloaded_environment(library, **variables):
    """Returns the environment of a program with the library in front; CliError as in run."""
    environment = dict(os.environ, **variables)
    environment["LD_PRELOAD"] = preload(library, environment.get("LD_PRELOAD", ""))
    return environment


def is_mapped(library, files):
    """Returns whether the library is among the files mapped into a process."""
    return os.path.realpath(library) in map(os.path.realpath, files)


def load_problem(library):
    """Returns why ld.so does not load the library into this Python, or None when it does."""
    command = [sys.executable, "-I", "-S", "-c", SHOW_MAPS]
    done = subprocess.run(command, env=preloaded_environment(library, GPUSHIM_MODE="off"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)
    rows = [line.split(None, 5) for line in done.stdout.splitlines()]
    paths = {row[5] for row in rows if len(row) == 6}
    if done.returncode == 0 and is_mapped(library, paths):
        return None
    if done.returncode != 0:
        return ending(done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if LIBRARY in line]
    return lines[0] if lines else "it is not mapped"


def check_library(facts):
    """Returns (path of the library or None when it cannot be used, its Elf, findings)."""
    remedy = "run make again, or name another folder by GPUSHIM_LIBDIR"
    try:
        path = find_file(LIBRARY)
        elf = Elf(path)
        if elf.bits != 64 or elf.machine != UNAME_MACHINES.get(os.uname().machine, elf.machine):
            text = f"{path} is for {machine_name(elf)} ({elf.bits} bits), not for this machine"
            return None, None, [fail("library", text, "build it here: make clean; make")]
        problem = load_problem(path)
    except CliError as error:
        return None, None, [fail("library", str(error), "make, or set GPUSHIM_LIBDIR")]
    except (NotElf, OSError) as error:
        return None, None, [fail("library", f"{LIBRARY} cannot be used: {error}", remedy)]
    if problem is not None:
        return None, None, [fail("library", f"ld.so does not load it: {problem}", remedy)]
    extra = [name for name in elf.needed if not NEEDED.fullmatch(name)]
    if extra:
        text = f"{path} brings {', '.join(extra)} into every program"
        return path, elf, [warn("library", text, "build it without EXTRA_LDFLAGS and SAN")]
    return path, elf, [ok("library", f"{path} ({machine_name(elf)}) loads; libgpushim "
                                     f"{facts.version}, needs {' and '.join(elf.needed)} only")]


def check_exported_preload(library):
    """Returns findings about an LD_PRELOAD that is set where doctor runs."""
    entries = [entry for entry in re.split(r"[ :]+", os.environ.get("LD_PRELOAD", "")) if entry]
    ours = [entry for entry in entries if os.path.basename(entry).startswith(LIBRARY)]
    others = [entry for entry in ours
              if library and os.path.realpath(entry) != os.path.realpath(library)]
    if others:
        return [warn("library", f"LD_PRELOAD holds another copy: {', '.join(others)}",
                     "unset LD_PRELOAD; gpushim run sets it for one program")]
    if ours:
        return [note("library", "LD_PRELOAD is exported here: every command loads the library; "
                                "gpushim run sets it for one program alone")]
    return []


def check_settings(chosen):
    """Returns findings about GPUSHIM_ variables and settings files."""
    findings = [warn("settings", remark, "gpushim env lists values and where they come from",
                     "P709") for remark in chosen.remarks]
    if chosen.values["WARN_UNKNOWN"].lower() in ("1", "yes", "on", "true"):
        for row in chosen.unknown:
            remedy = f"set {row['nearest']} instead?" if row["nearest"] else f"unset {row['name']}"
            findings.append(warn("settings", f"{row['name']} is not a setting", remedy, "P709"))
    if not findings:
        findings.append(ok("settings", set_values(chosen) or "every setting has its default"))
    mode = chosen.values["MODE"].lower()
    if mode in MODES:
        status, code, text = MODES[mode]
        text = f"GPUSHIM_MODE={mode} ({chosen.sources['MODE']}): {text}"
        findings.append(status("settings", text, "GPUSHIM_MODE=auto", code))
    return findings


def set_values(chosen):
    """Returns the settings that are not at their default, as a text."""
    return ", ".join(f"{settings.PREFIX}{name}={value} ({chosen.sources[name]})"
                     for name, value in chosen.values.items()
                     if chosen.sources[name] != "default")


def file_system(path):
    """Returns the type of the file system that the real path lies on, or "?"."""
    best, kind = "", "?"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                left, _, right = line.partition(" - ")
                # Blanks in a mount point are written as octal escapes.
                point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), left.split()[4])
                if len(point) >= len(best) and (path + "/").startswith(point.rstrip("/") + "/"):
                    best, kind = point, right.split()[0]
    except (OSError, IndexError):
        pass
    return kind


def existing_part(folder):
    """Returns the longest part of an absolute path that exists."""
    while folder != "/" and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return folder


def write_problem(folder):
    """Returns why an audit file cannot be written below an existing folder, or None."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            room = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
            if room == resource.RLIM_INFINITY or room >= FIRST_BYTES:
                os.posix_fallocate(file.fileno(), 0, FIRST_BYTES)
        return None
    except OSError as error:
        return error.strerror or str(error)


def check_audit(chosen):
    """Returns findings about the folder of the audit files."""
    other = "set GPUSHIM_AUDIT_DIR to a folder on a local disk that can be written"
    if chosen.values["AUDIT"].lower() == "off":
        return [note("log", "GPUSHIM_AUDIT=off: nothing is recorded, gpushim report has nothing")]
    try:
        folder = os.path.abspath(rundir.audit_folder(list(chosen.rows.values())))
    except CliError:
        return [warn("log", "neither HOME nor XDG_STATE_HOME is set: nothing is recorded", other)]
    existing = existing_part(folder)
    problem = write_problem(existing)
    if problem is not None:
        text = f"{folder}: {problem} ({existing}); nothing is recorded, only counted"
        return [warn("log", text, other)]
    kind, room = file_system(os.path.realpath(existing)), os.statvfs(existing)
    free = room.f_bavail * room.f_frsize
    text = f"{folder} ({kind}, {data_size(free)} free)"
    if NETWORK_SYSTEMS.fullmatch(kind):
        return [warn("log", f"{text} is a network file system: recording is slow there", other)]
    if free < settings.size_bytes(chosen.values["AUDIT_LIMIT"]):
        return [warn("log", f"{text}: less than GPUSHIM_AUDIT_LIMIT, records may be cut", other)]
    return [ok("log", text)]


def check_limits(chosen):
    """Returns findings about the limits of this shell."""
    findings = []
    file_limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    wanted = settings.size_bytes(chosen.values["AUDIT_LIMIT"])
    if file_limit != resource.RLIM_INFINITY and file_limit < wanted:
        text = f"ulimit -f cuts the audit file at {data_size(file_limit)}"
        findings.append(warn("limits", text, "ulimit -f unlimited"))
    memory_limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if memory_limit != resource.RLIM_INFINITY:
        text = (f"ulimit -v allows {data_size(memory_limit)} of addresses; CUDA reserves as many "
                "as the machine has host and device memory")
        findings.append(warn("limits", text, "ulimit -v unlimited", "L809"))
    return findings
