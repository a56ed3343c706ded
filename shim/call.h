/* SPDX-License-Identifier: Apache-2.0
 *
 * gs_call: one intercepted call in the form that everything behind the entry stubs reads. It is
 * always column-major, with upper-case flags and 64-bit sizes; nothing later knows a spelling.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paste.h"

typedef enum gs_dtype { GS_F32, GS_F64, GS_C32, GS_C64, GS_DTYPE_COUNT } gs_dtype;

typedef enum gs_operation {
#define GS_TEMPLATE "expand/operation_enum.inc"
#include "operations.inc"
#undef GS_TEMPLATE
    GS_OP_COUNT
} gs_operation;

/* A routine is an operation in one data type: dgemm. */
#define GS_ROUTINE(operation, dtype) ((unsigned)(operation) * GS_DTYPE_COUNT + (unsigned)(dtype))
#define GS_ROUTINE_COUNT (GS_OP_COUNT * GS_DTYPE_COUNT)

/* Of the device, as the policy sees it: refused is for good, with a reason. */
enum gs_device_state { GS_COLD, GS_STARTING, GS_READY, GS_REFUSED };

enum gs_role { GS_IN = 1, GS_OUT = 2, GS_INOUT = 3 };

#define GS_MAX_OPERANDS 4

/* Which elements of a square matrix are referenced: all, or one triangle with the diagonal. The
 * other triangle is somebody else's. */
enum gs_part { GS_FULL, GS_UPPER, GS_LOWER };

/* A matrix in host memory: rows x cols elements, column j at host + j * ld elements. Only those
 * elements (of its part) belong to it; the ld - rows between columns are somebody else's. */
struct gs_operand {
    void *host;
    int64_t rows, cols, ld;
    enum gs_role role;
    enum gs_part part;
    bool hermitian;               /* the imaginary part of the diagonal counts as zero */
};

/* A scalar argument, copied at the door: float or double, im = 0 for real types. */
union gs_scalar {
    float f32[2];
    double f64[2];
};

struct gs_site;

struct gs_call {
    gs_operation operation;
    gs_dtype dtype;
    uint16_t entry;               /* enum gs_entry: which exported name was called */
    uint16_t objection;           /* U303, U307, S103 found while describing it; 0: none */
    char transa, transb;          /* 'N' 'T' 'C' */
    char uplo, side, diag;        /* 0 where the operation has none */
    int64_t m, n, k;              /* k = 0 where the operation has none */
    union gs_scalar alpha, beta;
    int operand_count;
    struct gs_operand operand[GS_MAX_OPERANDS]; /* in argument order */
    double work;                  /* multiply-adds, in units of the routine's own arithmetic */
    const struct gs_site *site;   /* caller and CPU library (originals.h) */
};

static inline size_t gs_element_bytes(gs_dtype dtype)
{
    static const uint8_t bytes[GS_DTYPE_COUNT] = {4, 8, 8, 16};
    return bytes[dtype];
}

static inline bool gs_is_complex(gs_dtype dtype)
{
    return dtype >= GS_C32;
}

static inline unsigned gs_call_routine(const struct gs_call *call)
{
    return GS_ROUTINE(call->operation, call->dtype);
}

/* First referenced row of column j, and one past the last. */
static inline int64_t gs_first_row(const struct gs_operand *x, int64_t j)
{
    return x->part == GS_LOWER ? j : 0;
}

static inline int64_t gs_end_row(const struct gs_operand *x, int64_t j)
{
    return x->part == GS_UPPER ? j + 1 : x->rows;
}

/* Bytes of the elements of an operand, without the gaps. In double: rows * cols can overflow. */
static inline double gs_operand_bytes(const struct gs_call *call, int i)
{
    const struct gs_operand *x = &call->operand[i];
    double elements = x->part == GS_FULL ? (double)x->rows * (double)x->cols
                                         : (double)x->rows * (double)(x->rows + 1) / 2;
    return elements * (double)gs_element_bytes(call->dtype);
}

/* Sum of gs_operand_bytes over the operands that have role (GS_IN: read, GS_OUT: written). */
static inline double gs_call_bytes(const struct gs_call *call, enum gs_role role)
{
    double sum = 0;
    for (int i = 0; i < call->operand_count; i++)
        if (call->operand[i].role & role)
            sum += gs_operand_bytes(call, i);
    return sum;
}

/* Real floating-point operations of the call: 2 a multiply-add, 8 a complex one. */
static inline double gs_call_flop(const struct gs_call *call)
{
    return call->work * (gs_is_complex(call->dtype) ? 8 : 2);
}

/* Each describes one family, column-major, with the flags as the caller gave them (either case).
 * They set objection to U307 for what the reference BLAS rejects (its tests, in its order), U303
 * for 'R' (conjugate without transpose, an extension of some libraries), S103 for a quick return.
 */

/* C = alpha op(A) op(B) + beta C: op(A) is m x k, op(B) k x n, C m x n. gemm, gemm3m. */
void gs_describe_gemm(struct gs_call *call, gs_operation operation, gs_dtype dtype, char transa,
                      char transb, int64_t m, int64_t n, int64_t k, const void *alpha,
                      const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                      void *c, int64_t ldc);

/* C = alpha A B + beta C (side L, A m x m) or alpha B A + beta C (side R, A n x n), of A one
 * triangle is referenced; B and C m x n. symm, hemm. */
void gs_describe_symm(struct gs_call *call, gs_operation operation, gs_dtype dtype, char side,
                      char uplo, int64_t m, int64_t n, const void *alpha, const void *a,
                      int64_t lda, const void *b, int64_t ldb, const void *beta, void *c,
                      int64_t ldc);

/* One triangle of the n x n matrix C = alpha op(A) op(A)' + beta C, or with B (not NULL) the sum
 * of both products; op(A), op(B) are n x k. syrk, syr2k; herk (alpha, beta real), her2k (beta
 * real). */
void gs_describe_rank_k(struct gs_call *call, gs_operation operation, gs_dtype dtype, char uplo,
                        char trans, int64_t n, int64_t k, const void *alpha, const void *a,
                        int64_t lda, const void *b, int64_t ldb, const void *beta, void *c,
                        int64_t ldc);

/* B = alpha op(A) B or alpha B op(A), or the solution of op(A) X = alpha B or X op(A) = alpha B;
 * A triangular, m x m (side L) or n x n (side R); B m x n. trmm, trsm. */
void gs_describe_trmm(struct gs_call *call, gs_operation operation, gs_dtype dtype, char side,
                      char uplo, char transa, char diag, int64_t m, int64_t n, const void *alpha,
                      const void *a, int64_t lda, void *b, int64_t ldb);

/* One triangle of the n x n matrix C = alpha op(A) op(B) + beta C. gemmt, gemmtr. */
void gs_describe_gemmt(struct gs_call *call, gs_operation operation, gs_dtype dtype, char uplo,
                       char transa, char transb, int64_t n, int64_t k, const void *alpha,
                       const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                       void *c, int64_t ldc);
