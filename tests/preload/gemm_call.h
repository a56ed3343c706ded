/* SPDX-License-Identifier: Apache-2.0
 *
 * One gemm call as data: any type, any interface. BLAS_INT is the integer of the library that the
 * program is linked with.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef BLAS_INT
#define BLAS_INT int32_t
#endif

enum dtype { S, D, C, Z, DTYPES };
enum interface { F77, COLUMNS, ROWS, INTERFACES }; /* Fortran; CBLAS column- and row-major */

/* C = alpha op(A) op(B) + beta C; op(A) is m x k, op(B) k x n. Leading dimensions in the sense of
 * the interface. */
struct gemm {
    enum dtype dtype;
    enum interface interface;
    char transa, transb;           /* N T C in either case */
    int64_t m, n, k, lda, ldb, ldc;
    double alpha[2], beta[2];
    void *a, *b, *c;
};

typedef void (*gemm_function)(void);

/* The functions a program may call: those it is linked with, through the preload if there is
 * one. */
gemm_function gemm_linked(enum dtype dtype, enum interface interface);

/* "dgemm_", "cblas_dgemm" */
const char *gemm_name(enum dtype dtype, enum interface interface);

void gemm_call(const struct gemm *g, gemm_function function);

static inline size_t element_bytes(enum dtype dtype)
{
    static const size_t bytes[DTYPES] = {4, 8, 8, 16};
    return bytes[dtype];
}

static inline bool is_complex(enum dtype dtype)
{
    return dtype >= C;
}

static inline bool is_single(enum dtype dtype)
{
    return dtype == S || dtype == C;
}
