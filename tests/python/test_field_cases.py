# SPDX-License-Identifier: Apache-2.0
"""Failures that people reported of other interposers and GPU libraries, as far as products go.

One test per case; the number is that of the project's list of field cases. Where CPU libraries
disagree among themselves the oracle is the same program without the preload. Cases of processes
and files are in test_field_processes.py.
"""
import numpy as np
import pytest
from preloaded import LONG, REAL, cuda_counts, runner  # noqa: F401

WHEEL = "site-packages" in np.__file__
OLD_NUMPY = tuple(map(int, np.__version__.split(".")[:2])) < (2, 3)
# Programs: r is rawblas, np NumPy; what they assert themselves is an exact value.
HEAD = "import json, hashlib, os, sys\nimport numpy as np\nimport rawblas as r\n"
TWO_ROUTINES = "import numpy as np, scipy.linalg.blas as blas\n"


def test_c01_library_opened_local(runner):  # noqa: F811
    """RTLD_NEXT sees nothing: the original is found all the same, and named."""
    program = HEAD + """
a = np.ones((64, 64))
big = np.ones((400, 400))
assert (big @ (big + 1) == 800).all()  # looked at: from here on the settings are known
assert (a @ (a + 1) == 128).all()
import scipy.linalg.blas as blas
assert (blas.dgemm(1.0, a, a + 1) == 128).all()
"""
    outcome = runner.python(program, mode="observe", MIN_TIME="0s")
    rows = [row for row in outcome.records if row["m"] == 64]
    assert len(rows) == 2 and {row["where"] for row in rows} == {"cpu"}
    for row in rows:
        assert row["provider"].startswith("/") and "blas" in row["provider"]
    assert runner.python(program, mode="force").gpu_calls("dgemm") == 3


def test_c03_deepbind(runner):  # noqa: F811
    """The preload is bypassed: right values, and someone who looks is told so."""
    program = """
import os, sys
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
import numpy as np
a = np.ones((64, 64))
assert (a @ (a + 1) == 128).all()
"""
    outcome = runner.python(program, VERBOSE="2")
    assert not outcome.has_audit
    assert "not one call of" in outcome.stderr and "RTLD_DEEPBIND" in outcome.stderr
    assert runner.python(program).stderr == ""


def test_c11_pointers_fetched_by_dlsym(runner):  # noqa: F811
    """A pointer asked from a library's handle bypasses us, SciPy's capsule does not."""
    program = HEAD + """
import ctypes
import scipy.linalg.cython_blas as cython_blas
library = ctypes.CDLL(r.provider_path())
x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
ddot = getattr(library, r.PREFIX + "cblas_ddot")
ddot.restype = ctypes.c_double
assert ddot(2, r.pointer(x), 1, r.pointer(y), 1) == 11
one, two = ctypes.c_double(1), ctypes.c_int(2)
zero, flag = ctypes.c_double(0), ctypes.c_char(b"N")
a = np.array([1.0, 2, 3, 4])
identity = np.array([1.0, 0, 0, 1])
def call(function, hidden):
    c = np.full(4, np.nan)
    by = ctypes.byref
    function(by(flag), by(flag), by(two), by(two), by(two), by(one), r.pointer(a), by(two),
             r.pointer(identity), by(two), by(zero), r.pointer(c), by(two), *hidden)
    assert c.tolist() == [1, 2, 3, 4], c
direct = getattr(library, r.PREFIX + "dgemm_")
direct.restype = None
call(direct, [ctypes.c_size_t(1)] * 2)
if "capsule" in sys.argv:
    capsule = cython_blas.__pyx_capi__["dgemm"]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    call(ctypes.CFUNCTYPE(None)(get(capsule, name(capsule))), [])
"""
    assert not runner.python(program).has_audit
    outcome = runner.python(program, "capsule")
    assert outcome.gpu_calls("dgemm") == 1 and len(outcome.records) == 1
    assert outcome.records[0]["entry"] == ("scipy_dgemm_" if WHEEL else "dgemm_")


def test_c14_zero_sizes(runner, tmp_path):  # noqa: F811
    """k = 0 is not "do nothing", and none of these calls is the device's."""
    program = HEAD + """
start = np.array([1.0, 2, 3, 4])
x = np.ones(4)
for letter, kind in r.LETTERS.items():
    a = np.ones(4, kind)
    def result(m, k, beta, c):
        c = np.array(c, kind)
        d = c.copy()
        r.f77_gemm(letter, "N", "N", m, 2, k, 1, a, 2, a, 2, beta, c, 2)
        r.cblas_gemm(letter, r.COL, r.N, r.N, m, 2, k, 1, a, 2, a, 2, beta, d, 2)
        assert c.tobytes() == d.tobytes()
        return c.tolist()
    assert result(2, 0, 0.5, [1, 2, 3, 4]) == [0.5, 1, 1.5, 2]
    assert result(2, 0, 0, [np.nan] * 4) == [0, 0, 0, 0]
    assert result(0, 2, 0.5, [1, 2, 3, 4]) == [1, 2, 3, 4]
assert np.dot(np.ones((10, 0)), np.ones(0)).tolist() == [0.0] * 10
assert (np.ones((0, 3)) @ np.ones((3, 2))).shape == (0, 2)
assert (np.ones((4, 0)) @ np.ones((0, 5)) == 0).all()
if "positive" in sys.argv:
    np.ones((3, 4)) @ np.ones((4, 5))
"""
    env, cuda_calls = cuda_counts(tmp_path)
    outcome = runner.python(program, env=env)
    assert cuda_calls() == 0 and outcome.gpu_calls() == 0
    # The same program with one product more does use it: the counts above are not blind.
    assert runner.python(program, "positive", env=env).gpu_calls("dgemm") == 1
    assert REAL or cuda_calls() > 0


def test_c16_stride_zero(runner):  # noqa: F811
    program = HEAD + """
assert np.broadcast_to([2.0], (2,)).dot(np.ones((2, 2))).tolist() == [4, 4]
import ctypes
ddot = r.function("cblas_ddot")
ddot.restype = ctypes.c_double
x, y = np.array([1.0, 2, 3]), np.array([10.0, 20, 30])
print(ddot(3, r.pointer(x), 0, r.pointer(y), 1))
"""
    plain, outcome = runner.python(program, preload=False), runner.python(program)
    assert outcome.stdout == plain.stdout and float(outcome.stdout) == 60
    assert outcome.gpu_calls() == 0
    spread = HEAD + """
row = np.broadcast_to(np.arange(30.0), (20, 30))
column = np.broadcast_to(np.arange(30.0)[:, None], (30, 25))
assert (np.dot(row, column) == sum(i * i for i in range(30))).all()
"""
    assert runner.python(spread).gpu_calls("dgemm") == 1


def test_c18_layouts_and_transposes(runner):  # noqa: F811
    """The checked values, then every combination of flags and layouts at 7 x 5 x 3."""
    program = HEAD + """
a = np.array([1 + 1j, 2, 1j, 1 - 1j])
b = np.array([1, 2j, 1 + 1j, 3])
c = np.full(4, np.nan + 0j)
r.cblas_gemm("z", r.ROW, r.C, r.T, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2)
assert c.tolist() == [3 - 1j, 2 - 3j, 2j, 5 + 5j], c
a, c = np.array([1.0, 2, 3, 4, 5, 6]), np.full(3, np.nan)
r.cblas_gemm("d", r.ROW, r.T, r.N, 3, 1, 2, 1, a, 3, np.ones(2), 1, 0, c, 1)
assert c.tolist() == [5, 7, 9]
a, c = np.array([1.0, 2, 3, 4]), np.full(4, np.nan)
r.f77_gemm("d", "n", "t", 2, 2, 2, 1, a, 2, a, 2, 0, c, 2)
assert c.tolist() == [10, 14, 14, 20]
random = np.random.default_rng(18)
m, n, k = 7, 5, 3
def stored(rows, columns, flag, order, kind):
    shape = (rows, columns) if flag in (r.N, "N", "n") else (columns, rows)
    x = random.integers(-4, 5, shape) + 1j * random.integers(-4, 5, shape)
    x = np.array(x if np.dtype(kind).kind == "c" else x.real, dtype=kind, order=order)
    ld = x.shape[0] if order == "F" else x.shape[1]
    return x, ld
count = 0
for letter, kind in r.LETTERS.items():
    for layout, order in ((r.ROW, "C"), (r.COL, "F")):
        for ta in (r.N, r.T, r.C):
            for tb in (r.N, r.T, r.C):
                a, lda = stored(m, k, ta, order, kind)
                b, ldb = stored(k, n, tb, order, kind)
                c, ldc = stored(m, n, r.N, order, kind)
                expected = 2 * (r.op(a, ta) @ r.op(b, tb)) - 3 * c
                r.cblas_gemm(letter, layout, ta, tb, m, n, k, 2, a, lda, b, ldb, -3, c, ldc)
                assert (c == expected).all(), (letter, layout, ta, tb)
                count += 1
    for ta in "NTCntc":
        for tb in "NTCntc":
            a, lda = stored(m, k, ta, "F", kind)
            b, ldb = stored(k, n, tb, "F", kind)
            c, ldc = stored(m, n, "N", "F", kind)
            expected = 2 * (r.op(a, ta) @ r.op(b, tb)) - 3 * c
            r.f77_gemm(letter, ta, tb, m, n, k, 2, a, lda, b, ldb, -3, c, ldc)
            assert (c == expected).all(), (letter, ta, tb)
            count += 1
print(count)
"""
    outcome = runner.python(program)
    assert outcome.json == 4 * (2 * 9 + 36)
    # The expected values come from NumPy's own products, which move as well.
    rows = [row for row in outcome.records if row["caller"].count("multiarray") == 0]
    assert len(rows) == outcome.json + 3
    assert {row["where"] for row in rows} == {"gpu"}


def test_c19_output_with_negative_strides(runner):  # noqa: F811
    program = """
import numpy as np
a = np.arange(100.0).reshape(10, 10)
v = a[::-2, ::-2]
out = np.empty((10, 10))[::-2, ::-2]
np.matmul(v, v, out=out)
assert (out == v.copy() @ v.copy()).all()
"""
    if OLD_NUMPY:
        pytest.skip(f"NumPy {np.__version__} writes out of bounds here by itself (numpy#29164)")
    assert runner.python(program).gpu_calls("dgemm") >= 1


def test_c28_alpha_beta_and_nan(runner):  # noqa: F811
    program = HEAD + """
nan, inf = np.nan, np.inf
for letter, kind in r.LETTERS.items():
    def both(alpha, a, b, beta, c):
        a, b = np.array(a, kind), np.array(b, kind)
        first, second = np.array(c, kind), np.array(c, kind)
        r.f77_gemm(letter, "N", "N", 2, 2, 2, alpha, a, 2, b, 2, beta, first, 2)
        r.cblas_gemm(letter, r.COL, r.N, r.N, 2, 2, 2, alpha, a, 2, b, 2, beta, second, 2)
        assert first.tobytes() == second.tobytes()
        return first.tolist()
    identity = [1, 0, 0, 1]
    assert both(0, [nan, inf, 1, 2], [nan] * 4, 0.5, [10, 20, 30, 40]) == [5, 10, 15, 20]
    assert both(1, [1, 2, 3, 4], identity, 0, [nan] * 4) == [1, 2, 3, 4]
    assert both(0, [nan] * 4, [nan] * 4, 0, [nan] * 4) == [0, 0, 0, 0]
    assert both(1, [1, 2, 3, 4], identity, 1, [1, 1, 1, 1]) == [2, 3, 4, 5]
    assert np.isnan(both(1, [nan, 0, 0, 0], identity, 1, [0] * 4)[0])
"""
    outcome = runner.python(program)
    for letter in "sdcz":
        assert outcome.gpu_calls(letter + "gemm") == 6  # alpha = 0 is a quick return
        assert outcome.calls("cpu", letter + "gemm", "S103") == 4


@pytest.mark.parametrize("env", [
    {}, {"NVIDIA_TF32_OVERRIDE": "1"},
    {"NVIDIA_TF32_OVERRIDE": "1", "CUBLAS_EMULATE_SINGLE_PRECISION": "1",
     "CUBLAS_EMULATE_DOUBLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"}],
    ids=["plain", "tf32", "emulation"])
def test_c31_no_tf32(runner, env):  # noqa: F811
    """Single precision keeps its bits whatever vendor variables say, or stays on the CPU."""
    program = TWO_ROUTINES + """
identity = np.eye(64, dtype="f4")
row = np.full((1, 64), 1024.5, "f4")
assert (blas.sgemm(1.0, row, identity) == 1024.5).all()
fine = np.full((64, 64), 1 + 2.0**-12, "f4")
assert ((fine @ identity) == fine).all()
random = np.random.default_rng(31)
a, b = (random.standard_normal((512, 512)).astype("f4") for _ in range(2))
exact = a.astype("f8") @ b.astype("f8")
assert np.abs(a @ b - exact).max() / np.abs(exact).max() < 1e-5
c, d = a * (1 + 1j), b * (1 - 2j)
exact = c.astype("c16") @ d.astype("c16")
assert np.abs(c @ d - exact).max() / np.abs(exact).max() < 1e-5
"""
    outcome = runner.python(program, env=env)
    on_gpu, refused = outcome.gpu_calls("sgemm"), outcome.calls(code="P704")
    assert on_gpu + refused >= 3, outcome.codes()
    if not env:
        assert on_gpu == 3 and outcome.gpu_calls("cgemm") == 1


@pytest.mark.parametrize("env", [
    {}, {"CUBLAS_EMULATE_DOUBLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"}],
    ids=["plain", "emulation"])
def test_c33_double_stays_double(runner, env):  # noqa: F811
    program = TWO_ROUTINES + """
for n in (64, 1100):
    fine = np.full((n, n), 1 + 2.0**-40)
    assert (fine @ np.eye(n) == fine).all()
    assert (np.eye(n) @ fine == fine).all()
    both = np.full((n, n), 1 + 2.0**-45 * 1j)
    assert (both @ np.eye(n, dtype="c16") == both).all()
random = np.random.default_rng(33)
a, b = random.standard_normal((300, 300)), random.standard_normal((300, 300))
exact = (a[:20].astype(np.longdouble) @ b.astype(np.longdouble))
size = np.abs(a[:20]) @ np.abs(b)
assert (np.abs((a @ b)[:20] - exact) <= 302 * 2.3e-16 * size).all()
"""
    outcome = runner.python(program, env=env)
    assert outcome.gpu_calls("dgemm") >= 6 and outcome.gpu_calls("zgemm") == 2


def test_c41_gram_matrices_are_symmetric(runner):  # noqa: F811
    """NumPy asks for syrk and mirrors a half; a general product must not take its place."""
    program = """
import numpy as np
for shape in ((37, 23), (700, 300)):
    for kind in ("f8", "f4"):
        x = np.random.RandomState(0).rand(*shape).astype(kind)
        # Of X[:, ::2] NumPy makes two copies, so that gemm is called and the CPU libraries
        # themselves are not exact: nothing is promised there.
        wide = np.asfortranarray(x)
        for y in (x, x[:, 3:20], x[::2], wide, wide[:, ::2]):
            for g in (y.T @ y, y @ y.T):
                assert (g == g.T).all(), (shape, kind)
        assert all((g == g.T).all() for g in (np.dot(x.T, x), np.dot(x, x.T)))
x @ np.ones((300, 4), "f4")
"""
    outcome = runner.python(program)
    assert outcome.gpu_calls("sgemm") >= 1  # the last product: the device was there


def test_c47_same_input_same_bits(runner):  # noqa: F811
    """Within a process, between threads and between processes: one digest."""
    program = HEAD + """
from concurrent.futures import ThreadPoolExecutor
random = np.random.default_rng(47)
rounds = int(sys.argv[1])
def digest(m, n, k, kind):
    a, b = random.standard_normal((m, k)).astype(kind), random.standard_normal((k, n)).astype(kind)
    once = lambda _: hashlib.sha256((a @ b).tobytes()).hexdigest()
    with ThreadPoolExecutor(4) as pool:
        found = set(map(once, range(rounds))) | set(pool.map(once, range(2 * rounds)))
    return sorted(found)
print(json.dumps([digest(64, 64, 100000, "f8"), digest(33, 65, 70001, "f4")]))
"""
    rounds = 20 if LONG or REAL else 3
    outcomes = [runner.python(program, rounds) for _ in range(3 if LONG or REAL else 2)]
    for outcome in outcomes:
        assert outcome.gpu_calls("dgemm") == outcome.gpu_calls("sgemm") == 3 * rounds
        assert [len(digests) for digests in outcome.json] == [1, 1]
    assert len({outcome.stdout for outcome in outcomes}) == 1


def test_c50_overlapping_arguments(runner):  # noqa: F811
    program = HEAD + """
b = np.arange(16.0).reshape(4, 4)
assert (b[:3, :3] @ b[1:, 1:] == b[:3, :3].copy() @ b[1:, 1:].copy()).all()
x = np.arange(16.0).reshape(4, 4)
expected = x.copy() @ x.copy()
np.matmul(x, x, out=x)
assert (x == expected).all()
x = np.arange(16.0).reshape(4, 4)
np.dot(x, x, out=x)
assert (x == expected).all()
found = []
for shift in (0, 1, 2, 4):  # the output is, or overlaps, an operand: whatever the CPU library does
    base = np.arange(1.0, 30)
    r.cblas_gemm("d", r.COL, r.N, r.N, 2, 2, 2, 1, base, 2, base[20:], 2, 0, base[shift:], 2)
    found.append(base.tolist())
print(json.dumps(found))
"""
    outcome = runner.python(program)
    assert outcome.json == runner.python(program, preload=False).json
    assert outcome.gpu_calls("dgemm") >= 2  # operands that overlap each other are no obstacle
    assert outcome.calls("cpu", "dgemm", "U305") >= 3  # shift 4 is beside the operand


def test_c52_rows_between_m_and_ldc(runner):  # noqa: F811
    """What lies between the columns of C belongs to others, who may write it meanwhile."""
    program = HEAD + """
import threading
c = np.full(10, 777.0)
a, identity = np.array([1.0, 2, 3, 4]), np.array([1.0, 0, 0, 1])
r.f77_gemm("d", "N", "N", 2, 2, 2, 1, a, 2, identity, 2, 0, c, 5)
assert c.tolist() == [1, 2, 777, 777, 777, 3, 4, 777, 777, 777]
bands, height, n, k = 8, 64, 512, 16
random = np.random.default_rng(52)
left = random.integers(-3, 4, (bands * height, k)).astype("f8", order="F")
right = random.integers(-3, 4, (k, n)).astype("f8", order="F")
expected = left @ right
whole = np.zeros((bands * height, n), order="F")
wrong = []
def work(band, rounds):
    mine = slice(band * height, (band + 1) * height)
    part = np.asfortranarray(left[mine])
    for i in range(rounds):
        scale = i + band + 1
        r.f77_gemm("d", "N", "N", height, n, k, scale, part, height, right, k, i % 2,
                   (whole, band * height), bands * height)
        before = (scale - 1) * expected[mine] if i % 2 else 0
        if not (whole[mine] == scale * expected[mine] + before).all():
            wrong.append((band, i))
rounds = int(sys.argv[1])
threads = [threading.Thread(target=work, args=(band, rounds)) for band in range(bands)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong[:5]
"""
    rounds = 200 if LONG or REAL else 25
    outcome = runner.python(program, rounds)
    assert outcome.gpu_calls("dgemm") >= 8 * rounds + 1
    assert outcome.gpu_calls() == outcome.calls("gpu", code="R002")


def test_c53_read_only_operands(runner, tmp_path):  # noqa: F811
    program = HEAD + """
import ctypes, mmap
n = 96
random = np.random.default_rng(53)
values = random.standard_normal((n, n))
values.tofile(sys.argv[1])
other = random.standard_normal((n, n))
expected = np.einsum("ij,jk->ik", values, other)
def check(a, b, c):
    assert np.allclose(a @ b, c, rtol=1e-12, atol=1e-12)
mapped = np.memmap(sys.argv[1], "f8", "r", shape=(n, n))
check(mapped, other, expected)
check(other.T, mapped.T, expected.T)
with open(sys.argv[1], "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
check(np.frombuffer(pages).reshape(n, n), other, expected)
private = mmap.mmap(-1, 1 << 17)
area = np.frombuffer(private, "f8", n * n).reshape(n, n)
area[...] = values
address = ctypes.c_void_p(area.ctypes.data)
assert ctypes.CDLL(None).mprotect(address, ctypes.c_size_t(1 << 17), 1) == 0
check(area, other, expected)
c = np.full((n, n), np.nan, order="F")
r.f77_gemm("d", "T", "T", n, n, n, 1, area, n, other, n, 0, c, n)
assert np.allclose(c, expected)
assert ctypes.CDLL(None).mprotect(address, ctypes.c_size_t(1 << 17), 3) == 0
shared = np.memmap(sys.argv[1], "f8", "r+", shape=(n, n))
kept = values.copy()
np.matmul(other, kept, out=shared)  # a file-backed mapping as the output
assert np.allclose(shared, other @ kept)
values.flags.writeable = False
check(values, other, expected)
"""
    outcome = runner.python(program, tmp_path / "values")
    assert outcome.gpu_calls("dgemm") == 8 and outcome.codes() == {"R002"}


def test_c63_many_threads(runner):  # noqa: F811
    program = HEAD + """
from concurrent.futures import ThreadPoolExecutor
kinds = ("f8", "f4", "c16", "c8")
def once(job):
    thread, i = job
    kind = kinds[(thread + i) % 4]
    random = np.random.default_rng(i)
    a = random.standard_normal((180 + i, 150)).astype(kind)
    b = random.standard_normal((180 + i, 140)).astype(kind)
    return (a.T @ b), (a.T @ a)
jobs = [(thread, i) for i in range(int(sys.argv[1])) for thread in range(8)]
serial = list(map(once, jobs))
with ThreadPoolExecutor(8) as pool:
    together = list(pool.map(once, jobs))
for one, other in zip(serial, together):
    for x, y in zip(one, other):
        tolerance = 1e-13 if x.dtype.char in "dD" else 1e-4
        assert np.allclose(x, y, rtol=tolerance, atol=tolerance * np.abs(x).max())
"""
    rounds = 30 if LONG or REAL else 8
    outcome = runner.python(program, rounds)
    for letter in "sdcz":
        assert outcome.gpu_calls(letter + "gemm") >= 2 * 8 * rounds // 4
    assert "cpu" not in {row["where"] for row in outcome.report["reasons"]}
    assert len({row["thread"] for row in outcome.records}) > 4


def test_c99_final_when_the_call_returns(runner):  # noqa: F811
    """The output is read at once, then the operands are spoiled and unmapped."""
    program = HEAD + """
import mmap
n = int(sys.argv[2])
def area():
    pages = mmap.mmap(-1, 8 * n * n)
    return pages, np.frombuffer(pages, "f8", n * n)
c = np.empty(n * n)
for i in range(int(sys.argv[1])):
    (pages_a, a), (pages_b, b) = area(), area()
    a[...], b[...] = i + 1, 2
    c[...] = np.nan
    r.f77_gemm("d", "N", "N", n, n, n, 1, a, n, b, n, 0, c, n)
    last = c[-1]
    a[...], b[...] = np.nan, np.nan
    del a, b
    pages_a.close(), pages_b.close()
    assert last == 2 * n * (i + 1) and (c == last).all()
"""
    rounds, n = (1000, 700) if LONG or REAL else (20, 300)
    assert runner.python(program, rounds, n).gpu_calls("dgemm") == rounds


def test_c92_small_products_stay(runner, tmp_path):  # noqa: F811
    """Counted and passed on: no device, and hardly any time."""
    program = """
import json, time
import numpy as np
small = np.random.default_rng(92).standard_normal((20000, 4, 4))
eight = np.random.default_rng(92).standard_normal((10000, 8, 8))
vector, matrix = np.ones(500), np.ones((500, 500))
thin, two = np.ones((1000000, 2)), np.ones((2, 2))
def seconds(work):
    best = 9
    for _ in range(7):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best
print(json.dumps([seconds(lambda: small @ small), seconds(lambda: eight @ eight),
                  seconds(lambda: [matrix @ vector for _ in range(100)]),
                  seconds(lambda: thin @ two)]))
"""
    env, cuda_calls = cuda_counts(tmp_path)
    worst = []
    for _ in range(3):  # the machine may be busy: one of three rounds must be good
        plain = runner.python(program, preload=False).json
        outcome = runner.python(program, mode="auto", env=env)
        worst.append(max((ours - 2e-4) / theirs for ours, theirs in zip(outcome.json, plain)))
        if worst[-1] <= 1.1:
            break
    assert outcome.calls("cpu", "dgemm", "S101") >= 7 * 30000
    assert outcome.gpu_calls() == 0
    assert cuda_calls() == 0
    # Two million multiplications and sixteen megabytes: bytes count as much as work.
    assert not any(row["where"] == "gpu" for row in outcome.records)
    assert min(worst) <= 1.1, worst


def test_c93_types_that_never_reach_blas(runner):  # noqa: F811
    program = """
import hashlib
import numpy as np
random = np.random.default_rng(93)
digest = hashlib.sha256()
for kind, n in (("f2", 200), ("i8", 200), (np.longdouble, 200), (object, 30)):
    a = random.integers(-9, 10, (n, n)).astype(kind)
    digest.update(repr((a @ a).astype("f8").tolist()).encode())
print(digest.hexdigest())
"""
    outcome = runner.python(program, VERBOSE="2")
    assert outcome.stdout == runner.python(program, preload=False).stdout
    assert not outcome.has_audit
    assert "not one call of" in outcome.stderr


def test_c97_times_are_times(runner):  # noqa: F811
    """Each logged time is within the caller's own, and start-up is a figure of its own."""
    program = HEAD + """
import time
n, walls = int(sys.argv[1]), []
a, b = np.random.default_rng(97).random((2, n, n))
begin = time.perf_counter()
for _ in range(10):
    before = time.perf_counter_ns()
    a @ b
    walls.append(time.perf_counter_ns() - before)
np.linalg.svd(a[:300, :300])
print(json.dumps({"walls": walls, "all": time.perf_counter() - begin}))
"""
    start = {} if REAL else {"FAKECUDA_START_MS": "300"}
    n = 4096 if REAL else 500
    outcome = runner.python(program, n, env=start)
    rows = [row for row in outcome.records if row["m"] == n]
    assert len(rows) == 10
    for row, wall in zip(rows, outcome.json["walls"]):
        assert 2 * n**3 / 200e12 <= row["wall_ns"] * 1e-9 <= wall * 1e-9
        parts = row["copy_in_s"] + row["compute_s"] + row["copy_out_s"]
        assert 0 < parts <= 1.05 * row["wall_ns"] * 1e-9 + 1e-4
    startup = outcome.report["processes"][0]["startup_s"]
    assert startup >= (0.05 if REAL else 0.3)
    assert outcome.json["walls"][0] * 1e-9 >= startup  # the caller waited, the record says not
    assert rows[0]["wall_ns"] * 1e-9 < outcome.json["walls"][0] * 1e-9 - 0.9 * startup
    logged = sum(row["gpu_s"] + row["cpu_s"] for row in outcome.report["routines"])
    assert logged <= outcome.json["all"]
