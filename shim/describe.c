/* SPDX-License-Identifier: Apache-2.0
 *
 * From BLAS arguments to a gs_call: flags, operands with their roles, and what is wrong with them.
 */
#include "call.h"

#include <string.h>

#include "policy/reasons.h"

/* ASCII only: toupper depends on the program's locale. */
static char upper(char flag)
{
    return flag >= 'a' && flag <= 'z' ? (char)(flag - 'a' + 'A') : flag;
}

static bool is_one_of(char flag, const char *letters)
{
    return flag != '\0' && strchr(letters, flag) != NULL;
}

static int64_t at_least_one(int64_t x)
{
    return x > 1 ? x : 1;
}

/* bytes of a scalar: that of the element, or half of it for the real scalar of a complex type. */
static void copy_scalar(union gs_scalar *out, const void *value, size_t bytes)
{
    memset(out, 0, sizeof *out);
    memcpy(out, value, bytes);
}

static bool is_zero(const union gs_scalar *value, gs_dtype dtype)
{
    if (dtype == GS_F32 || dtype == GS_C32)
        return value->f32[0] == 0 && value->f32[1] == 0;
    return value->f64[0] == 0 && value->f64[1] == 0;
}

static void begin(struct gs_call *call, gs_operation operation, gs_dtype dtype)
{
    uint16_t entry = call->entry; /* the stub's, set before */
    memset(call, 0, sizeof *call);
    call->entry = entry;
    call->operation = operation;
    call->dtype = dtype;
}

static void add(struct gs_call *call, const void *host, int64_t rows, int64_t cols, int64_t ld,
                enum gs_role role)
{
    call->operand[call->operand_count++] = (struct gs_operand){
        .host = (void *)(uintptr_t)host, .rows = rows, .cols = cols, .ld = ld, .role = role};
}

/* The matrix behind op(X) of rows x cols. */
static void add_op(struct gs_call *call, const void *host, char trans, int64_t rows, int64_t cols,
                   int64_t ld)
{
    bool flip = trans != 'N' && trans != 'R';
    add(call, host, flip ? cols : rows, flip ? rows : cols, ld, GS_IN);
}

/* One triangle of a square matrix. */
static void add_triangle(struct gs_call *call, const void *host, char uplo, int64_t n, int64_t ld,
                         enum gs_role role, bool hermitian)
{
    add(call, host, n, n, ld, role);
    struct gs_operand *operand = &call->operand[call->operand_count - 1];
    operand->part = uplo == 'U' ? GS_UPPER : GS_LOWER;
    operand->hermitian = hermitian;
}

/* The role of an output that beta multiplies. */
static enum gs_role updated(const struct gs_call *call)
{
    return is_zero(&call->beta, call->dtype) ? GS_OUT : GS_INOUT;
}

static bool has_bad_sizes(const struct gs_call *call)
{
    if (call->m < 0 || call->n < 0 || call->k < 0)
        return true;
    for (int i = 0; i < call->operand_count; i++)
        if (call->operand[i].ld < at_least_one(call->operand[i].rows))
            return true;
    return false;
}

/* legal: every flag is one of those the reference BLAS accepts, or 'R'. */
static void set_objection(struct gs_call *call, bool legal)
{
    gs_reason reason = GS_NO_REASON;
    if (!legal || has_bad_sizes(call))
        reason = GS_BAD_ARGUMENT;
    else if (call->transa == 'R' || call->transb == 'R')
        reason = GS_ARGUMENT;
    else if (call->work == 0 || is_zero(&call->alpha, call->dtype))
        reason = GS_SIZE_EMPTY;
    call->objection = (uint16_t)reason;
}

void gs_describe_gemm(struct gs_call *call, gs_operation operation, gs_dtype dtype, char transa,
                      char transb, int64_t m, int64_t n, int64_t k, const void *alpha,
                      const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                      void *c, int64_t ldc)
{
    begin(call, operation, dtype);
    call->transa = upper(transa);
    call->transb = upper(transb);
    call->m = m;
    call->n = n;
    call->k = k;
    copy_scalar(&call->alpha, alpha, gs_element_bytes(dtype));
    copy_scalar(&call->beta, beta, gs_element_bytes(dtype));
    call->work = (double)m * (double)n * (double)k;
    add_op(call, a, call->transa, m, k, lda);
    add_op(call, b, call->transb, k, n, ldb);
    add(call, c, m, n, ldc, updated(call));
    set_objection(call, is_one_of(call->transa, "NTCR") && is_one_of(call->transb, "NTCR"));
}

void gs_describe_symm(struct gs_call *call, gs_operation operation, gs_dtype dtype, char side,
                      char uplo, int64_t m, int64_t n, const void *alpha, const void *a,
                      int64_t lda, const void *b, int64_t ldb, const void *beta, void *c,
                      int64_t ldc)
{
    begin(call, operation, dtype);
    call->side = upper(side);
    call->uplo = upper(uplo);
    call->m = m;
    call->n = n;
    call->k = call->side == 'L' ? m : n;
    copy_scalar(&call->alpha, alpha, gs_element_bytes(dtype));
    copy_scalar(&call->beta, beta, gs_element_bytes(dtype));
    call->work = (double)m * (double)n * (double)call->k;
    add_triangle(call, a, call->uplo, call->k, lda, GS_IN, operation == GS_OP_HEMM);
    add(call, b, m, n, ldb, GS_IN);
    add(call, c, m, n, ldc, updated(call));
    set_objection(call, is_one_of(call->side, "LR") && is_one_of(call->uplo, "UL"));
}

void gs_describe_rank_k(struct gs_call *call, gs_operation operation, gs_dtype dtype, char uplo,
                        char trans, int64_t n, int64_t k, const void *alpha, const void *a,
                        int64_t lda, const void *b, int64_t ldb, const void *beta, void *c,
                        int64_t ldc)
{
    bool hermitian = operation == GS_OP_HERK || operation == GS_OP_HER2K;
    size_t element = gs_element_bytes(dtype);
    begin(call, operation, dtype);
    call->uplo = upper(uplo);
    call->transa = upper(trans);
    call->m = call->n = n;
    call->k = k;
    copy_scalar(&call->alpha, alpha, operation == GS_OP_HERK ? element / 2 : element);
    copy_scalar(&call->beta, beta, hermitian ? element / 2 : element);
    call->work = (double)n * (double)n * (double)k / (b != NULL ? 1 : 2);
    add_op(call, a, call->transa, n, k, lda);
    if (b != NULL)
        add_op(call, b, call->transa, n, k, ldb);
    add_triangle(call, c, call->uplo, n, ldc, updated(call), hermitian);
    const char *legal = hermitian ? "NC" : gs_is_complex(dtype) ? "NT" : "NTC";
    set_objection(call, is_one_of(call->uplo, "UL") && is_one_of(call->transa, legal));
}

void gs_describe_trmm(struct gs_call *call, gs_operation operation, gs_dtype dtype, char side,
                      char uplo, char transa, char diag, int64_t m, int64_t n, const void *alpha,
                      const void *a, int64_t lda, void *b, int64_t ldb)
{
    begin(call, operation, dtype);
    call->side = upper(side);
    call->uplo = upper(uplo);
    call->transa = upper(transa);
    call->diag = upper(diag);
    call->m = m;
    call->n = n;
    call->k = call->side == 'L' ? m : n;
    copy_scalar(&call->alpha, alpha, gs_element_bytes(dtype));
    call->work = (double)m * (double)n * (double)call->k / 2;
    add_triangle(call, a, call->uplo, call->k, lda, GS_IN, false);
    add(call, b, m, n, ldb, GS_INOUT);
    set_objection(call, is_one_of(call->side, "LR") && is_one_of(call->uplo, "UL") &&
                            is_one_of(call->transa, "NTCR") && is_one_of(call->diag, "UN"));
}

void gs_describe_gemmt(struct gs_call *call, gs_operation operation, gs_dtype dtype, char uplo,
                       char transa, char transb, int64_t n, int64_t k, const void *alpha,
                       const void *a, int64_t lda, const void *b, int64_t ldb, const void *beta,
                       void *c, int64_t ldc)
{
    begin(call, operation, dtype);
    call->uplo = upper(uplo);
    call->transa = upper(transa);
    call->transb = upper(transb);
    call->m = call->n = n;
    call->k = k;
    copy_scalar(&call->alpha, alpha, gs_element_bytes(dtype));
    copy_scalar(&call->beta, beta, gs_element_bytes(dtype));
    call->work = (double)n * (double)n * (double)k / 2;
    add_op(call, a, call->transa, n, k, lda);
    add_op(call, b, call->transb, k, n, ldb);
    add_triangle(call, c, call->uplo, n, ldc, updated(call), false);
    set_objection(call, is_one_of(call->uplo, "UL") && is_one_of(call->transa, "NTCR") &&
                            is_one_of(call->transb, "NTCR"));
}
