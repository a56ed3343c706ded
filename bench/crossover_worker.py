#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One engine of bench/crossover.py in a process of its own.

Commands come as JSON lines on stdin, {"dtype": "f64", "n": 512, "calls": 3, "check": true}; each is
answered by one on stdout, {"seconds": [...], "error": 0.01}. The first line says what the engine
is, or why it cannot run.
"""
import ctypes
import json
import os
import sys
import time


class Numpy:
    """a @ b, with or without a preload."""

    def __init__(self):
        import numpy
        self.numpy = numpy

    def multiply(self, a, b):
        """Returns the product."""
        return a @ b

    def about(self):
        """Returns what this engine is, as a dict."""
        return {"numpy": self.numpy.__version__}


class Shim(Numpy):
    """a @ b once the device is up: auto starts it when enough savings have been missed."""

    def __init__(self):
        super().__init__()
        begin = time.perf_counter()
        n = int(os.environ.get("CROSSOVER_WARM_N", "4096"))
        a = self.numpy.ones((n, n))
        self.warm_up_calls = 0
        # The driver library is mapped from start-up on; a few calls more let estimates settle.
        settled = 0
        while settled < 3 and self.warm_up_calls < 200 and time.perf_counter() - begin < 20:
            a @ a
            self.warm_up_calls += 1
            settled += is_mapped("libcublas.so") != ""
        time.sleep(0.5 if settled else 0)
        for _ in range(3):
            a @ a
        self.warm_up_s = time.perf_counter() - begin

    def about(self):
        return {"warm_up_calls": self.warm_up_calls, "warm_up_s": round(self.warm_up_s, 3)}


class Nvblas:
    """dgemm_ and sgemm_ of libnvblas.so, column-major, on row-major arrays: B' A'."""

    def __init__(self):
        import numpy
        self.numpy = numpy
        if not is_mapped("libnvblas"):
            raise RuntimeError("libnvblas.so is not preloaded")
        library = ctypes.CDLL(None)
        self.functions = {"float64": (library.dgemm_, ctypes.c_double),
                          "float32": (library.sgemm_, ctypes.c_float)}

    def multiply(self, a, b):
        """Returns the product."""
        function, real = self.functions[str(a.dtype)]
        n = ctypes.byref(ctypes.c_int(len(a)))
        c = self.numpy.empty_like(a)
        one, zero, flag = real(1), real(0), ctypes.c_char(b"N")
        function(ctypes.byref(flag), ctypes.byref(flag), n, n, n, ctypes.byref(one),
                 ctypes.c_void_p(b.ctypes.data), n, ctypes.c_void_p(a.ctypes.data), n,
                 ctypes.byref(zero), ctypes.c_void_p(c.ctypes.data), n,
                 ctypes.c_size_t(1), ctypes.c_size_t(1))
        return c

    def about(self):
        """Returns what this engine is, as a dict."""
        return {"library": is_mapped("libnvblas"), "config": os.environ["NVBLAS_CONFIG_FILE"]}


class Cupy:
    """Both copies and the product, as CuPy's own users write it."""

    def __init__(self):
        import cupy
        self.cupy = cupy

    def multiply(self, a, b):
        """Returns the product."""
        return self.cupy.asnumpy(self.cupy.asarray(a) @ self.cupy.asarray(b))

    def about(self):
        """Returns what this engine is, as a dict."""
        return {"cupy": self.cupy.__version__}


WORKERS = {"numpy": Numpy, "shim-auto": Shim, "shim-force": Shim, "nvblas": Nvblas, "cupy": Cupy}


def is_mapped(part):
    """Returns the path of the first mapped file whose path contains part, or "" for none."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            words = line.split(maxsplit=5)
            if len(words) == 6 and part in os.path.basename(words[5]):
                return words[5].strip()
    return ""


def error_of(numpy, random, a, b, c):
    """Returns |C v - A (B v)| relative to its rounding bound; einsum calls no BLAS."""
    v = random.standard_normal(len(a))
    found, inner = (numpy.einsum("ij,j->i", x, v) for x in (c, b))
    expected = numpy.einsum("ij,j->i", a, inner)
    # Entries of a and b are in [0, 1): c is at most n, sums of n of them times |v| at most n n |v|.
    bound = 4 * len(a) ** 1.5 * numpy.finfo(a.dtype).eps * numpy.linalg.norm(v)
    return float(numpy.abs(found - expected).max() / bound)


def run_once(engine, numpy, random, command):
    """Does the calls of one command; returns their times and the worst error."""
    n, dtype = command["n"], numpy.dtype({"f64": "float64", "f32": "float32"}[command["dtype"]])
    seconds, worst = [], 0.0
    for _ in range(command["calls"]):
        a, b = random.random((n, n), dtype), random.random((n, n), dtype)
        begin = time.perf_counter()
        c = engine.multiply(a, b)
        seconds.append(time.perf_counter() - begin)
        if command["check"]:
            worst = max(worst, error_of(numpy, random, a, b, c))
    return {"seconds": seconds, "error": worst}


def worker(name):
    """Answers the commands on stdin, one JSON line each, until it is closed."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not look like an answer
    try:
        import numpy
        engine = WORKERS[name]()
        random = numpy.random.default_rng(hash(name) % 2**32)
        first = {"ok": True, **engine.about()}
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        first = {"ok": False, "why": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(first), file=answers, flush=True)
    for line in sys.stdin if first["ok"] else ():
        answer = run_once(engine, numpy, random, json.loads(line))
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    worker(sys.argv[1])
