# SPDX-License-Identifier: Apache-2.0
"""Octave, R, joblib and Dask, end to end: without the preload, on fakecuda, and without a device.

On the device results agree to rounding; without one (auto) every byte of the output is the same.
"""
import os
import shutil
import subprocess

import numpy as np
import pytest
from suites import HERE, LONG, pythons

PROGRAMS = os.path.join(HERE, "programs")
PYTHONS = pythons()
NAMES = list(PYTHONS) if LONG else list(PYTHONS)[-1:]  # the newest
THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def program(name):
    """Returns the path of a program of this folder."""
    return os.path.join(PROGRAMS, name)


def matrices(text):
    """Returns {name: elements} of what the Octave and R programs print."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, rows, columns = line.split()
        found[name] = np.array([float(next(lines)) for _ in range(int(rows) * int(columns))])
    return found


def assert_close(a, b, tolerance, name=""):
    """Asserts that two results agree relative to the largest element."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and np.isfinite(a).all(), name
    assert np.abs(a - b).max() <= tolerance * np.abs(a).max(), name


def check_unchanged(runner, command, plain):
    """Without a device, stdout and stderr are those of the plain run, byte for byte."""
    outcome = runner.command(command, mode="auto", cuda="/nonexistent", env=THREADS)
    assert outcome.stdout == plain.stdout
    assert outcome.stderr == plain.stderr
    assert outcome.gpu_calls() == 0


def check_interpreter(runner, command, routines):
    """Runs a program of Octave or R; returns the preloaded outcome and its results."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}: apt-get install octave r-base-core")
    plain = runner.command(command, preload=False, env=THREADS)
    forced = runner.command(command, mode="force", env=THREADS)
    assert forced.stderr == plain.stderr
    before, after = matrices(plain.stdout), matrices(forced.stdout)
    assert list(before) == list(after)
    for name, values in before.items():
        assert_close(values, after[name], 1e-5 if name == "single" else 1e-9, name)
    for routine in routines:
        assert forced.gpu_calls(routine) > 0, (routine, forced.report["reasons"])
    assert not {code for code in forced.codes() if code[0] in "EML"}
    check_unchanged(runner, command, plain)
    return forced, after


def test_octave(runner):
    """`*`, products with a transpose, `\\` and what stands on chol, lu, qr and svd."""
    forced, _ = check_interpreter(
        runner, ["octave-cli", "--quiet", "--no-init-file", program("products.m")],
        ["dgemm", "sgemm", "zgemm", "dsyrk", "zherk"])
    assert any("liboctave" in row["caller"] for row in forced.records)


def test_r(runner):
    """`%*%`, crossprod, tcrossprod, solve, chol2inv, lm, and prcomp five times (C49)."""
    forced, results = check_interpreter(
        runner, ["Rscript", "--vanilla", program("products.R")],
        ["dgemm", "zgemm", "dsyrk", "dtrsm", "dtrmm"])
    assert any("libR.so" in row["caller"] for row in forced.records)
    for i in range(2, 6):
        assert (results[f"components{i}"] == results["components1"]).all()


def need(python, module):
    """Skips the test when this Python lacks the module."""
    done = subprocess.run([python, "-c", f"import {module}"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        pytest.skip(f"{python} has no {module}")


def check_python(runner, python, *command):
    """Runs a Python program without and with the preload; returns the preloaded outcome."""
    command = [python, program(command[0]), *command[1:]]
    plain = runner.command(command, preload=False, env=THREADS)
    forced = runner.command(command, env=THREADS)
    assert forced.stderr == plain.stderr
    before, after = plain.json["results"], forced.json["results"]
    assert len(before) == len(after)
    for a, b in zip(before, after):
        assert_close(a, b, 1e-12)
    assert not {code for code in forced.codes() if code[0] in "EM"}, forced.report["reasons"]
    unchanged = runner.command(command, mode="auto", cuda="/nonexistent", env=THREADS)
    assert unchanged.json["results"] == before and unchanged.stderr == plain.stderr
    return forced


@pytest.mark.parametrize("parent", ["first", "idle"])
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize("name", NAMES)
def test_joblib(runner, name, backend, parent):
    """Workers are in the report: with a device of their own, or on the CPU as forked (L806)."""
    need(PYTHONS[name], "joblib")
    outcome = check_python(runner, PYTHONS[name], "joblib_products.py", backend, parent)
    pids = outcome.json
    rows = {row["pid"]: row for row in outcome.report["processes"]}
    assert set(pids["workers"]) <= set(rows), "a worker without a row in the report"
    codes = {pid: {row["code"] for row in outcome.records if row["pid"] == pid} for pid in rows}
    assert sum(row["calls"] for row in outcome.report["reasons"]) == len(pids["results"])
    if parent == "first":
        assert codes[pids["parent"]] == {"R002"}
    # A child forked from a process with a live device may not use it.
    expected = "L806" if (backend, parent) == ("multiprocessing", "first") else "R002"
    for worker in pids["workers"]:
        assert codes[worker] == {expected}
    if backend == "threading":
        assert pids["workers"] == [pids["parent"]] and len(rows) == 1
    else:
        assert len(pids["workers"]) == 2 and pids["parent"] not in pids["workers"]


@pytest.mark.parametrize("name", NAMES)
def test_dask(runner, name):
    """Several threads of one process use the device at once."""
    need(PYTHONS[name], "dask.array")
    outcome = check_python(runner, PYTHONS[name], "dask_products.py")
    assert outcome.json["threads"] > 1
    assert outcome.gpu_calls("dgemm") > 10
    assert len({row["thread"] for row in outcome.records if row["where"] == "gpu"}) > 1
    assert {row["pid"] for row in outcome.report["processes"]} == {outcome.json["parent"]}
