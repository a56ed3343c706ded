/* SPDX-License-Identifier: Apache-2.0
 *
 * A small BLAS for the tests that need one with a mind of its own. The including file says what
 * dgemm_ and sgemm_ do beyond the product.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OWN_BLAS_EXPORT __attribute__((visibility("default")))

#define OWN_BLAS_PARAMETERS(type)                                                             \
    const char *transa, const char *transb, const int32_t *m, const int32_t *n,               \
        const int32_t *k, const type *alpha, const type *a, const int32_t *lda,               \
        const type *b, const int32_t *ldb, const type *beta, type *c, const int32_t *ldc,     \
        size_t transa_len, size_t transb_len

/* No flags: op(X) = X. */
#define OWN_BLAS_PRODUCT()                                                                    \
    do {                                                                                      \
        (void)transa, (void)transb, (void)transa_len, (void)transb_len;                       \
        for (int32_t j = 0; j < *n; j++)                                                      \
            for (int32_t i = 0; i < *m; i++) {                                                \
                double sum = *beta == 0 ? 0 : *beta * c[j * *ldc + i];                        \
                for (int32_t p = 0; p < *k; p++)                                              \
                    sum += *alpha * a[p * *lda + i] * b[j * *ldb + p];                        \
                c[j * *ldc + i] = (__typeof__(*c))sum;                                        \
            }                                                                                 \
    } while (0)

/* For the width probe. */
#define OWN_BLAS_ISAMAX                                                                       \
    OWN_BLAS_EXPORT int32_t isamax_(const int32_t *n, const float *x, const int32_t *step);   \
    OWN_BLAS_EXPORT int32_t isamax_(const int32_t *n, const float *x, const int32_t *step)    \
    {                                                                                         \
        int32_t best = 0;                                                                     \
        for (int32_t i = 1; i < *n; i++)                                                      \
            if (x[i * *step] > x[best * *step])                                               \
                best = i;                                                                     \
        return *n < 1 ? 0 : best + 1;                                                         \
    }
