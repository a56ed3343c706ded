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

static bool is_trans(char flag)
{
    return flag == 'N' || flag == 'T' || flag == 'C';
}

static void copy_scalar(union gs_scalar *out, gs_dtype dtype, const void *value)
{
    memset(out, 0, sizeof *out);
    memcpy(out, value, gs_element_bytes(dtype));
}

static bool is_zero(const union gs_scalar *value, gs_dtype dtype)
{
    if (dtype == GS_F32 || dtype == GS_C32)
        return value->f32[0] == 0 && value->f32[1] == 0;
    return value->f64[0] == 0 && value->f64[1] == 0;
}

static int64_t at_least_one(int64_t x)
{
    return x > 1 ? x : 1;
}

/* The matrix behind op(X) of rows x cols. */
static struct gs_operand stored(const void *host, char trans, int64_t rows, int64_t cols,
                                int64_t ld, enum gs_role role)
{
    bool flip = trans != 'N';
    return (struct gs_operand){
        .host = (void *)(uintptr_t)host,
        .rows = flip ? cols : rows,
        .cols = flip ? rows : cols,
        .ld = ld,
        .role = role,
    };
}

static gs_reason gemm_objection(const struct gs_call *call)
{
    if ((!is_trans(call->transa) && call->transa != 'R') ||
        (!is_trans(call->transb) && call->transb != 'R'))
        return GS_BAD_ARGUMENT;
    if (call->m < 0 || call->n < 0 || call->k < 0)
        return GS_BAD_ARGUMENT;
    for (int i = 0; i < call->operand_count; i++)
        if (call->operand[i].ld < at_least_one(call->operand[i].rows))
            return GS_BAD_ARGUMENT;
    if (!is_trans(call->transa) || !is_trans(call->transb))
        return GS_ARGUMENT;
    if (call->m == 0 || call->n == 0 || call->k == 0 || is_zero(&call->alpha, call->dtype))
        return GS_SIZE_EMPTY;
    return GS_NO_REASON;
}

void gs_describe_gemm(struct gs_call *call, gs_dtype dtype, char transa, char transb, int64_t m,
                      int64_t n, int64_t k, const void *alpha, const void *a, int64_t lda,
                      const void *b, int64_t ldb, const void *beta, void *c, int64_t ldc)
{
    call->operation = GS_OP_GEMM;
    call->dtype = dtype;
    call->transa = upper(transa);
    call->transb = upper(transb);
    call->uplo = call->side = call->diag = 0;
    call->m = m;
    call->n = n;
    call->k = k;
    copy_scalar(&call->alpha, dtype, alpha);
    copy_scalar(&call->beta, dtype, beta);
    call->work = (double)m * (double)n * (double)k;
    call->operand_count = 3;
    call->operand[0] = stored(a, call->transa == 'R' ? 'N' : call->transa, m, k, lda, GS_IN);
    call->operand[1] = stored(b, call->transb == 'R' ? 'N' : call->transb, k, n, ldb, GS_IN);
    call->operand[2] =
        stored(c, 'N', m, n, ldc, is_zero(&call->beta, dtype) ? GS_OUT : GS_INOUT);
    call->objection = (uint16_t)gemm_objection(call);
}
