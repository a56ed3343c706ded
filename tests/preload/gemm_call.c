/* SPDX-License-Identifier: Apache-2.0 */
#include "gemm_call.h"

#define F77_PARAMETERS                                                                        \
    const char *transa, const char *transb, const BLAS_INT *m, const BLAS_INT *n,             \
        const BLAS_INT *k, const void *alpha, const void *a, const BLAS_INT *lda,             \
        const void *b, const BLAS_INT *ldb, const void *beta, void *c, const BLAS_INT *ldc,   \
        size_t transa_len, size_t transb_len
#define CBLAS_PARAMETERS(scalar)                                                              \
    int layout, int transa, int transb, BLAS_INT m, BLAS_INT n, BLAS_INT k, scalar alpha,     \
        const void *a, BLAS_INT lda, const void *b, BLAS_INT ldb, scalar beta, void *c,       \
        BLAS_INT ldc

extern void sgemm_(F77_PARAMETERS);
extern void dgemm_(F77_PARAMETERS);
extern void cgemm_(F77_PARAMETERS);
extern void zgemm_(F77_PARAMETERS);
extern void cblas_sgemm(CBLAS_PARAMETERS(float));
extern void cblas_dgemm(CBLAS_PARAMETERS(double));
extern void cblas_cgemm(CBLAS_PARAMETERS(const void *));
extern void cblas_zgemm(CBLAS_PARAMETERS(const void *));

gemm_function gemm_linked(enum dtype dtype, enum interface interface)
{
    static const gemm_function f77[DTYPES] = {
        (gemm_function)sgemm_, (gemm_function)dgemm_, (gemm_function)cgemm_,
        (gemm_function)zgemm_};
    static const gemm_function cblas[DTYPES] = {
        (gemm_function)cblas_sgemm, (gemm_function)cblas_dgemm, (gemm_function)cblas_cgemm,
        (gemm_function)cblas_zgemm};
    return interface == F77 ? f77[dtype] : cblas[dtype];
}

const char *gemm_name(enum dtype dtype, enum interface interface)
{
    static const char *const f77[DTYPES] = {"sgemm_", "dgemm_", "cgemm_", "zgemm_"};
    static const char *const cblas[DTYPES] = {"cblas_sgemm", "cblas_dgemm", "cblas_cgemm",
                                              "cblas_zgemm"};
    return interface == F77 ? f77[dtype] : cblas[dtype];
}

static int enum_of(char trans)
{
    return trans == 'N' || trans == 'n' ? 111 : trans == 'T' || trans == 't' ? 112 : 113;
}

static void call_f77(const struct gemm *g, gemm_function function, const void *alpha,
                     const void *beta)
{
    BLAS_INT m = (BLAS_INT)g->m, n = (BLAS_INT)g->n, k = (BLAS_INT)g->k;
    BLAS_INT lda = (BLAS_INT)g->lda, ldb = (BLAS_INT)g->ldb, ldc = (BLAS_INT)g->ldc;
    ((void (*)(F77_PARAMETERS))function)(&g->transa, &g->transb, &m, &n, &k, alpha, g->a, &lda,
                                         g->b, &ldb, beta, g->c, &ldc, 1, 1);
}

#define CALL_CBLAS(scalar, alpha, beta)                                                       \
    ((void (*)(CBLAS_PARAMETERS(scalar)))function)(                                           \
        g->interface == ROWS ? 101 : 102, enum_of(g->transa), enum_of(g->transb),             \
        (BLAS_INT)g->m, (BLAS_INT)g->n, (BLAS_INT)g->k, alpha, g->a, (BLAS_INT)g->lda, g->b,  \
        (BLAS_INT)g->ldb, beta, g->c, (BLAS_INT)g->ldc)

static void call_cblas(const struct gemm *g, gemm_function function, const void *alpha,
                       const void *beta)
{
    switch (g->dtype) {
    case S: CALL_CBLAS(float, *(const float *)alpha, *(const float *)beta); break;
    case D: CALL_CBLAS(double, *(const double *)alpha, *(const double *)beta); break;
    default: CALL_CBLAS(const void *, alpha, beta);
    }
}

void gemm_call(const struct gemm *g, gemm_function function)
{
    float alpha_f[2] = {(float)g->alpha[0], (float)g->alpha[1]};
    float beta_f[2] = {(float)g->beta[0], (float)g->beta[1]};
    bool single = is_single(g->dtype);
    const void *alpha = single ? (const void *)alpha_f : g->alpha;
    const void *beta = single ? (const void *)beta_f : g->beta;
    if (g->interface == F77)
        call_f77(g, function, alpha, beta);
    else
        call_cblas(g, function, alpha, beta);
}
