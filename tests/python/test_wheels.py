# SPDX-License-Identifier: Apache-2.0
"""NumPy, SciPy and scikit-learn as they are installed here: wheels, or the distribution's.

Which name is called and which library stands behind it comes from the records; results are compared
with the same program without the preload.
"""
import json
import os

import numpy as np
import pytest
import sklearn
from preloaded import REAL, fake_only, runner  # noqa: F401

WHEEL = "site-packages" in np.__file__
NUMPY_ENTRY = "scipy_cblas_{}gemm64_" if WHEEL else "cblas_{}gemm"
SCIPY_ENTRY = "scipy_{}gemm_" if WHEEL else "{}gemm_"
NEW_SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 5)

NUMPY_PROGRAM = """
import json
import numpy as np
random = np.random.default_rng(1)
out = {}
for name in ("float32", "float64", "complex64", "complex128"):
    a = random.standard_normal((150, 130)).astype(name)
    b = random.standard_normal((130, 140)).astype(name)
    if "complex" in name:
        a, b = a * (1 - 2j), b * (2 + 1j)
        a, b = a.astype(name), b.astype(name)
    c = a @ b
    exact = np.einsum("ij,jk->ik", a.astype(np.complex128), b.astype(np.complex128))
    out[name] = float(np.abs(c - exact).max() / np.abs(exact).max() / np.finfo(name).eps)
print(json.dumps(out))
"""

SCIPY_PROGRAM = """
import json
import numpy as np
import scipy.linalg.blas as blas
random = np.random.default_rng(2)
out = {}
for letter, name in zip("sdcz", ("float32", "float64", "complex64", "complex128")):
    a = random.standard_normal((90, 120)).astype(name)
    b = random.standard_normal((90, 70)).astype(name)
    c = getattr(blas, letter + "gemm")(2.0, a, b, trans_a=True)
    exact = 2 * np.einsum("ji,jk->ik", a.astype(np.complex128), b.astype(np.complex128))
    out[letter] = float(np.abs(c - exact).max() / np.abs(exact).max() / np.finfo(name).eps)
print(json.dumps(out))
"""

SKLEARN_PROGRAM = """
import json
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors
random = np.random.default_rng(3)
centres = 9 * random.standard_normal((8, 24))
labels = random.integers(0, 8, 4000)
x = centres[labels] + random.standard_normal((4000, 24))
neighbours = NearestNeighbors(n_neighbors=4, algorithm="brute").fit(x).kneighbors(x[:700])
pca = PCA(5, svd_solver=SOLVER).fit(x)
ridge = Ridge(solver="cholesky").fit(x, x @ np.arange(24.0))
print(json.dumps({
    "argmin": pairwise_distances_argmin(x, centres).tolist(),
    "distances": pairwise_distances(x[:50], centres).tolist(),
    "neighbours": neighbours[1].tolist(),
    "neighbour distances": neighbours[0][:, 1:].tolist(),
    "clusters": KMeans(8, init=centres, n_init=1).fit_predict(x).tolist(),
    "components": pca.components_.tolist(), "variance": pca.explained_variance_.tolist(),
    "coefficients": ridge.coef_.tolist()}))
""".replace("SOLVER", repr("covariance_eigh" if NEW_SKLEARN else "full"))

INTEGERS = ("argmin", "neighbours", "clusters")


def gpu_records(outcome):
    """Returns the records of calls that ran on the device."""
    return [row for row in outcome.records if row["where"] == "gpu"]


def is_numpys_library(path):
    """Returns whether path is the BLAS that this NumPy calls."""
    return "/numpy.libs/libscipy_openblas64_" in path if WHEEL else "blas" in os.path.basename(path)


def is_scipys_library(path):
    """Returns whether path is the BLAS that this SciPy calls."""
    return "/scipy.libs/libscipy_openblas-" in path if WHEEL else "blas" in os.path.basename(path)


def test_numpy_products(runner):  # noqa: F811
    outcome = runner.python(NUMPY_PROGRAM)
    assert max(outcome.json.values()) < 60
    rows = gpu_records(outcome)
    assert {row["entry"] for row in rows} == {NUMPY_ENTRY.format(letter) for letter in "sdcz"}
    assert all(is_numpys_library(row["provider"]) for row in rows)
    assert all("_multiarray_umath" in row["caller"] for row in rows)
    assert any(is_numpys_library(path) for path in outcome.report["providers"])


def test_scipy_blas(runner):  # noqa: F811
    outcome = runner.python(SCIPY_PROGRAM)
    assert max(outcome.json.values()) < 60
    rows = gpu_records(outcome)
    assert {row["entry"] for row in rows} == {SCIPY_ENTRY.format(letter) for letter in "sdcz"}
    assert all(is_scipys_library(row["provider"]) for row in rows)
    assert all("_fblas" in row["caller"] for row in rows)


def compare(found, expected):
    """Compares two documents of SKLEARN_PROGRAM."""
    assert found.keys() == expected.keys()
    for name in found:
        if name in INTEGERS:
            assert found[name] == expected[name], name
        else:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-7, atol=1e-8,
                                       err_msg=name)


def test_sklearn(runner):  # noqa: F811
    """scikit-learn calls through SciPy's cython_blas, which jumps: the caller is scikit-learn."""
    plain = runner.python(SKLEARN_PROGRAM, preload=False)
    outcome = runner.python(SKLEARN_PROGRAM)
    compare(outcome.json, plain.json)
    rows = [row for row in gpu_records(outcome) if "/sklearn/" in row["caller"]]
    assert rows, sorted({row["caller"] for row in outcome.records})
    assert {row["entry"] for row in rows} <= {SCIPY_ENTRY.format(letter) for letter in "sd"}
    assert all(is_scipys_library(row["provider"]) for row in rows)
    assert "U310" not in outcome.codes()


def test_both_libraries_in_one_process(runner):  # noqa: F811
    """Two OpenBLAS copies of different integer width: every call finds its own."""
    program = NUMPY_PROGRAM + SCIPY_PROGRAM + NUMPY_PROGRAM
    outcome = runner.python(program)
    for line in outcome.stdout.splitlines():
        assert max(json.loads(line).values()) < 60
    providers = {row["entry"]: row["provider"] for row in gpu_records(outcome)}
    assert len(providers) == 8
    for letter in "sdcz":
        assert is_numpys_library(providers[NUMPY_ENTRY.format(letter)])
        assert is_scipys_library(providers[SCIPY_ENTRY.format(letter)])
    if WHEEL:
        assert len(set(providers.values())) == 2


def test_importing_starts_nothing(runner):  # noqa: F811
    outcome = runner.python("import numpy, scipy.linalg, sklearn.cluster\nprint(1)")
    assert not outcome.has_audit and outcome.stderr == ""


@fake_only
@pytest.mark.skipif(os.path.exists("/dev/nvidia0") and not REAL, reason="this machine has a device")
def test_auto_without_gpu(runner):  # noqa: F811
    """No driver: every call that could have moved says so, and the bits are the CPU library's."""
    program = """
import hashlib
import numpy as np, scipy.linalg.blas as blas
random = np.random.default_rng(4)
digest = hashlib.sha256()
for n in (100, 700, 1100):
    a, b = random.standard_normal((n, n)), random.standard_normal((n, n))
    digest.update((a @ b).tobytes())
    digest.update(blas.sgemm(1.0, a, b).tobytes())
    digest.update(blas.zgemm(1.0j, a, b).tobytes())
print(digest.hexdigest())
"""
    plain = runner.python(program, preload=False)
    outcome = runner.python(program, mode="auto", cuda=None)
    assert outcome.stdout == plain.stdout
    assert outcome.stderr == plain.stderr == ""
    assert outcome.gpu_calls() == 0
    assert outcome.calls(code="L801") >= 4
    assert [row["device_state"] for row in outcome.report["processes"]] == ["L801"]
    entries = {row["entry"] for row in outcome.records}
    assert NUMPY_ENTRY.format("d") in entries and SCIPY_ENTRY.format("z") in entries
