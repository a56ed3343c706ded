#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that is to be run on a machine with a device, as one command.

    tests/gpu/h200.py              build, correctness, crossover; under eight minutes
    tests/gpu/h200.py --quick      the same steps in small, on fakecuda where there is no device

Writes log.txt, crossover.json and device.json to $OUT (build/gpu without it) and prints the short
table last. carry/ may hold Debian's libopenblas.so.0, libgfortran.so.5 and
libquadmath.so.0: NVBLAS is compared through them. Exit status 1 when a test failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
TESTS = ["tests/gpu/test_device.py", "tests/python/test_products.py",
         "tests/python/test_wheels.py", "tests/python/test_field_cases.py",
         "tests/python/test_field_sharing.py", "tests/python/test_field_processes.py",
         "tests/python/test_field_streams.py"]
# Under vendor variables that lower the precision: everything that checks numbers, once more.
LOWERED = {"NVIDIA_TF32_OVERRIDE": "1", "CUBLAS_EMULATE_DOUBLE_PRECISION": "1",
           "CUBLAS_EMULATE_SINGLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"}
TESTS_AGAIN = ["tests/python/test_products.py", "tests/python/test_field_cases.py"]
# Seconds from the start by which a step must have ended; the crossover's own limit.
TESTS_END, AGAIN_END, CROSSOVER_SECONDS = 290, 335, 140


class Log:
    """Prints and keeps everything in $OUT/log.txt."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.file = open(os.path.join(folder, "log.txt"), "w", encoding="utf-8")
        self.begin = time.monotonic()

    def __call__(self, text):
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def step(self, name, command, seconds, env=None, show=15):
        """Runs one step for at most so many seconds; returns (status, output)."""
        self(f"== {name} (at {time.monotonic() - self.begin:.0f} s)")
        begin = time.monotonic()
        try:
            done = subprocess.run(command, cwd=ROOT, env=dict(os.environ, **(env or {})),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                                  timeout=seconds, check=False)
            status, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            text = late.stdout or b""
            status, output = 124, text if isinstance(text, str) else text.decode("utf-8", "replace")
        except OSError as error:
            status, output = 127, str(error)
        print(output, file=self.file, flush=True)
        print("\n".join(output.splitlines()[-show:]), flush=True)
        self(f"== {name}: status {status} in {time.monotonic() - begin:.0f} s")
        return status, output


def build(log):
    """Builds the library; returns a sentence about what is used."""
    status, _ = log.step("make", ["make", f"-j{len(os.sched_getaffinity(0))}"], 120, show=4)
    if status == 0:
        return "built here"
    if os.path.exists(os.path.join(BUILD, "libgpushim.so")):
        return "make failed: the library that came along is used"
    return "make failed and there is no library"


def device_name():
    """Returns the name of the first device, "" for none."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total",
                               "--format=csv,noheader"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, encoding="utf-8", timeout=60, check=False)
        return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def run_tests(log, name, files, end, env, words=()):
    """Runs pytest on each file until the end; returns the sum of run_file's results."""
    total = {"passed": 0, "failed": 0, "skipped": 0, "failures": [], "reasons": []}
    for file in files:
        seconds = max(5, end - (time.monotonic() - log.begin))
        found = run_file(log, f"{name}-{os.path.basename(file)[:-3]}", file, seconds, env, words)
        total = {key: total[key] + found[key] for key in total}
    return total


def run_file(log, name, file, seconds, env, words):
    """Runs pytest on one file; returns counts, failures and the reasons of skips."""
    junit = os.path.join(BUILD, "gpu", f"junit-{name}.xml")  # $OUT brings few files back
    os.makedirs(os.path.dirname(junit), exist_ok=True)
    if os.path.exists(junit):
        os.unlink(junit)
    status, output = log.step(
        name, [sys.executable, "-m", "pytest", "-q", "-rs", "--tb=short", "-p", "no:cacheprovider",
               f"--junitxml={junit}", file, *words], seconds, env, show=3)
    result = {"passed": 0, "failed": 0, "skipped": 0, "failures": [], "reasons": []}
    if status == 5:  # nothing selected
        return result
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        result["failures"] = [f"{name} did not end (status {status}); last: {output[-200:]!r}"]
        result["failed"] = 1
        return result
    for case in cases:
        bad = [child for child in case if child.tag in ("failure", "error")]
        skipped = [child for child in case if child.tag == "skipped"]
        result["failed" if bad else "skipped" if skipped else "passed"] += 1
        if bad:
            message = (bad[0].get("message") or "").splitlines() or [""]
            result["failures"].append(f"{case.get('name')}: {message[0][:160]}")
        result["reasons"] += [child.get("message", "") for child in skipped]
    return result


def main():
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small; fakecuda without a device")
    parser.add_argument("--only", default="build,tests,again,crossover", help="steps, by comma")
    options = parser.parse_args()
    steps = options.only.split(",")
    out = os.environ.get("OUT") or os.path.join(BUILD, "gpu")
    log = Log(out)
    device = device_name()
    log(f"device: {device or 'none'}; python {sys.version.split()[0]}")
    env = {"PYTHONPATH": os.path.join(ROOT, "tests", "python"),
           "GPUSHIM_TEST_CUDA": "real" if device else "fake"}
    if not device and not options.quick:
        log("no device on this machine: only --quick, on fakecuda, makes sense here")
        return 1
    summary = {"device": device, "build": build(log) if "build" in steps else "as it came"}
    quick = ["-k", "c18 or c31 or c55 or c57 or c99 or numpy or operator"] if options.quick else []
    if "tests" in steps:
        summary["tests"] = run_tests(log, "tests", TESTS, TESTS_END, env, quick)
    if "again" in steps:
        summary["lowered"] = run_tests(log, "lowered", TESTS_AGAIN, AGAIN_END,
                                       dict(env, **LOWERED),
                                       quick or ["-k", "gpu or c18 or c28 or c33 or c41"])
    table = ""
    if "crossover" in steps:
        command = [sys.executable, "bench/crossover.py", "--out", out,
                   "--budget", str(CROSSOVER_SECONDS - 40)]
        command += ["--quick"] if options.quick else []
        command += ["--cuda-path", os.path.join(BUILD, "fakecuda")] if not device else []
        status, table = log.step("crossover", command, CROSSOVER_SECONDS, show=0)
        summary["crossover_status"] = status
    summary["seconds"] = round(time.monotonic() - log.begin)
    with open(os.path.join(out, "device.json"), "w", encoding="utf-8") as file:
        json.dump(summary, file, indent=1)
    print_summary(log, summary, table)
    bad = sum(summary[name]["failed"] for name in ("tests", "lowered") if name in summary)
    return 1 if bad or summary.get("crossover_status", 0) != 0 else 0


def print_summary(log, summary, table):
    """Prints what failed, why tests were skipped, and the table, in this order."""
    for name in ("tests", "lowered"):
        result = summary.get(name)
        if result is None:
            continue
        for reason in sorted(set(result["reasons"])):
            log(f"skipped ({name}): {re.sub(r'.*Skipped: ', '', reason)[:160]}")
        for failure in result["failures"]:
            log(f"FAILED ({name}): {failure}")
        log(f"{name}: {result['passed']} passed, {result['failed']} failed, "
            f"{result['skipped']} skipped")
    log(f"library: {summary['build']}; {summary['seconds']} s in all")
    log(table.rstrip())


if __name__ == "__main__":
    sys.exit(main())
