# SPDX-License-Identifier: Apache-2.0
"""Runs C programs under the preload and reads from the audit where their calls ran.

GPUSHIM_TEST_BUILD: another build folder than build/ (a sanitizer build).
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import lru_cache

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("GPUSHIM_TEST_BUILD", "build"))
LIBRARY = os.path.join(BUILD, "libgpushim.so")
FAKECUDA = os.path.join(BUILD, "fakecuda")
PROGRAMS = os.path.join(BUILD, "tests", "preload")
LONG = os.environ.get("GPUSHIM_LONG", "0") == "1"
WORKERS = os.cpu_count() or 1

sys.path.insert(0, os.path.join(ROOT, "tools"))
from gpushim_cli import merge, tables  # noqa: E402  (needs the line above)

NOTHING = {"routines": [], "reasons": [], "processes": [], "events": [], "modules": [],
           "providers": [], "callers": [], "would": [], "missing": []}


def program(name):
    """Returns the path of a C program of tests/preload."""
    path = os.path.join(PROGRAMS, name)
    assert os.path.exists(path), f"{path} is missing: run make preload-tests"
    return path


def sanitizer():
    """Returns "asan", "tsan" or None: what the build is instrumented with."""
    name = os.path.basename(BUILD)
    return "asan" if name == "build-address" else "tsan" if name == "build-thread" else None


@lru_cache(maxsize=None)
def sanitizer_library():
    """Returns the run-time library that must come before the preload, as a list of paths."""
    if sanitizer() is None:
        return []
    done = subprocess.run(["gcc", f"-print-file-name=lib{sanitizer()}.so"], text=True,
                          stdout=subprocess.PIPE, check=True)
    return [os.path.realpath(done.stdout.strip())]


def base_environment():
    """Returns the environment without anything in it that steers the library or the doubles."""
    steering = ("GPUSHIM_", "FAKECUDA_", "CUDA_", "LD_PRELOAD", "XDG_", "NVIDIA_", "CUBLAS_",
                "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "LOCAL_RANK")
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(steering)}
    # OpenBLAS's own threads do not survive _Fork, and wait for ever in the child.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    # What the library keeps until the process ends is not a leak. _exit is no way to end with
    # 66 (TSan) either: a race would otherwise show as a changed exit status alone.
    environment["ASAN_OPTIONS"] = "detect_leaks=0:verify_asan_link_order=0"
    environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
    return environment


@lru_cache(maxsize=None)
def facts():
    """Returns the tables of the library under test."""
    with open(os.path.join(BUILD, "tables.json"), encoding="utf-8") as file:
        return tables.Tables(json.load(file))


class Result:
    """What a program did.

    status, stdout, stderr, seconds   of the process; a negative status is a signal
    audit                             the run's folder
    counts                            the doubles' count file as a dict, {} when there is none
    """

    def __init__(self, status, stdout, stderr, seconds, audit, count_file):
        self.status, self.stdout, self.stderr, self.seconds = status, stdout, stderr, seconds
        self.audit = audit
        self.report = dict(NOTHING)
        if os.path.isdir(audit) and any(name.endswith(".gsl") for name in os.listdir(audit)):
            self.report = merge.merge(audit, facts())
        self.counts = {}
        if os.path.exists(count_file):
            with open(count_file, encoding="utf-8") as file:
                pairs = (line.split() for line in file)
                self.counts = {name: int(value) for name, value in pairs}

    def __repr__(self):
        return (f"status {self.status}\nstdout: {self.stdout[-2000:]}\n"
                f"stderr: {self.stderr[-4000:]}\nreasons: {self.reasons()}")

    def _sum(self, key, routine):
        return sum(row[key] for row in self.report["routines"]
                   if routine is None or row["routine"] == routine)

    def gpu_calls(self, routine=None):
        """Returns how many calls ran on the device."""
        return self._sum("gpu_calls", routine)

    def cpu_calls(self, routine=None):
        """Returns how many calls ran on the CPU, small ones included, nested ones not."""
        return self._sum("cpu_calls", routine)

    def nested_calls(self, routine=None):
        """Returns how many calls were made inside others."""
        return self._sum("nested_calls", routine)

    def reasons(self, where=None):
        """Returns {code: calls} of one side, or of both."""
        counts = {}
        for row in self.report["reasons"]:
            if where is None or row["where"] == where:
                counts[row["code"]] = counts.get(row["code"], 0) + row["calls"]
        return counts

    def live(self):
        """Returns what the doubles say was not given back, without what is kept on purpose."""
        return {name: value for name, value in self.counts.items()
                if name in ("live.allocations", "live.bytes") and value > 0}


def preload_environment(folder, mode="force", fakecuda=True, env=None, before=(), after=()):
    """Returns the environment of a preloaded program.

    before, after: other libraries in LD_PRELOAD, in front of ours and behind it.
    """
    environment = base_environment()
    environment.update(
        HOME=str(folder), GPUSHIM_MODE=mode, GPUSHIM_AUDIT="all",
        GPUSHIM_AUDIT_DIR=os.path.join(str(folder), "audit"), GPUSHIM_RUN_ID="run",
        LD_PRELOAD=":".join([*sanitizer_library(), *before, LIBRARY, *after]),
        FAKECUDA_COUNT_FILE=os.path.join(str(folder), "counts"),
        # Where there is no double, no real device may step in either.
        GPUSHIM_CUDA_PATH=FAKECUDA if fakecuda else "/nonexistent")
    environment.update(env or {})
    return {name: value for name, value in environment.items() if value is not None}


def run(command, environment, folder, timeout=60, **options):
    """Runs a command to its end; returns a Result."""
    begin = time.perf_counter()
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, cwd=str(folder),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          errors="replace", timeout=timeout, check=False, **options)
    return Result(done.returncode, done.stdout, done.stderr, time.perf_counter() - begin,
                  os.path.join(str(folder), "audit", "run"), os.path.join(str(folder), "counts"))


def run_preloaded(command, mode="force", fakecuda=True, env=None, before=(), after=(), timeout=60,
                  **options):
    """Runs a command under the preload, in a folder of its own; returns a Result.

    env: further variables; None as a value removes one.
    """
    with tempfile.TemporaryDirectory(prefix="gs-test-") as folder:
        environment = preload_environment(folder, mode, fakecuda, env, before, after)
        return run(command, environment, folder, timeout, **options)


def run_plain(command, env=None, timeout=60, **options):
    """Runs a command without the preload; returns a Result."""
    with tempfile.TemporaryDirectory(prefix="gs-test-") as folder:
        environment = dict(base_environment(), HOME=folder, **(env or {}))
        if sanitizer_library():
            environment["LD_PRELOAD"] = ":".join(sanitizer_library())
        return run(command, environment, folder, timeout, **options)


def check_good(result, stdout=None):
    """Asserts that a program ended well and said nothing it should not."""
    assert result.status == 0, result
    assert result.stderr == "", result
    if stdout is not None:
        assert result.stdout == stdout, result
    return result
