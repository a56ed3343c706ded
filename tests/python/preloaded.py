# SPDX-License-Identifier: Apache-2.0
"""Runs a program with and without the preload, and reads where its calls ran.

Programs run on the Python that runs the tests: tests/run.py repeats the suite in every
environment. What is said about where a call ran comes from the audit: `gpushim report` (report)
and the records themselves (records), never from the result.

GPUSHIM_TEST_BUILD  another build folder than build/ (a sanitizer build)
GPUSHIM_TEST_CUDA   real: the machine's own CUDA libraries and device; default: tests/fakecuda
"""
import json
import os
import shutil
import subprocess
import sys
import time
from functools import cached_property

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(ROOT, os.environ.get("GPUSHIM_TEST_BUILD", "build"))
LIBRARY = os.path.join(BUILD, "libgpushim.so")
FAKECUDA = os.path.join(BUILD, "fakecuda")
REAL = os.environ.get("GPUSHIM_TEST_CUDA", "fake") == "real"
LONG = os.environ.get("GPUSHIM_LONG", "0") == "1"

sys.path.insert(0, os.path.join(ROOT, "tools"))
from gpushim_cli import gsl, gsl_header  # noqa: E402  (needs the line above)

RECORD_FIELDS = ("start_ns", "wall_ns", "m", "n", "k", "bytes_in", "bytes_out", "predicted_cpu_s",
                 "predicted_gpu_s", "copy_in_s", "compute_s", "copy_out_s", "kept_s", "cpu_s",
                 "difference", "thread", "detail", "routine", "entry", "reason", "would", "caller",
                 "provider", "where", "device", "options")

fake_only = pytest.mark.skipif(REAL, reason="needs the failures that only tests/fakecuda injects")


def base_environment():
    """Returns the environment without anything of ours in it."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("GPUSHIM_", "FAKECUDA_")) and name != "LD_PRELOAD"}


def preload_environment(folder, mode, settings, cuda="default"):
    """Returns the variables that put the library in front of a program.

    folder: of the audit. cuda: "default", None (where it would look by itself) or a path.
    """
    if not os.path.exists(LIBRARY):
        pytest.fail(f"{LIBRARY} is missing: run make")
    variables = {"LD_PRELOAD": LIBRARY, "GPUSHIM_MODE": mode, "GPUSHIM_AUDIT": "all",
                 "GPUSHIM_AUDIT_DIR": str(folder), "GPUSHIM_RUN_ID": "run"}
    if cuda == "default" and not REAL:
        if not os.path.isdir(FAKECUDA):
            pytest.fail(f"{FAKECUDA} is missing: run make fakecuda")
        variables["GPUSHIM_CUDA_PATH"] = FAKECUDA
    elif cuda not in ("default", None):
        variables["GPUSHIM_CUDA_PATH"] = str(cuda)
    variables.update({"GPUSHIM_" + name: str(value) for name, value in settings.items()})
    return variables


class Outcome:
    """What a program did.

    status, stdout, stderr   as the program left them (bytes decoded as UTF-8)
    seconds                  wall time of the whole process
    folder                   the run's folder in the audit, None without the preload
    """

    def __init__(self, done, seconds, folder):
        self.status = done.returncode
        self.stdout, self.stderr = done.stdout, done.stderr
        self.seconds = seconds
        self.folder = folder

    @property
    def json(self):
        """What the last line of the program's output says."""
        return json.loads(self.stdout.strip().splitlines()[-1])

    @property
    def has_audit(self):
        """Whether any process of the run left an audit file."""
        return os.path.isdir(self.folder) and any(
            name.endswith(".gsl") for name in os.listdir(self.folder))

    @cached_property
    def report(self):
        """The document of gpushim report --json; the report of nothing when there is no file."""
        if not self.has_audit:
            return {"routines": [], "reasons": [], "processes": [], "events": [], "modules": [],
                    "providers": [], "callers": [], "would": []}
        # The checkout's own tool, which finds the tables beside the library.
        done = subprocess.run(
            [sys.executable, os.path.join(ROOT, "tools", "gpushim"), "report", "--json", self.folder],
            env=dict(base_environment(), GPUSHIM_LIBDIR=BUILD), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @cached_property
    def records(self):
        """All records of all processes, as dicts with names in place of indices."""
        rows = []
        if not self.has_audit:
            return rows
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".gsl"):
                rows += read_records(os.path.join(self.folder, name))
        return sorted(rows, key=lambda row: row["start_ns"])

    def calls(self, where=None, routine=None, code=None):
        """Returns how many calls the counters hold, of one side, one routine, one reason."""
        total = 0
        for row in self.report["reasons"]:
            if (where is None or row["where"] == where) and (code is None or row["code"] == code):
                total += sum(count for name, count in row["routines"].items()
                             if routine is None or name == routine)
        return total

    def gpu_calls(self, routine=None):
        """Returns how many calls ran on the device."""
        return self.calls("gpu", routine)

    def codes(self):
        """Returns the set of all reason codes of the run."""
        return {row["code"] for row in self.report["reasons"]}


def read_records(path):
    """Returns the records of one audit file as dicts."""
    file = gsl.AuditFile(path)
    header = file.header
    with open(path, "rb") as raw:
        raw.seek(header.entry_offset)
        names = raw.read(header.entry_count * gsl_header.ENTRY_BYTES)
    width = gsl_header.ENTRY_BYTES
    entries = [gsl_header.text(names[at:at + width]) for at in range(0, len(names), width)]
    rows = []
    for values in file.records(RECORD_FIELDS):
        row = dict(zip(RECORD_FIELDS, values))
        row["routine"] = file.routine(row["routine"])
        row["entry"] = entries[row["entry"]]
        row["code"] = reason_code(row["reason"])
        row["would_code"] = reason_code(row["would"]) if row["would"] else None
        row["caller"], row["provider"] = file.module(row["caller"]), file.module(row["provider"])
        row["where"] = "gpu" if row["where"] else "cpu"
        row["options"] = gsl_header.text(row["options"])
        row["pid"] = header.pid
        rows.append(row)
    return rows


def reason_code(number, letters={}):
    """Returns the code ("S102") of a reason number, by the tables beside the library."""
    if not letters:
        with open(os.path.join(BUILD, "tables.json"), encoding="utf-8") as file:
            letters.update({row["number"]: row["letter"] for row in json.load(file)["reasons"]
                            if row is not None})
    return f"{letters[number]}{number:03}"


def cuda_counts(folder):
    """Returns (variables, function) that count the calls that reach fakecuda.

    The function returns the sum over the processes that opened it, of one entry point if named.
    """
    def calls(name=None):
        key = f"call.{name}" if name else "calls"
        total = 0
        for path in folder.glob("cuda-counts.*"):
            total += int(dict(line.split() for line in path.read_text().splitlines())[key])
        return total

    return {"FAKECUDA_COUNT_FILE": str(folder / "cuda-counts.%p")}, calls


class Runner:
    """Runs programs; every run has an audit folder and a home of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def command(self, command, mode="force", preload=True, cuda="default", env=None, timeout=120,
                check=True, **settings):
        """Runs a command and returns its Outcome; settings are GPUSHIM_ variables without prefix."""
        self.count += 1
        place = self.folder / f"run{self.count}"
        home = place / "home"
        home.mkdir(parents=True)
        environment = dict(base_environment(), HOME=str(home), PYTHONDONTWRITEBYTECODE="1",
                           XDG_CONFIG_HOME=str(home / "config"), XDG_STATE_HOME=str(home / "state"))
        if preload:
            environment.update(preload_environment(place / "audit", mode, settings, cuda))
        environment.update(env or {})
        begin = time.perf_counter()
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, cwd=str(place),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              errors="replace", timeout=timeout, check=False)
        outcome = Outcome(done, time.perf_counter() - begin,
                          str(place / "audit" / "run") if preload else None)
        if check:
            assert outcome.status == 0, outcome.stderr[-4000:] + outcome.stdout[-2000:]
        return outcome

    def python(self, program, *arguments, **options):
        """Runs a program text (or a .py file) on the Python of the tests."""
        form = [program] if program.endswith(".py") else ["-c", program]
        env = dict(options.pop("env", None) or {})
        env["PYTHONPATH"] = os.pathsep.join(
            filter(None, [HERE, env.get("PYTHONPATH", os.environ.get("PYTHONPATH"))]))
        return self.command([sys.executable, *form, *map(str, arguments)], env=env, **options)


@pytest.fixture
def runner(tmp_path):
    """A Runner whose folders vanish with the test."""
    yield Runner(tmp_path)
    shutil.rmtree(tmp_path, ignore_errors=True)
