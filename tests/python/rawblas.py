# SPDX-License-Identifier: Apache-2.0
"""Raw BLAS calls from Python through the names that this NumPy and SciPy use themselves.

Imported by the programs of the tests. Under the preload the address is the one that any caller of
the name gets (the global scope); without it that of the library.
"""
import ctypes
import os

import numpy as np
import scipy.linalg.blas  # noqa: F401  (loads the BLAS behind the Fortran names)

LETTERS = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
N, T, C, ROW, COL = 111, 112, 113, 101, 102


def mapped(part):
    """Returns the path of the first mapped file whose name contains part, or None."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            path = line.split(maxsplit=5)[5].strip() if line.count("/") else ""
            if part in os.path.basename(path):
                return path
    return None


def provider_path():
    """Returns the library behind SciPy's Fortran names: of the wheel, else the system's."""
    return mapped("libscipy_openblas-") or mapped("libblas.so.3") or mapped("libopenblas")


IS_WHEEL = mapped("libscipy_openblas-") is not None
PRELOADED = mapped("libgpushim") is not None
PREFIX = "scipy_" if IS_WHEEL else ""
LIBRARY = ctypes.CDLL(None) if PRELOADED else ctypes.CDLL(provider_path())


def function(name):
    """Returns the ctypes function of a BLAS name without prefix: dgemm_, cblas_dgemm."""
    try:
        found = getattr(LIBRARY, PREFIX + name)
    except AttributeError:  # a name that is not intercepted
        found = getattr(ctypes.CDLL(provider_path()), PREFIX + name)
    found.restype = None
    return found


def scalar(letter, value):
    """Returns a scalar as an array of one element of the type."""
    return np.array([value], LETTERS[letter])


def pointer(array):
    """Returns the address of an array, or of a (array, offset in elements) pair."""
    if isinstance(array, tuple):
        return ctypes.c_void_p(array[0].ctypes.data + array[1] * array[0].itemsize)
    return ctypes.c_void_p(array if isinstance(array, int) else array.ctypes.data)


def f77_gemm(letter, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """Calls ?gemm_ with hidden lengths."""
    ints = [ctypes.byref(ctypes.c_int32(value)) for value in (m, n, k, lda, ldb, ldc)]
    one = ctypes.c_size_t(1)
    alpha, beta = scalar(letter, alpha), scalar(letter, beta)
    function(letter + "gemm_")(
        ctypes.c_char_p(transa.encode()), ctypes.c_char_p(transb.encode()), ints[0], ints[1],
        ints[2], pointer(alpha), pointer(a), ints[3], pointer(b), ints[4], pointer(beta),
        pointer(c), ints[5], one, one)


def cblas_gemm(letter, layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """Calls cblas_?gemm."""
    real = {"s": ctypes.c_float, "d": ctypes.c_double}.get(letter)
    keep = scalar(letter, alpha), scalar(letter, beta)
    first, second = (real(alpha), real(beta)) if real else map(pointer, keep)
    function(f"cblas_{letter}gemm")(
        ctypes.c_int(layout), ctypes.c_int(transa), ctypes.c_int(transb), ctypes.c_int(m),
        ctypes.c_int(n), ctypes.c_int(k), first, pointer(a), ctypes.c_int(lda), pointer(b),
        ctypes.c_int(ldb), second, pointer(c), ctypes.c_int(ldc))


def op(x, flag):
    """Returns op(x) for N, T, C as letters or CBLAS numbers."""
    return {"N": x, "T": x.T, "C": x.conj().T, 111: x, 112: x.T, 113: x.conj().T}[
        flag.upper() if isinstance(flag, str) else flag]
