# SPDX-License-Identifier: Apache-2.0
"""Properties of matrix products, whatever library computes them.

test_products.py runs this file by pytest in a process of its own, with and without the preload: the
name keeps the ordinary collection away. The reference is NumPy's own loop in long double, which
calls no BLAS; the bound holds for any order of summation.
"""
import os

import numpy as np
import scipy.linalg.blas as blas
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LONG = os.environ.get("PRODUCTS_LONG", "0") == "1"
settings.register_profile(
    "products", max_examples=1500 if LONG else 120, deadline=None, database=None,
    derandomize=not LONG, suppress_health_check=list(HealthCheck))
settings.load_profile("products")

TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
LAYOUTS = ("C", "F", "rows reversed", "columns reversed", "both reversed", "row repeated",
           "column repeated", "every second", "window", "window of F", "transposed")
# Before 2.3 NumPy itself writes out of bounds for outputs with negative strides (numpy#29164).
OLD_NUMPY = tuple(map(int, np.__version__.split(".")[:2])) < (2, 3)
sizes = st.integers(0, 40)
letters = st.sampled_from("sdcz")
layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 2**32 - 1)
scalars = st.sampled_from([0, 1, -1, 0.5, 3, 2 + 1j, -1j])


def values(random, shape, letter):
    """Returns random numbers of very different sizes, zeros and exact integers among them."""
    x = random.standard_normal(shape) * 2.0 ** random.integers(-12, 12, shape)
    x[random.random(shape) < 0.05] = 0
    x = np.where(random.random(shape) < 0.1, np.rint(x), x)
    if letter in "cz":
        x = x + 1j * random.standard_normal(shape)
    return x.astype(TYPES[letter])


def operand(random, rows, columns, letter, layout):
    """Returns a matrix of that shape whose memory is laid out so."""
    make = lambda *shape: values(random, shape, letter)  # noqa: E731
    if layout == "F":
        return np.asfortranarray(make(rows, columns))
    if layout == "rows reversed":
        return make(rows, columns)[::-1]
    if layout == "columns reversed":
        return make(rows, columns)[:, ::-1]
    if layout == "both reversed":
        return make(rows, columns)[::-1, ::-1]
    if layout == "row repeated":
        return np.broadcast_to(make(1, columns), (rows, columns))
    if layout == "column repeated":
        return np.broadcast_to(make(rows, 1), (rows, columns))
    if layout == "every second":
        return make(2 * rows, 2 * columns)[::2, ::2]
    if layout == "window":
        return make(rows + 5, columns + 3)[2:2 + rows, 1:1 + columns]
    if layout == "window of F":
        return np.asfortranarray(make(rows + 5, columns + 3))[2:2 + rows, 1:1 + columns]
    if layout == "transposed":
        return make(columns, rows).T
    return make(rows, columns)


def wide(x):
    """Returns a copy in long double."""
    return np.array(x, np.clongdouble if np.iscomplexobj(x) else np.longdouble)


def check(found, a, b, letter, alpha=1, beta=0, c=None):
    """Compares with alpha a b + beta c, element by element."""
    k = a.shape[-1]
    expected = alpha * (wide(a) @ wide(b))
    size = abs(alpha) * (wide(np.abs(a)) @ wide(np.abs(b)))
    if beta != 0:
        expected = expected + beta * wide(c)
        size = size + abs(beta) * wide(np.abs(c))
    assert found.dtype == TYPES[letter]
    assert found.shape == expected.shape
    eps = np.finfo(TYPES[letter]).eps
    tiny = np.finfo(TYPES[letter]).tiny
    wrong = np.abs(wide(found) - expected) > 2 * (k + 2) * eps * size + tiny
    assert not wrong.any(), (np.argwhere(wrong)[:3], found[wrong][:3], expected[wrong][:3])


@given(sizes, sizes, sizes, letters, layouts, layouts, seeds)
def test_operator_and_dot(m, k, n, letter, layout_a, layout_b, seed):
    random = np.random.default_rng(seed)
    a, b = operand(random, m, k, letter, layout_a), operand(random, k, n, letter, layout_b)
    before = a.tobytes(), b.tobytes()
    check(a @ b, a, b, letter)
    check(np.dot(a, b), a, b, letter)
    assert (a.tobytes(), b.tobytes()) == before


@given(sizes, sizes, sizes, letters, layouts, layouts, layouts, seeds)
def test_matmul_out(m, k, n, letter, layout_a, layout_b, layout_out, seed):
    """What lies around the output belongs to somebody else."""
    random = np.random.default_rng(seed)
    a, b = operand(random, m, k, letter, layout_a), operand(random, k, n, letter, layout_b)
    writable = layout_out if "repeated" not in layout_out else "window"
    if "reversed" in writable and OLD_NUMPY:
        writable = "every second"
    out = operand(random, m, n, letter, writable)
    base = out if out.base is None else out.base
    mark = TYPES[letter](777)
    base[...] = mark
    assert np.matmul(a, b, out=out) is out
    check(out.copy(), a, b, letter)
    out[...] = mark
    assert (base == mark).all()


@given(sizes, sizes, letters, layouts, layouts, st.sampled_from(["a", "b", "both"]),
       st.booleans(), seeds)
def test_matmul_out_aliases_an_operand(n, other, letter, layout_a, layout_b, which, shifted, seed):
    random = np.random.default_rng(seed)
    unusable = ("repeated", "reversed") if OLD_NUMPY else ("repeated",)
    usable = ["window" if any(word in layout for word in unusable) else layout
              for layout in (layout_a, layout_b)]
    if shifted:  # the output overlaps, but is not, the operand
        base = values(random, (n + 1, n), letter)
        a, out = base[1:], base[:-1]
        b = operand(random, n, n, letter, layout_b)
    else:
        a = operand(random, n, n, letter, usable[0])
        b = a if which == "both" else operand(random, n, n, letter, usable[1])
        out = b if which == "b" else a
    kept_a, kept_b = a.copy(), b.copy()
    np.matmul(a, b, out=out)
    check(out.copy(), kept_a, kept_b, letter)


@given(st.integers(0, 4), st.integers(0, 20), sizes, st.integers(0, 20), letters, layouts,
       st.booleans(), seeds)
def test_stacks(count, m, k, n, letter, layout_b, repeated, seed):
    random = np.random.default_rng(seed)
    a = values(random, (1 if repeated else count, m, k), letter)
    a = np.broadcast_to(a, (count, m, k)) if repeated else a
    b = operand(random, k, n, letter, layout_b)
    found = np.matmul(a, b)
    assert found.shape == (count, m, n)
    for i in range(count):
        check(found[i], a[i], b, letter)


@given(sizes, sizes, sizes, letters, layouts, layouts, seeds)
def test_einsum(m, k, n, letter, layout_a, layout_b, seed):
    random = np.random.default_rng(seed)
    a, b = operand(random, m, k, letter, layout_a), operand(random, k, n, letter, layout_b)
    check(np.einsum("ij,jk->ik", a, b, optimize=True), a, b, letter)
    check(np.einsum("ij,jk->ki", a, b, optimize=True).T, a, b, letter)


@given(st.integers(0, 6), st.integers(0, 7), st.integers(0, 6), st.integers(0, 7), st.integers(0, 12),
       letters, seeds)
def test_tensordot(m, k1, k2, m2, n, letter, seed):
    random = np.random.default_rng(seed)
    a = values(random, (m, k1, m2, k2), letter)
    b = values(random, (k2, n, k1), letter)
    found = np.tensordot(a, b, axes=[(1, 3), (2, 0)])
    flat_a = a.transpose(0, 2, 1, 3).reshape(m * m2, k1 * k2)
    flat_b = b.transpose(2, 0, 1).reshape(k1 * k2, n)
    assert found.shape == (m, m2, n)
    check(found.reshape(m * m2, n), flat_a, flat_b, letter)


def transformed(x, flag):
    """Returns op(x) of a SciPy flag: 0 as it is, 1 transposed, 2 conjugate-transposed."""
    return x if flag == 0 else x.T if flag == 1 else x.conj().T


nonzero = st.integers(1, 40)  # SciPy's wrappers refuse empty operands before they call BLAS


@given(nonzero, nonzero, nonzero, letters, layouts, layouts, st.integers(0, 2), st.integers(0, 2),
       scalars, scalars, st.sampled_from(["none", "C", "F", "F overwritten", "window of F"]), seeds)
def test_scipy_gemm(m, k, n, letter, layout_a, layout_b, trans_a, trans_b, alpha, beta, form, seed):
    random = np.random.default_rng(seed)
    if letter in "sd":
        alpha, beta = np.real(alpha), np.real(beta)
    a = operand(random, *((k, m) if trans_a else (m, k)), letter, layout_a)
    b = operand(random, *((n, k) if trans_b else (k, n)), letter, layout_b)
    gemm = getattr(blas, letter + "gemm")
    op_a, op_b = transformed(a, trans_a), transformed(b, trans_b)
    if form == "none":
        found = gemm(alpha, a, b, trans_a=trans_a, trans_b=trans_b)
        check(found, op_a, op_b, letter, alpha)
        return
    c = operand(random, m, n, letter, form.replace(" overwritten", ""))
    if beta == 0:
        c[...] = np.nan  # beta = 0: what was there must not matter
    kept = c.copy()
    overwrite = form == "F overwritten"
    found = gemm(alpha, a, b, beta=beta, c=c, trans_a=trans_a, trans_b=trans_b,
                 overwrite_c=overwrite)
    check(found, op_a, op_b, letter, alpha, beta, kept)
    if not overwrite:
        assert c.tobytes() == kept.tobytes()
    else:
        assert np.shares_memory(found, c)
