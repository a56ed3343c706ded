/* SPDX-License-Identifier: Apache-2.0
 *
 * A product that can be checked exactly: small integers in, small integers out.
 */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef BLAS_INT
#define BLAS_INT int32_t
#endif

extern void dgemm_(const char *transa, const char *transb, const BLAS_INT *m, const BLAS_INT *n,
                   const BLAS_INT *k, const double *alpha, const double *a, const BLAS_INT *lda,
                   const double *b, const BLAS_INT *ldb, const double *beta, double *c,
                   const BLAS_INT *ldc, size_t transa_len, size_t transb_len);
extern void sgemm_(const char *transa, const char *transb, const BLAS_INT *m, const BLAS_INT *n,
                   const BLAS_INT *k, const float *alpha, const float *a, const BLAS_INT *lda,
                   const float *b, const BLAS_INT *ldb, const float *beta, float *c,
                   const BLAS_INT *ldc, size_t transa_len, size_t transb_len);

static inline double entry_a(int64_t i, int64_t j, int seed)
{
    return (double)((i + 2 * j + seed) % 5 - 2);
}

static inline double entry_b(int64_t i, int64_t j, int seed)
{
    return (double)((3 * i + j + 2 * seed) % 7 - 3);
}

/* Element (i, j) of the product of two such matrices. */
static inline double entry_ab(int64_t i, int64_t j, int64_t k, int seed)
{
    double sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum += entry_a(i, p, seed) * entry_b(p, j, seed);
    return sum;
}

/* Checks an m x n result; every element, or for large ones a sample. Returns the number of wrong
 * elements. */
static inline int wrong_elements(const double *c, int64_t m, int64_t n, int64_t k, int64_t ld,
                                 int seed, double added)
{
    int64_t step = m * n * k > 2000000 ? 37 : 1;
    int wrong = 0;
    for (int64_t at = 0; at < m * n; at += step) {
        int64_t i = at % m, j = at / m;
        wrong += c[j * ld + i] != entry_ab(i, j, k, seed) + added;
    }
    return wrong;
}

/* C = A B, n x n, through dgemm_; beta: 0, or 1 with C full of ones. Returns 0 when it is right,
 * else says so on stdout. */
static inline int product_beta(int n, int seed, double beta)
{
    BLAS_INT size = n;
    double alpha = 1;
    double *a = calloc((size_t)n * (size_t)n * 3, sizeof *a), *b = a + n * n, *c = b + n * n;
    if (a == NULL)
        return 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            a[j * n + i] = entry_a(i, j, seed);
            b[j * n + i] = entry_b(i, j, seed);
            c[j * n + i] = beta == 0 ? (double)NAN : 1;
        }
    dgemm_("N", "N", &size, &size, &size, &alpha, a, &size, b, &size, &beta, c, &size, 1, 1);
    int wrong = wrong_elements(c, n, n, n, n, seed, beta);
    free(a);
    if (wrong != 0)
        printf("product %d, seed %d: %d elements are wrong\n", n, seed, wrong);
    return wrong != 0;
}

static inline int product(int n, int seed)
{
    return product_beta(n, seed, seed % 2);
}
