#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small program of NumPy, SciPy and scikit-learn that knows nothing of libgpushim.

    tools/gpushim run examples/demo.py     (make demo)
    tools/gpushim report

Each part prints its time and checks its own result; the exit status is 1 when a check fails. The
sizes are such that every part makes matrix products worth a decision: on a machine with a GPU most
of them move to it, on others the report says why they stayed.
"""
import sys
import time

import numpy as np
import scipy.linalg
import scipy.linalg.blas
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise_distances

SEED = 20261201


def numpy_products(random):
    """Products of all four types, transposed and sliced operands included."""
    a = random.standard_normal((2000, 1600))
    b = random.standard_normal((1600, 1800))
    c = a @ b
    single = a.astype(np.float32) @ b.astype(np.float32)
    wave = a[::2, :800] + 1j * a[1::2, 800:]
    gram = wave.conj().T @ wave
    stack = random.standard_normal((8, 500, 400))
    tiles, ones = np.matmul(stack, b[:400, :600]), np.ones(600)
    checks = {
        "f64 product": (relative(c @ np.ones(1800), a @ (b @ np.ones(1800))), 1e-12),
        "f32 product": (relative(single, c), 1e-5),
        "Hermitian product": (relative(gram, gram.conj().T), 1e-12),
        "stack of products": (relative(tiles @ ones, stack @ (b[:400, :600] @ ones)), 1e-12),
    }
    return f"|C| = {np.linalg.norm(c):.3f}", checks


def scipy_linear_algebra(random):
    """A least-squares fit by BLAS calls and Cholesky, and a matrix exponential."""
    x = np.asfortranarray(random.standard_normal((8000, 800)))
    truth = random.standard_normal((800, 200))
    y = x @ truth + 1e-8 * random.standard_normal((8000, 200))
    gram = scipy.linalg.blas.dgemm(1.0, x, x, trans_a=True)
    right = scipy.linalg.blas.dgemm(1.0, x, y, trans_a=True)
    found = scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram), right)
    flow = random.standard_normal((500, 500)) / 40
    there_and_back = scipy.linalg.expm(flow - flow.T) @ scipy.linalg.expm(flow.T - flow)
    checks = {
        "least squares": (relative(found, truth), 1e-8),
        "inverse of an exponential": (relative(there_and_back, np.eye(500)), 1e-11),
    }
    return f"{found.shape[0]} coefficients for {found.shape[1]} targets", checks


def sklearn_models(random):
    """Clusters, principal components and a kernel fit on data whose structure is known."""
    centres = 12 * random.standard_normal((8, 100))
    labels = random.integers(0, 8, 20000)
    points = centres[labels] + random.standard_normal((20000, 100))
    found = KMeans(8, init=centres + 0.5, n_init=1).fit_predict(points)
    components = PCA(20, svd_solver="covariance_eigh" if has_covariance_eigh() else "full")
    shrunk = components.inverse_transform(components.fit_transform(points))
    nearest = pairwise_distances(points[:8000], centres).argmin(axis=1)
    train, test = points[:3000], points[3000:4000]
    target = np.sin(train[:, :1] / 6)
    model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1e-3).fit(train, target)
    checks = {
        "clusters": (np.count_nonzero(found != labels), 1),
        "nearest centres": (np.count_nonzero(nearest != labels[:8000]), 1),
        "principal components": (relative(shrunk, points), 0.3),
        "kernel fit": (relative(model.predict(train), target), 0.1),
    }
    kept = components.explained_variance_ratio_.sum()
    text = (f"{kept:.1%} of the variance in 20 of 100 components, {len(test)} predictions, "
            f"mean {model.predict(test).mean():+.4f}")
    return text, checks


def has_covariance_eigh():
    """Returns whether this scikit-learn has PCA's solver by the covariance matrix."""
    import sklearn
    return tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 5)


def relative(found, expected):
    """Returns the norm of the difference relative to that of what is expected."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def main():
    """Runs all parts; returns the exit status."""
    random = np.random.default_rng(SEED)
    status = 0
    begin = time.perf_counter()
    for part in (numpy_products, scipy_linear_algebra, sklearn_models):
        before = time.perf_counter()
        text, checks = part(random)
        print(f"{part.__name__:<22} {time.perf_counter() - before:6.2f} s  {text}")
        for name, (error, allowed) in checks.items():
            if not error < allowed:
                print(f"  WRONG: {name}: {error:.3g}, allowed {allowed:.3g}")
                status = 1
    print(f"{'in all':<22} {time.perf_counter() - begin:6.2f} s  "
          f"{'all checks passed' if status == 0 else 'some checks failed'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
