# SPDX-License-Identifier: Apache-2.0
"""Which test suites of other projects are run, in which Pythons, and what became of each test.

GPUSHIM_PEERS_PYTHONS   Pythons instead of the system's and those of tests/environments.py, with ":"
"""
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import environments
from preloaded import LONG, Runner, base_environment

HERE = os.path.dirname(os.path.abspath(__file__))

# Each side has one of the two cores: with more threads than cores OpenBLAS spins, and
# scikit-learn's conftest.py gives it as many threads as LOKY_MAX_CPU_COUNT says. The tests of huge
# arrays are skipped on both sides and not on one, as the free memory of the moment decides
# otherwise. What is random is the same on both sides.
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1",
            "NPY_AVAILABLE_MEM": "1GB", "SKLEARN_SEED": "0", "SKLEARN_SKIP_NETWORK_TESTS": "1",
            "MPLBACKEND": "Agg"}
TIMEOUT = 3600 if LONG else 300


class Suite:
    """Tests of one subject.

    name       as the summary shows it
    modules    all of them, as pytest's --pyargs takes them; a tuple holds names of one module in
               different versions
    quick      those of make check, None: make check-long only
    keyword    pytest's -k, of all runs
    quick_keyword   pytest's -k of make check
    quick_at   in make check only the environment of this number (in turn), None: in all
    least      calls that must have run on the device in make check
    """

    def __init__(self, name, modules, quick, least, keyword=None, quick_keyword=None,
                 quick_at=None):
        self.name, self.least = name, least
        self.modules = modules if LONG else quick
        self.keyword = keyword if LONG else quick_keyword or keyword
        self.only_at = None if LONG else quick_at

    def due_in(self, names):
        """Returns the environments, of those with these names, in which the suite is due."""
        if self.modules is None:
            return []
        return names if self.only_at is None else [names[self.only_at % len(names)]]


PRODUCTS = "matmul or MatMul or Matmul or dot or Dot or inner or Inner or tensor or Einsum"
MULTIARRAY = ("numpy._core.tests.test_multiarray", "numpy.core.tests.test_multiarray")

SUITES = [
    Suite("numpy-linalg", ["numpy.linalg"], ["numpy.linalg.tests.test_linalg"], 5000,
          quick_keyword="not TestCond"),
    Suite("numpy-products",
          [MULTIARRAY, ("numpy._core.tests.test_numeric", "numpy.core.tests.test_numeric"),
           ("numpy._core.tests.test_einsum", "numpy.core.tests.test_einsum"),
           ("numpy._core.tests.test_regression", "numpy.core.tests.test_regression")],
          [MULTIARRAY], 200, keyword=PRODUCTS),
    Suite("numpy-matrix", ["numpy.matrixlib"], None, 100),
    Suite("scipy-blas",
          ["scipy.linalg.tests.test_blas", "scipy.linalg.tests.test_fblas",
           "scipy.linalg.tests.test_cython_blas"],
          ["scipy.linalg.tests.test_blas", "scipy.linalg.tests.test_fblas",
           "scipy.linalg.tests.test_cython_blas"], 100),
    Suite("scipy-linalg", ["scipy.linalg"], None, 1000),
    Suite("sklearn-metrics", ["sklearn.metrics"], ["sklearn.metrics.tests.test_pairwise"], 100,
          quick_at=1),
    Suite("sklearn-cluster", ["sklearn.cluster"],
          ["sklearn.cluster.tests.test_spectral", "sklearn.cluster.tests.test_birch"], 100,
          quick_at=2),
    Suite("sklearn-decomposition", ["sklearn.decomposition"],
          ["sklearn.decomposition.tests.test_pca"], 100, quick_at=0),
    Suite("sklearn-linear_model", ["sklearn.linear_model"],
          ["sklearn.linear_model.tests.test_base", "sklearn.linear_model.tests.test_bayes"], 100,
          quick_at=1),
]


def pythons():
    """Returns {name: path} of the Pythons, the system's first."""
    given = os.environ.get("GPUSHIM_PEERS_PYTHONS")
    paths = (given.split(":") if given else
             [environments.system_python(), *environments.present()])
    return {environment_name(path): path for path in paths}


def environment_name(python):
    """Returns the name of a Python's environment: of its folder, or "system"."""
    folder = os.path.basename(os.path.dirname(os.path.dirname(python)))
    return folder if folder.startswith(".venv") else "system"


PROBE = """
import importlib.metadata, importlib.util, json, os, sys
versions = {"python": "%d.%d.%d" % sys.version_info[:3]}
for name in ("numpy", "scipy", "scikit-learn", "pytest"):
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
root = os.path.dirname(os.path.dirname(importlib.util.find_spec("numpy").origin))
print(json.dumps({"root": root, "versions": versions}))
"""


@lru_cache(maxsize=None)
def probe(python):
    """Returns the folder of the packages ("root") and their versions, without importing them."""
    done = subprocess.run([python, "-c", PROBE], env=base_environment(), check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def has_module(root, name):
    """Returns whether there is a module or package of this name."""
    path = os.path.join(root, *name.split("."))
    return os.path.exists(path + ".py") or os.path.isdir(path)


def present_modules(python, names):
    """Returns the modules of a suite that this environment has."""
    root = probe(python)["root"]
    alternatives = [(name,) if isinstance(name, str) else name for name in names]
    return [name for group in alternatives
            for name in [name for name in group if has_module(root, name)][:1]]


def read_junit(path):
    """Returns {test: outcome} of a junit file; a name that repeats gets a number."""
    tests, seen = {}, Counter()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        # Addresses in parameters differ from process to process.
        name = re.sub(r"0x[0-9a-f]{6,}", "0x...", name)
        seen[name] += 1
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        tests[name if seen[name] == 1 else f"{name} #{seen[name]}"] = (
            "+".join(sorted(kinds)) or "passed")
    return tests


class Side:
    """One run of a suite: tests as {name: outcome}, outcome of the process, seconds."""

    def __init__(self, runner, python, modules, keyword, preload):
        root = probe(python)["root"]
        junit = str(runner.folder / "junit.xml")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
                   "--rootdir", root, "--assert=plain", f"--junitxml={junit}"]
        command += ["-k", keyword] if keyword else []
        options = dict(preload=False) if not preload else dict(mode="force", AUDIT="counters")
        self.process = runner.command([*command, "--pyargs", *modules], env=SETTINGS,
                                      timeout=TIMEOUT, check=False, **options)
        self.seconds = self.process.seconds
        # 0: all passed, 1: some failed. Anything else is a run that did not end as it should.
        assert self.process.status in (0, 1), (
            f"{'preloaded' if preload else 'plain'}: exit status {self.process.status}\n"
            f"{self.process.stdout[-3000:]}\n{self.process.stderr[-3000:]}")
        self.tests = read_junit(junit)


def run_both(folder, python, modules, keyword):
    """Runs a suite without and with the preload at the same time; returns both sides."""
    def side(name, preload):
        (folder / name).mkdir()
        return Side(Runner(folder / name), python, modules, keyword, preload)

    with ThreadPoolExecutor(2) as pool:
        plain, preloaded = pool.submit(side, "plain", False), pool.submit(side, "preloaded", True)
        return plain.result(), preloaded.result()


def differing(plain, preloaded):
    """Returns [(test, outcome without, outcome with)] of the tests whose outcomes differ."""
    return [(name, plain.get(name, "missing"), preloaded.get(name, "missing"))
            for name in sorted({*plain, *preloaded}) if plain.get(name) != preloaded.get(name)]


def module_of(test, root):
    """Returns the module of a test by its junit name."""
    parts = test.split("::")[0].split(".")
    while parts and not os.path.exists(os.path.join(root, *parts) + ".py"):
        parts.pop()
    return ".".join(parts)


def unstable(folder, python, keyword, differences, repeats=3):
    """Returns the differences that the plain side shows by itself when it is run again."""
    root = probe(python)["root"]
    modules = sorted({module_of(name, root) for name, _, _ in differences} - {""})
    found = set()
    for repeat in range(repeats if modules else 0):
        place = folder / f"again{repeat}"
        place.mkdir()
        again = Side(Runner(place), python, modules, keyword, False).tests
        found |= {row for row in differences if again.get(row[0], "missing") == row[2]}
    return sorted(found)


def allowed():
    """Returns {test: reason} of differences.txt."""
    reasons = {}
    with open(os.path.join(HERE, "differences.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                test, mark, reason = line.strip().partition("  ")
                assert mark and reason.strip(), f"differences.txt: no reason: {line}"
                reasons[test] = reason.strip()
    return reasons
