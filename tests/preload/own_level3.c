/* SPDX-License-Identifier: Apache-2.0
 *
 * A BLAS of the routines that Debian's libraries lack: gemmt, gemmtr, gemm_batch and
 * gemm_batch_strided, in plain loops. BLAS_INT: its integer, under the plain names in any case.
 */
#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef BLAS_INT
#define BLAS_INT int32_t
#endif

#define EXPORT __attribute__((visibility("default")))

/* For the width probe. */
EXPORT BLAS_INT isamax_(const BLAS_INT *n, const float *x, const BLAS_INT *step)
{
    BLAS_INT best = 0;
    for (BLAS_INT i = 1; i < *n; i++)
        if (x[i * *step] > x[best * *step])
            best = i;
    return *n < 1 ? 0 : best + 1;
}

EXPORT size_t cblas_isamax(BLAS_INT n, const float *x, BLAS_INT step)
{
    BLAS_INT found = isamax_(&n, x, &step);
    return found > 0 ? (size_t)found - 1 : 0;
}

/* The program may have its own. */
EXPORT void xerbla_(const char *name, const BLAS_INT *info, size_t length)
{
    fprintf(stderr, "own BLAS: parameter %d of %.*s\n", (int)*info, (int)length, name);
}

static void refuse(const char *name, int parameter)
{
    BLAS_INT info = parameter;
    xerbla_(name, &info, strlen(name));
}

static char upper(char flag)
{
    return flag >= 'a' ? (char)(flag - 'a' + 'A') : flag;
}

static char trans_of(int value)
{
    return value == 111 ? 'N' : value == 112 ? 'T' : value == 113 ? 'C' : '?';
}

static char uplo_of(int value)
{
    return value == 121 ? 'U' : value == 122 ? 'L' : '?';
}

/* uplo: 0 where there is none. */
struct flags {
    int layout;
    char uplo, transa, transb;
};

static bool is_trans(char flag)
{
    return flag == 'N' || flag == 'T' || flag == 'C';
}

static int64_t least(const struct flags *f, int64_t rows, int64_t cols)
{
    int64_t length = f->layout == 101 ? cols : rows;
    return length > 1 ? length : 1;
}

static bool is_legal(const char *name, const struct flags *f, int64_t m, int64_t n, int64_t k,
                     int64_t lda, int64_t ldb, int64_t ldc)
{
    bool na = f->transa == 'N', nb = f->transb == 'N';
    int bad = f->layout != 101 && f->layout != 102          ? 1
              : f->uplo != 0 && f->uplo != 'U' && f->uplo != 'L' ? 2
              : !is_trans(f->transa)                        ? 3
              : !is_trans(f->transb)                        ? 4
              : m < 0                                       ? 5
              : n < 0                                       ? 6
              : k < 0                                       ? 7
              : lda < least(f, na ? m : k, na ? k : m)      ? 10
              : ldb < least(f, nb ? k : n, nb ? n : k)      ? 12
              : ldc < least(f, m, n)                        ? 15
                                                            : 0;
    if (bad != 0)
        refuse(name, bad);
    return bad == 0;
}

#define T float
#define SCALAR float
#define VALUE(x) (x)
#define CONJ(x) (x)
#define TYPED(x) s_##x
#define F77(x) s##x##_
#define CBLAS(x) cblas_s##x
#include "own_level3.inc"

#define T double
#define SCALAR double
#define VALUE(x) (x)
#define CONJ(x) (x)
#define TYPED(x) d_##x
#define F77(x) d##x##_
#define CBLAS(x) cblas_d##x
#include "own_level3.inc"

#define T float complex
#define SCALAR const void *
#define VALUE(x) (*(const T *)(x))
#define CONJ(x) conjf(x)
#define TYPED(x) c_##x
#define F77(x) c##x##_
#define CBLAS(x) cblas_c##x
#include "own_level3.inc"

#define T double complex
#define SCALAR const void *
#define VALUE(x) (*(const T *)(x))
#define CONJ(x) conj(x)
#define TYPED(x) z_##x
#define F77(x) z##x##_
#define CBLAS(x) cblas_z##x
#include "own_level3.inc"
