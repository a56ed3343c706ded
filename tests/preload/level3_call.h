/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of a level-3 routine as data: any family, type and interface.
 */
#pragma once

#include "gemm_call.h"

enum family {
    GEMM3M, SYMM, HEMM, SYRK, HERK, SYR2K, HER2K, TRMM, TRSM, GEMMT, GEMMTR, BATCH, STRIDED,
    FAMILIES
};

/* In each family the arguments that it has, in the sense of the interface. trmm and trsm work on
 * c, which BLAS calls B; their b is not used. */
struct level3 {
    enum family family;
    enum dtype dtype;
    enum interface interface;
    char side, uplo, transa, transb, diag;
    int64_t m, n, k, lda, ldb, ldc;
    double alpha[2], beta[2];
    void *a, *b, *c;
    int layout;                    /* of CBLAS; 0: as the interface says */
};

extern const char *const family_names[FAMILIES];

/* "zher2k", "zher2k_", "cblas_zher2k" into a buffer of 40. */
const char *routine_name(char *name, enum family family, enum dtype dtype);
const char *entry_name(char *name, enum family family, enum dtype dtype,
                       enum interface interface);

/* Where a program that is linked with a BLAS finds the name: in the preload if there is one. */
gemm_function level3_linked(enum family family, enum dtype dtype, enum interface interface);

/* The function of the CPU library itself, past any preload. */
gemm_function level3_original(enum family family, enum dtype dtype, enum interface interface);

/* Not for BATCH and STRIDED. */
void level3_call(const struct level3 *l, gemm_function function);

/* 111 for 'N', and so on, in either case; 99 for what is no flag. */
int flag_enum(char flag, const char *letters, int first);

static inline bool has_side(enum family family)
{
    return family == SYMM || family == HEMM || family == TRMM || family == TRSM;
}

static inline bool is_triangular(enum family family)
{
    return family == TRMM || family == TRSM;
}

static inline bool is_rank_k(enum family family)
{
    return family >= SYRK && family <= HER2K;
}

static inline bool is_rank_2k(enum family family)
{
    return family == SYR2K || family == HER2K;
}

/* Of C, or of A for hemm. */
static inline bool is_hermitian(enum family family)
{
    return family == HEMM || family == HERK || family == HER2K;
}

static inline bool is_gemmt(enum family family)
{
    return family == GEMMT || family == GEMMTR;
}

/* Whether only a triangle of C is written. */
static inline bool writes_triangle(enum family family)
{
    return is_rank_k(family) || is_gemmt(family);
}

static inline bool family_has(enum family family, enum dtype dtype)
{
    return is_complex(dtype) || !(is_hermitian(family) || family == GEMM3M);
}
