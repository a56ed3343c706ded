/* SPDX-License-Identifier: Apache-2.0
 *
 * A BLAS whose gemm does nothing: what a call costs beyond it is the way to it. isamax is real, so
 * that the integer width can be probed.
 */
#include <stddef.h>

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc, size_t transa_len, size_t transb_len);
void cblas_dgemm(int layout, int transa, int transb, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);
int isamax_(const int *n, const float *x, const int *incx);
size_t cblas_isamax(int n, const float *x, int incx);

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc, size_t transa_len, size_t transb_len)
{
    (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda;
    (void)b, (void)ldb, (void)beta, (void)c, (void)ldc, (void)transa_len, (void)transb_len;
}

void cblas_dgemm(int layout, int transa, int transb, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc)
{
    (void)layout, (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)alpha, (void)a;
    (void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
}

size_t cblas_isamax(int n, const float *x, int incx)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i * incx] > x[best * incx])
            best = i;
    return (size_t)best;
}

int isamax_(const int *n, const float *x, const int *incx)
{
    return *n < 1 ? 0 : (int)cblas_isamax(*n, x, *incx) + 1;
}
