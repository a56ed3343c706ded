/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas: one call of level 3, in a form that all routines share. level3.c makes and checks it,
 * level3_run.c computes it when the stream runs.
 */
#pragma once

#include "fake_cublas.h"

enum family { FAMILY_gemm, FAMILY_sided, FAMILY_rank_k, FAMILY_rank_2k, FAMILY_trmm, FAMILY_trsm };

enum routine {
    ROUTINE_gemm,
    ROUTINE_symm,
    ROUTINE_hemm,
    ROUTINE_syrk,
    ROUTINE_herk,
    ROUTINE_syr2k,
    ROUTINE_her2k,
    ROUTINE_trmm,
    ROUTINE_trsm,
};

/* The Fortran interface of the OpenBLAS inside, per family; the types differ in nothing else. */
typedef void kernel_gemm(const char *transa, const char *transb, const int *m, const int *n,
                         const int *k, const void *alpha, const void *a, const int *lda,
                         const void *b, const int *ldb, const void *beta, void *c, const int *ldc);
typedef void kernel_sided(const char *side, const char *uplo, const int *m, const int *n,
                          const void *alpha, const void *a, const int *lda, const void *b,
                          const int *ldb, const void *beta, void *c, const int *ldc);
typedef void kernel_rank_k(const char *uplo, const char *trans, const int *n, const int *k,
                           const void *alpha, const void *a, const int *lda, const void *beta,
                           void *c, const int *ldc);
typedef void kernel_rank_2k(const char *uplo, const char *trans, const int *n, const int *k,
                            const void *alpha, const void *a, const int *lda, const void *b,
                            const int *ldb, const void *beta, void *c, const int *ldc);
typedef void kernel_trmm(const char *side, const char *uplo, const char *trans, const char *diag,
                         const int *m, const int *n, const void *alpha, const void *a,
                         const int *lda, void *b, const int *ldb);
typedef kernel_trmm kernel_trsm;

union kernel {
    kernel_gemm *gemm;
    kernel_sided *sided;
    kernel_rank_k *rank_k;
    kernel_rank_2k *rank_2k;
    kernel_trmm *trmm;
    kernel_trsm *trsm;
};

union scalar {
    float s;
    double d;
    cuComplex c;
    cuDoubleComplex z;
};

struct matrix {
    CUdeviceptr address;
    int64_t rows, columns, ld; /* as stored */
};

/* What a routine does not have is 0, which every check accepts. */
struct level3 {
    struct work work;
    enum family family;
    enum routine routine;
    char type; /* s, d, c or z */
    union kernel kernel;
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasOperation_t trans, transb;
    cublasDiagType_t diag;
    int64_t k;
    const void *host_alpha, *host_beta; /* valid during the call */
    union scalar alpha, beta;
    struct matrix a, b, c; /* c is the result; trsm: the same as b */
    bool reads;            /* a and b matter: neither alpha nor k is 0 */
    bool keeps;            /* c matters before the call: beta is not 0 */
    bool tf32;
};

static inline size_t size_of(char type)
{
    return type == 's' ? sizeof(float) : type == 'z' ? sizeof(cuDoubleComplex) : sizeof(double);
}

static inline bool is_complex(char type)
{
    return type == 'c' || type == 'z';
}

static inline bool is_rank_update(const struct level3 *job)
{
    return job->family == FAMILY_rank_k || job->family == FAMILY_rank_2k;
}

static inline bool is_triangular(const struct level3 *job)
{
    return job->family == FAMILY_trmm || job->family == FAMILY_trsm;
}

static inline bool has_b(const struct level3 *job)
{
    return job->family != FAMILY_rank_k;
}

/* Runs the queued job of which this is the first member. */
CUresult level3_run(struct work *work, enum how how);
