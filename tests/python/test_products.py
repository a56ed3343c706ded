# SPDX-License-Identifier: Apache-2.0
"""Property tests of matrix products, on the GPU and on the CPU.

Hypothesis makes the cases inside the process under test (properties_products.py), so that thousands
of them share one start; from the audit we then learn where they ran.
"""
import os
import sys

import pytest
from preloaded import HERE, LONG, runner  # noqa: F401

PROPERTIES = os.path.join(HERE, "properties_products.py")
EACH_TYPE_AT_LEAST = 100
ALLOWED = {"R002", "S103", "U305"}  # forced; empty; an output that overlaps an operand


def run_properties(runner, *words, **options):  # noqa: F811
    """Runs pytest on the properties in one process of its own."""
    env = {"PRODUCTS_LONG": str(int(LONG)), "PYTHONPATH": HERE}
    # A failing property is shrunk for up to five minutes: the first failure is enough to know.
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly",
               "--rootdir", HERE, "-o", "python_files=properties_*.py", PROPERTIES, *words]
    return runner.command(command, env=env, timeout=3000 if LONG else 120, **options)


def test_reference_holds_without_the_preload(runner):  # noqa: F811
    """The bounds are right for the CPU library: what fails below is ours."""
    run_properties(runner, preload=False)


def test_on_the_gpu(runner):  # noqa: F811
    outcome = run_properties(runner, mode="force")
    for letter in "sdcz":
        assert outcome.gpu_calls(letter + "gemm") >= EACH_TYPE_AT_LEAST
    assert outcome.codes() <= ALLOWED
    # The device is used by NumPy's products and by SciPy's, each through its own library.
    entries = {row["entry"] for row in outcome.records if row["where"] == "gpu"}
    assert any("cblas" in name for name in entries) and any("cblas" not in name for name in entries)


@pytest.mark.parametrize("mode, code", [("verify", "P707"), ("observe", "P705")])
def test_cpu_results_beside_the_decision(runner, mode, code):  # noqa: F811
    """verify: the library compares both sides itself and finds no difference (E905)."""
    # A small run of the same properties: what is tested here is the way, not the arithmetic.
    outcome = run_properties(runner, "-k", "operator or scipy", mode=mode, MIN_TIME="0s")
    assert outcome.gpu_calls() == 0
    assert "E905" not in outcome.codes()
    if mode == "verify":
        assert outcome.calls(code=code) >= EACH_TYPE_AT_LEAST
        differences = [row["difference"] for row in outcome.records if row["code"] == code]
        assert len(differences) >= EACH_TYPE_AT_LEAST and max(differences) <= 1
