#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The virtual environments of the end-to-end tests, which hold the wheels.

    tests/environments.py --list     makes what is missing or out of date, prints their Pythons
    tests/environments.py --have     prints those that are there, makes nothing

.venv is made by the system's Python, .venv-3.13 or .venv-3.12 by a newer one where there is one
(the newest NumPy and SciPy need Python 3.12). One line on stderr for each thing that is missing;
exit status 1 when an environment could not be made.
"""
import argparse
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REQUIREMENTS = os.path.join(ROOT, "tests", "requirements.txt")
STAMP = "gpushim-requirements"
NEWER = ("3.13", "3.12")  # one is enough; the first that works is taken
IMPORTS = "import numpy, scipy.linalg, sklearn"


class Missing(Exception):
    """Says in one line what an environment lacks."""


def works(python, code):
    """Returns whether this Python runs the code."""
    try:
        return subprocess.run([python, "-c", code], stdin=subprocess.DEVNULL, timeout=120,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def system_python():
    """Returns the distribution's Python, or the one that runs this when there is none."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def newer_python():
    """Returns (version, path) of a Python newer than the system's that can make environments."""
    for version in NEWER:
        places = [shutil.which("python" + version)]
        places += sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}*/bin/python3")))
        for place in filter(None, places):
            # Version managers leave shims of versions that are not there.
            if works(place, f"import ssl, venv, ctypes, sys; "
                            f"assert '%d.%d' % sys.version_info[:2] == '{version}'"):
                return version, place
    return None


def wanted_stamp(maker):
    """Returns what the stamp of an up-to-date environment says."""
    with open(REQUIREMENTS, "rb") as file:
        return f"{maker} {hashlib.sha256(file.read()).hexdigest()}\n"


def is_current(folder, stamp):
    """Returns whether the environment is there and was made from today's requirements."""
    try:
        with open(os.path.join(folder, STAMP), encoding="utf-8") as file:
            return file.read() == stamp and os.access(os.path.join(folder, "bin", "python"), os.X_OK)
    except OSError:
        return False


def step(what, command):
    """Runs one step; Missing with the last line it printed when it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        raise Missing(f"{what}: {error}") from error
    if done.returncode != 0:
        last = (done.stdout.strip() or "no message").splitlines()[-1]
        raise Missing(f"{what} failed: {last}")


def make(folder, maker):
    """Makes or completes one environment; the stamp comes last, so a broken one is made again."""
    name = os.path.basename(folder)
    stamp = wanted_stamp(maker)
    if is_current(folder, stamp):
        return
    print(f"making {name} with {maker}", file=sys.stderr)
    # With --clear an environment that others may be running would vanish under them.
    step(f"{name}: python -m venv", [maker, "-m", "venv", folder])
    python = os.path.join(folder, "bin", "python")
    step(f"{name}: pip install -r tests/requirements.txt",
         [python, "-m", "pip", "install", "-q", "-r", REQUIREMENTS])
    if not works(python, IMPORTS):
        raise Missing(f"{name}: NumPy, SciPy or scikit-learn cannot be imported")
    with open(os.path.join(folder, STAMP), "w", encoding="utf-8") as file:
        file.write(stamp)


def wanted():
    """Returns the list of (folder, maker) of the virtual environments."""
    chosen = [(os.path.join(ROOT, ".venv"), system_python())]
    newer = newer_python()
    if newer is not None:
        chosen.append((os.path.join(ROOT, ".venv-" + newer[0]), newer[1]))
    return chosen


def present():
    """Returns the Pythons of the environments that are ready now."""
    return [os.path.join(folder, "bin", "python") for folder, maker in wanted()
            if is_current(folder, wanted_stamp(maker))]


def make_all():
    """Makes every environment; returns sentences about those that could not be made."""
    problems = []
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    # Two runs of the tests at once: the second waits and finds them made.
    with open(os.path.join(ROOT, "build", "environments.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for folder, maker in wanted():
            try:
                make(folder, maker)
            except Missing as missing:
                problems.append(str(missing))
    return problems


def main():
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description="Makes and lists the environments of the tests.")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--list", action="store_true", help="make what is missing (the default)")
    group.add_argument("--have", action="store_true", help="make nothing")
    options = parser.parse_args()
    problems = [] if options.have else make_all()
    for python in present():
        print(python)
    for text in problems:
        print(f"tests/environments.py: {text}", file=sys.stderr)
    if newer_python() is None:
        print("tests/environments.py: no Python 3.12 or 3.13, so the newest NumPy and SciPy are not "
              "tested", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
