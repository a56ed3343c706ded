# SPDX-License-Identifier: Apache-2.0
"""What only a real device shows. tests/gpu/h200.py runs this with GPUSHIM_TEST_CUDA=real."""
import glob
import os
import subprocess
import sys

import pytest
from preloaded import REAL, base_environment, runner  # noqa: F401

pytestmark = pytest.mark.skipif(not REAL, reason="needs a device: GPUSHIM_TEST_CUDA=real")
RUNTIMES = "/usr/local/cuda/lib64/libcudart.so.1[0-9]"

# The CUDA runtime as a host program uses it; rt is its library, check raises for an error.
RUNTIME = """
import ctypes, glob, json, sys, time
import numpy as np
rt = ctypes.CDLL(sorted(glob.glob("%s"))[-1])
def check(status):
    assert status == 0, status
def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    return free.value
def take_all_but(keep):
    held, step = [], 1 << 30
    while step >= 1 << 20:
        pointer = ctypes.c_void_p()
        room = free_bytes() - keep
        if room >= step and rt.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(step)) == 0:
            held.append(pointer)
        else:
            rt.cudaGetLastError()
            step //= 2
    return held
""" % RUNTIMES


@pytest.fixture(autouse=True)
def has_runtime():
    """Skips where there is no CUDA runtime to play the host program with."""
    if not glob.glob(RUNTIMES):
        pytest.skip(f"no {RUNTIMES}")


def test_c55_our_failure_leaves_no_error(runner):  # noqa: F811
    """(a) No memory for us in the host's own process: CPU result, the host sees no error."""
    program = RUNTIME + """
a = np.ones((400, 400))
assert (a @ (a + 1) == 800).all()
big = np.ones((6000, 6000))
held = take_all_but(60 << 20)
assert rt.cudaGetLastError() == 0
assert (big @ big == 6000).all()
assert rt.cudaPeekAtLastError() == 0 and rt.cudaGetLastError() == 0
print(free_bytes())
"""
    outcome = runner.python(program)
    rows = {row["m"]: row for row in outcome.records}
    assert rows[400]["where"] == "gpu"
    assert rows[6000]["where"] == "cpu" and rows[6000]["code"] in ("M401", "M402"), rows[6000]


def test_c55_the_hosts_error_stays(runner):  # noqa: F811
    """(b) An error that the host left is still there after a product of ours, which is right."""
    program = RUNTIME + """
check(rt.cudaFree(None))
a = np.ones((500, 500))
bad = rt.cudaMemcpy(ctypes.c_void_p(8), ctypes.c_void_p(8), ctypes.c_size_t(8), 77)
assert bad != 0
for n in (500, 3000):
    a = np.ones((n, n))
    assert (a @ (a + 1) == 2 * n).all()
    assert rt.cudaPeekAtLastError() == bad
assert rt.cudaGetLastError() == bad and rt.cudaGetLastError() == 0
"""
    assert runner.python(program).gpu_calls("dgemm") == 2


def test_c55_beside_cupy(runner):  # noqa: F811
    """One process, CuPy and ours in turn: both right, CuPy's stream and error state untouched."""
    pytest.importorskip("cupy", reason="CuPy is not installed")
    program = """
import cupy as cp
import numpy as np
a = np.random.default_rng(55).standard_normal((900, 900))
for i in range(5):
    theirs = cp.asarray(a) @ cp.asarray(a)
    ours = a @ (a + 0)
    assert np.allclose(cp.asnumpy(theirs), ours, rtol=1e-11, atol=1e-10)
    cp.cuda.runtime.deviceSynchronize()
    try:
        cp.cuda.runtime.memcpy(8, 8, 8, 77)
        assert False
    except cp.cuda.runtime.CUDARuntimeError:
        pass
    a = np.roll(a, 1, axis=0)
"""
    assert runner.python(program).gpu_calls("dgemm") == 5


HOLDER = RUNTIME + """
held = take_all_but(50 << 20)
print(free_bytes(), flush=True)
sys.stdin.readline()
"""


def test_c57_memory_taken_by_another_process(runner):  # noqa: F811
    """CPU results and a reason that names memory; no storm of attempts; used again when free."""
    program = """
import json, sys, time
import numpy as np
a = np.ones((2000, 2000))
begin, rounds = time.monotonic(), 0
while time.monotonic() - begin < 4:
    assert (a @ (a + 1) == 4000).all()
    rounds += 1
print(rounds, flush=True)
sys.stdin = open(sys.argv[1])
sys.stdin.readline()
begin, rounds = time.monotonic(), 0
while time.monotonic() - begin < 8:
    assert (a @ (a + 1) == 4000).all()
"""
    fifo = str(runner.folder / "fifo")
    os.mkfifo(fifo)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, encoding="utf-8", env=base_environment())
    release = None
    try:
        assert int(holder.stdout.readline()) < 200 << 20
        release = subprocess.Popen(  # gives the memory back when the program has had its time
            [sys.executable, "-c", "import sys, time, os\ntime.sleep(9)\n"
             f"os.kill({holder.pid}, 15)\ntime.sleep(1)\nopen({fifo!r}, 'w').write('go\\n')"])
        outcome = runner.python(program, fifo, timeout=60)
    finally:
        for process in filter(None, (release, holder)):
            process.kill()
            process.wait()
    rows = outcome.records
    first_gpu = next((i for i, row in enumerate(rows) if row["where"] == "gpu"), len(rows))
    taken = rows[:first_gpu]
    assert taken and {row["code"] for row in taken} <= {"M401", "M402"}, {r["code"] for r in taken}
    assert sum(row["code"] == "M402" for row in taken) <= 12  # attempts in about ten seconds
    assert first_gpu < len(rows), "the GPU was not used again after the memory was free"
    assert outcome.stderr == ""


def test_c99_beside_a_busy_default_stream(runner):  # noqa: F811
    """A product does not wait for the other program's kernel, and is final when it returns."""
    pytest.importorskip("cupy", reason="CuPy is not installed")
    program = """
import json, time
import cupy as cp
import numpy as np
spin = cp.RawKernel(r'''extern "C" __global__ void spin(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) ;
}''', "spin")
a = np.ones((700, 700))
assert (a @ a == 700).all()
spin((1,), (1,), (1000,))
cp.cuda.runtime.deviceSynchronize()
begin = time.perf_counter()
spin((1,), (1,), (4_000_000_000,))
slowest = 0
for i in range(20):
    before = time.perf_counter()
    c = (a * (i + 1)) @ a
    slowest = max(slowest, time.perf_counter() - before)
    assert (c == 700 * (i + 1)).all()
during = time.perf_counter() - begin
cp.cuda.runtime.deviceSynchronize()
print(json.dumps([slowest, during, time.perf_counter() - begin]))
"""
    outcome = runner.python(program)
    slowest, during, kernel = outcome.json
    assert outcome.gpu_calls("dgemm") == 21
    assert kernel > 1 and during < kernel and slowest < 0.5 * kernel, outcome.json


def test_vendor_variables_do_not_reach_us(runner):  # noqa: F811
    """TF32 and emulated FP64 change bits of random products; with them set ours are the same."""
    program = """
import hashlib
import numpy as np
random = np.random.default_rng(31)
digest = hashlib.sha256()
for kind in ("f4", "f8", "c8", "c16"):
    for n in (512, 2048):
        a, b = (random.standard_normal((n, n)).astype(kind) for _ in range(2))
        digest.update((a @ b).tobytes())
print(digest.hexdigest())
"""
    plain = runner.python(program)
    outcome = runner.python(program, env={
        "NVIDIA_TF32_OVERRIDE": "1", "CUBLAS_EMULATE_DOUBLE_PRECISION": "1",
        "CUBLAS_EMULATE_SINGLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"})
    assert outcome.gpu_calls() + outcome.calls(code="P704") == 8
    if outcome.gpu_calls() == 8:
        assert outcome.stdout == plain.stdout


def test_tf32_when_asked_for(runner):  # noqa: F811
    """GPUSHIM_PRECISION=tf32 is the one way to it: the test of exactness above can fail."""
    program = """
import numpy as np
random = np.random.default_rng(31)
a, b = (random.standard_normal((1024, 1024)).astype("f4") for _ in range(2))
exact = np.einsum("ij,jk->ik", a[:8].astype("f8"), b.astype("f8"))
print(np.abs((a @ b)[:8] - exact).max() / np.abs(exact).max())
"""
    strict = float(runner.python(program).stdout)
    lowered = float(runner.python(program, PRECISION="tf32").stdout)
    assert strict < 3e-6 < 1e-5 < lowered < 1e-2


def test_auto_moves_large_products(runner):  # noqa: F811
    """auto: the first calls run on the CPU (G504, L807), then the device takes over by itself."""
    program = """
import numpy as np
a = np.ones((4096, 4096))
for _ in range(25):
    assert (a @ a)[5, 7] == 4096
"""
    outcome = runner.python(program, mode="auto")
    codes = [row["code"] for row in outcome.records]
    assert codes[0] == "G504" and codes[-1] == "R001", codes
    assert outcome.records[-1]["where"] == "gpu"


def test_device_memory_is_given_back(runner):  # noqa: F811
    """2000 shapes: what stays on the device is bounded."""
    program = RUNTIME + """
a = np.ones((64, 64))
a @ a
before = free_bytes()
random = np.random.default_rng(62)
for i in range(2000):
    m, n, k = random.integers(1, 400, 3)
    assert (np.ones((m, k)) @ np.ones((k, n)))[0, 0] == k
print(before - free_bytes())
"""
    outcome = runner.python(program)
    assert outcome.gpu_calls("dgemm") >= 1900
    assert int(outcome.stdout) < 512 << 20
