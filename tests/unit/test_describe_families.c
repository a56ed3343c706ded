/* SPDX-License-Identifier: Apache-2.0
 *
 * shim/describe.c and the flips of shim/stub.h: what becomes of BLAS arguments.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/reasons.h"
#include "shim/stub.h"

static double a[64], b[64], c[64];
static const double one[2] = {1, 0}, zero[2] = {0, 0}, half[2] = {.5, 0}, imaginary[2] = {0, 1};

static void assert_operand(const struct gs_call *call, int i, const void *host, int64_t rows,
                           int64_t cols, int64_t ld, enum gs_role role, enum gs_part part)
{
    const struct gs_operand *x = &call->operand[i];
    assert_true(i < call->operand_count);
    assert_ptr_equal(x->host, host);
    assert_int_equal(x->rows, rows);
    assert_int_equal(x->cols, cols);
    assert_int_equal(x->ld, ld);
    assert_int_equal(x->role, role);
    assert_int_equal(x->part, part);
}

/* ---- one helper a family: legal arguments, of which a case changes what it is about ---- */

static struct gs_call gemm(char transa, char transb, int64_t m, int64_t n, int64_t k, int64_t lda,
                           int64_t ldb, int64_t ldc, const double *alpha, const double *beta)
{
    struct gs_call call;
    memset(&call, 0x55, sizeof call);
    call.entry = 77;
    gs_describe_gemm(&call, GS_OP_GEMM, GS_C64, transa, transb, m, n, k, alpha, a, lda, b, ldb,
                     beta, c, ldc);
    assert_int_equal(call.entry, 77);
    return call;
}

static struct gs_call symm(gs_operation operation, char side, char uplo, int64_t m, int64_t n,
                           int64_t lda, int64_t ldb, int64_t ldc)
{
    struct gs_call call = {.entry = 1};
    gs_describe_symm(&call, operation, GS_C64, side, uplo, m, n, one, a, lda, b, ldb, half, c, ldc);
    return call;
}

static struct gs_call rank_k(gs_operation operation, gs_dtype dtype, char uplo, char trans,
                             int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc,
                             const double *beta)
{
    struct gs_call call = {.entry = 1};
    static const float one_f[2] = {1, 0};
    bool two = operation == GS_OP_SYR2K || operation == GS_OP_HER2K;
    bool single = dtype == GS_F32 || dtype == GS_C32;
    const void *alpha = single ? (const void *)one_f : one;
    gs_describe_rank_k(&call, operation, dtype, uplo, trans, n, k, alpha, a, lda, two ? b : NULL,
                       ldb, beta, c, ldc);
    return call;
}

static struct gs_call trmm(char side, char uplo, char trans, char diag, int64_t m, int64_t n,
                           int64_t lda, int64_t ldb, const double *alpha)
{
    struct gs_call call = {.entry = 1};
    gs_describe_trmm(&call, GS_OP_TRSM, GS_F64, side, uplo, trans, diag, m, n, alpha, a, lda, b,
                     ldb);
    return call;
}

static struct gs_call gemmt(char uplo, char transa, char transb, int64_t n, int64_t k,
                            int64_t lda, int64_t ldb, int64_t ldc, const double *beta)
{
    struct gs_call call = {.entry = 1};
    gs_describe_gemmt(&call, GS_OP_GEMMT, GS_F64, uplo, transa, transb, n, k, one, a, lda, b, ldb,
                      beta, c, ldc);
    return call;
}

/* ---- operands ---- */

static void test_gemm_operands(void **state)
{
    (void)state;
    struct gs_call call = gemm('n', 'c', 2, 3, 4, 5, 6, 7, one, half);
    assert_int_equal(call.objection, 0);
    assert_int_equal(call.transa, 'N');
    assert_int_equal(call.transb, 'C');
    assert_true(call.m == 2 && call.n == 3 && call.k == 4 && call.work == 24);
    assert_true(call.alpha.f64[0] == 1 && call.beta.f64[0] == .5);
    assert_operand(&call, 0, a, 2, 4, 5, GS_IN, GS_FULL);
    assert_operand(&call, 1, b, 3, 4, 6, GS_IN, GS_FULL);
    assert_operand(&call, 2, c, 2, 3, 7, GS_INOUT, GS_FULL);
    assert_int_equal(call.operand_count, 3);
    call = gemm('T', 'T', 2, 3, 4, 4, 3, 2, one, zero);
    assert_operand(&call, 0, a, 4, 2, 4, GS_IN, GS_FULL);
    assert_operand(&call, 1, b, 3, 4, 3, GS_IN, GS_FULL);
    assert_operand(&call, 2, c, 2, 3, 2, GS_OUT, GS_FULL);
    /* Half of a complex beta is enough to read C, and a NaN is not zero. */
    assert_int_equal(gemm('N', 'N', 2, 3, 4, 2, 4, 2, one, imaginary).operand[2].role, GS_INOUT);
    const double nan[2] = {NAN, 0};
    assert_int_equal(gemm('N', 'N', 2, 3, 4, 2, 4, 2, one, nan).operand[2].role, GS_INOUT);
    assert_int_equal(gemm('N', 'N', 2, 3, 4, 2, 4, 2, nan, one).objection, 0);
}

static void test_symm_operands(void **state)
{
    (void)state;
    struct gs_call call = symm(GS_OP_SYMM, 'l', 'u', 2, 3, 4, 5, 6);
    assert_int_equal(call.objection, 0);
    assert_true(call.side == 'L' && call.uplo == 'U' && call.k == 2 && call.work == 12);
    assert_operand(&call, 0, a, 2, 2, 4, GS_IN, GS_UPPER);
    assert_operand(&call, 1, b, 2, 3, 5, GS_IN, GS_FULL);
    assert_operand(&call, 2, c, 2, 3, 6, GS_INOUT, GS_FULL);
    assert_false(call.operand[0].hermitian);
    call = symm(GS_OP_HEMM, 'R', 'L', 2, 3, 4, 5, 6);
    assert_int_equal(call.k, 3);
    assert_operand(&call, 0, a, 3, 3, 4, GS_IN, GS_LOWER);
    assert_true(call.operand[0].hermitian && !call.operand[2].hermitian);
}

static void test_rank_k_operands(void **state)
{
    (void)state;
    struct gs_call call = rank_k(GS_OP_SYRK, GS_F64, 'U', 'N', 3, 5, 4, 0, 6, half);
    assert_int_equal(call.objection, 0);
    assert_true(call.m == 3 && call.n == 3 && call.k == 5 && call.work == 22.5);
    assert_operand(&call, 0, a, 3, 5, 4, GS_IN, GS_FULL);
    assert_operand(&call, 1, c, 3, 3, 6, GS_INOUT, GS_UPPER);
    assert_int_equal(call.operand_count, 2);
    call = rank_k(GS_OP_SYR2K, GS_F64, 'L', 't', 3, 5, 5, 6, 6, zero);
    assert_operand(&call, 0, a, 5, 3, 5, GS_IN, GS_FULL);
    assert_operand(&call, 1, b, 5, 3, 6, GS_IN, GS_FULL);
    assert_operand(&call, 2, c, 3, 3, 6, GS_OUT, GS_LOWER);
    assert_true(call.work == 45 && !call.operand[2].hermitian);
    call = rank_k(GS_OP_HER2K, GS_C64, 'L', 'C', 3, 5, 5, 5, 6, half);
    assert_true(call.operand[2].hermitian);
}

/* Of real scalars no more is read than there is. */
static void test_real_scalars(void **state)
{
    const double beyond[2] = {.5, 4711}, nothing[2] = {0, 4711};
    (void)state;
    struct gs_call call;
    memset(&call, 0x55, sizeof call);
    gs_describe_rank_k(&call, GS_OP_HERK, GS_C64, 'U', 'N', 3, 5, beyond, a, 3, NULL, 0, nothing,
                       c, 3);
    assert_true(call.alpha.f64[0] == .5 && call.alpha.f64[1] == 0);
    assert_true(call.beta.f64[0] == 0 && call.beta.f64[1] == 0);
    assert_int_equal(call.operand[1].role, GS_OUT);
    gs_describe_rank_k(&call, GS_OP_HER2K, GS_C64, 'U', 'N', 3, 5, beyond, a, 3, b, 3, beyond, c,
                       3);
    assert_true(call.alpha.f64[1] == 4711 && call.beta.f64[1] == 0);
    const float singles[2] = {.25f, 12};
    gs_describe_rank_k(&call, GS_OP_HERK, GS_C32, 'U', 'N', 3, 5, singles, a, 3, NULL, 0, singles,
                       c, 3);
    assert_true(call.alpha.f32[0] == .25f && call.alpha.f32[1] == 0 && call.beta.f32[1] == 0);
}

static void test_trmm_operands(void **state)
{
    (void)state;
    struct gs_call call = trmm('L', 'l', 'c', 'u', 2, 3, 4, 5, half);
    assert_int_equal(call.objection, 0);
    assert_true(call.side == 'L' && call.uplo == 'L' && call.transa == 'C' && call.diag == 'U');
    assert_operand(&call, 0, a, 2, 2, 4, GS_IN, GS_LOWER);
    assert_operand(&call, 1, b, 2, 3, 5, GS_INOUT, GS_FULL);
    assert_int_equal(call.operand_count, 2);
    call = trmm('R', 'U', 'N', 'N', 2, 3, 3, 2, half);
    assert_operand(&call, 0, a, 3, 3, 3, GS_IN, GS_UPPER);
}

static void test_gemmt_operands(void **state)
{
    (void)state;
    struct gs_call call = gemmt('u', 't', 'n', 3, 5, 5, 6, 4, zero);
    assert_int_equal(call.objection, 0);
    assert_operand(&call, 0, a, 5, 3, 5, GS_IN, GS_FULL);
    assert_operand(&call, 1, b, 5, 3, 6, GS_IN, GS_FULL);
    assert_operand(&call, 2, c, 3, 3, 4, GS_OUT, GS_UPPER);
    assert_int_equal(gemmt('L', 'N', 'T', 3, 5, 3, 3, 3, half).operand[2].part, GS_LOWER);
}

static void test_triangles(void **state)
{
    (void)state;
    const struct gs_call call = symm(GS_OP_SYMM, 'L', 'U', 4, 3, 4, 4, 4);
    struct gs_operand x = call.operand[0];
    assert_true(gs_first_row(&x, 2) == 0 && gs_end_row(&x, 2) == 3);
    assert_true(gs_operand_bytes(&call, 0) == 10 * 16 && gs_operand_bytes(&call, 1) == 12 * 16);
    x.part = GS_LOWER;
    assert_true(gs_first_row(&x, 2) == 2 && gs_end_row(&x, 2) == 4);
    x.part = GS_FULL;
    assert_true(gs_first_row(&x, 2) == 0 && gs_end_row(&x, 2) == 4);
}

/* ---- objections ---- */

#define assert_objection(call, reason) assert_int_equal((call).objection, reason)

static void test_gemm_objections(void **state)
{
    (void)state;
    assert_objection(gemm('N', 'N', 2, 3, 4, 2, 4, 2, one, one), 0);
    assert_objection(gemm('Q', 'N', 2, 3, 4, 2, 4, 2, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('N', '\0', 2, 3, 4, 2, 4, 2, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('R', 'N', 2, 3, 4, 2, 4, 2, one, one), GS_ARGUMENT);
    assert_objection(gemm('N', 'r', 2, 3, 4, 2, 4, 2, one, one), GS_ARGUMENT);
    assert_objection(gemm('N', 'N', -1, 3, 4, 2, 4, 2, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('N', 'N', 2, 3, -4, 2, 4, 2, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('N', 'N', 2, 3, 4, 1, 4, 2, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('T', 'N', 2, 3, 4, 3, 4, 2, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('N', 'T', 2, 3, 4, 2, 2, 2, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('N', 'N', 2, 3, 4, 2, 4, 1, one, one), GS_BAD_ARGUMENT);
    /* A leading dimension of 0 is illegal where the size is 0, too. */
    assert_objection(gemm('N', 'N', 0, 3, 4, 0, 4, 1, one, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('N', 'N', 0, 3, 4, 1, 4, 1, one, one), GS_SIZE_EMPTY);
    assert_objection(gemm('N', 'N', 2, 3, 0, 2, 1, 2, one, one), GS_SIZE_EMPTY);
    assert_objection(gemm('N', 'N', 2, 3, 4, 2, 4, 2, zero, one), GS_SIZE_EMPTY);
    assert_objection(gemm('N', 'N', 2, 3, 4, 2, 4, 2, imaginary, one), 0);
    /* Illegal comes before empty, and before the extension. */
    assert_objection(gemm('R', 'N', 2, 3, 0, 2, 0, 2, zero, one), GS_BAD_ARGUMENT);
    assert_objection(gemm('R', 'N', 0, 3, 4, 1, 4, 1, one, one), GS_ARGUMENT);
}

static void test_symm_objections(void **state)
{
    (void)state;
    assert_objection(symm(GS_OP_SYMM, 'Q', 'U', 2, 3, 4, 5, 6), GS_BAD_ARGUMENT);
    assert_objection(symm(GS_OP_SYMM, 'L', 'N', 2, 3, 4, 5, 6), GS_BAD_ARGUMENT);
    assert_objection(symm(GS_OP_SYMM, 'L', 'U', 2, 3, 1, 2, 2), GS_BAD_ARGUMENT);
    assert_objection(symm(GS_OP_SYMM, 'R', 'U', 2, 3, 2, 2, 2), GS_BAD_ARGUMENT);
    assert_objection(symm(GS_OP_SYMM, 'L', 'U', 2, 3, 2, 1, 2), GS_BAD_ARGUMENT);
    assert_objection(symm(GS_OP_HEMM, 'L', 'U', 2, 3, 2, 2, 1), GS_BAD_ARGUMENT);
    assert_objection(symm(GS_OP_HEMM, 'L', 'U', 2, -3, 2, 2, 2), GS_BAD_ARGUMENT);
    assert_objection(symm(GS_OP_HEMM, 'L', 'U', 2, 0, 2, 2, 2), GS_SIZE_EMPTY);
}

static void test_rank_k_objections(void **state)
{
    static const struct {
        gs_operation operation;
        gs_dtype dtype;
        char trans;
        gs_reason reason;
    } rows[] = {
        {GS_OP_SYRK, GS_F64, 'N', 0},   {GS_OP_SYRK, GS_F32, 'C', 0},
        {GS_OP_SYRK, GS_C64, 'T', 0},   {GS_OP_SYRK, GS_C64, 'C', GS_BAD_ARGUMENT},
        {GS_OP_SYR2K, GS_C32, 'C', GS_BAD_ARGUMENT}, {GS_OP_SYR2K, GS_F64, 'C', 0},
        {GS_OP_HERK, GS_C64, 'C', 0},   {GS_OP_HERK, GS_C64, 'T', GS_BAD_ARGUMENT},
        {GS_OP_HER2K, GS_C32, 'n', 0},  {GS_OP_HER2K, GS_C32, 't', GS_BAD_ARGUMENT},
        {GS_OP_SYRK, GS_F64, 'R', GS_BAD_ARGUMENT}, {GS_OP_HERK, GS_C64, 'R', GS_BAD_ARGUMENT},
        {GS_OP_SYRK, GS_F64, '?', GS_BAD_ARGUMENT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_objection(rank_k(rows[i].operation, rows[i].dtype, 'U', rows[i].trans, 3, 3, 3, 3,
                                3, half),
                         rows[i].reason);
    assert_objection(rank_k(GS_OP_SYRK, GS_F64, 'X', 'N', 3, 3, 3, 3, 3, half), GS_BAD_ARGUMENT);
    assert_objection(rank_k(GS_OP_SYRK, GS_F64, 'U', 'T', 3, 4, 3, 0, 3, half), GS_BAD_ARGUMENT);
    assert_objection(rank_k(GS_OP_SYRK, GS_F64, 'U', 'N', 3, 4, 3, 0, 2, half), GS_BAD_ARGUMENT);
    assert_objection(rank_k(GS_OP_SYR2K, GS_F64, 'U', 'N', 3, 4, 3, 2, 3, half), GS_BAD_ARGUMENT);
    assert_objection(rank_k(GS_OP_SYRK, GS_F64, 'U', 'N', 3, 0, 3, 0, 3, half), GS_SIZE_EMPTY);
    assert_objection(rank_k(GS_OP_SYRK, GS_F64, 'U', 'N', -3, 4, 3, 0, 3, half), GS_BAD_ARGUMENT);
}

static void test_other_objections(void **state)
{
    (void)state;
    assert_objection(trmm('Q', 'U', 'N', 'N', 2, 3, 3, 3, one), GS_BAD_ARGUMENT);
    assert_objection(trmm('L', 'Q', 'N', 'N', 2, 3, 3, 3, one), GS_BAD_ARGUMENT);
    assert_objection(trmm('L', 'U', 'Q', 'N', 2, 3, 3, 3, one), GS_BAD_ARGUMENT);
    assert_objection(trmm('L', 'U', 'N', 'Q', 2, 3, 3, 3, one), GS_BAD_ARGUMENT);
    assert_objection(trmm('L', 'U', 'R', 'N', 2, 3, 3, 3, one), GS_ARGUMENT);
    assert_objection(trmm('L', 'U', 'N', 'N', 2, 3, 1, 3, one), GS_BAD_ARGUMENT);
    assert_objection(trmm('R', 'U', 'N', 'N', 2, 3, 2, 3, one), GS_BAD_ARGUMENT);
    assert_objection(trmm('L', 'U', 'N', 'N', 2, 3, 2, 1, one), GS_BAD_ARGUMENT);
    assert_objection(trmm('L', 'U', 'N', 'N', 2, 3, 2, 2, zero), GS_SIZE_EMPTY);
    assert_objection(trmm('L', 'U', 'N', 'N', 0, 3, 1, 1, one), GS_SIZE_EMPTY);
    assert_objection(gemmt('Q', 'N', 'N', 3, 5, 3, 5, 3, one), GS_BAD_ARGUMENT);
    assert_objection(gemmt('U', 'N', 'Q', 3, 5, 3, 5, 3, one), GS_BAD_ARGUMENT);
    assert_objection(gemmt('U', 'R', 'N', 3, 5, 3, 5, 3, one), GS_ARGUMENT);
    assert_objection(gemmt('U', 'N', 'N', 3, 5, 3, 4, 3, one), GS_BAD_ARGUMENT);
    assert_objection(gemmt('U', 'N', 'N', 3, 5, 3, 5, 2, one), GS_BAD_ARGUMENT);
    assert_objection(gemmt('U', 'N', 'N', 3, 0, 3, 1, 3, one), GS_SIZE_EMPTY);
}

/* ---- enumerations and row-major ---- */

static void test_letters(void **state)
{
    (void)state;
    assert_int_equal(gs_trans_letter(111), 'N');
    assert_int_equal(gs_trans_letter(112), 'T');
    assert_int_equal(gs_trans_letter(113), 'C');
    assert_int_equal(gs_trans_letter(114), 'R');
    assert_int_equal(gs_uplo_letter(121), 'U');
    assert_int_equal(gs_uplo_letter(122), 'L');
    assert_int_equal(gs_diag_letter(131), 'N');
    assert_int_equal(gs_diag_letter(132), 'U');
    assert_int_equal(gs_side_letter(141), 'L');
    assert_int_equal(gs_side_letter(142), 'R');
    for (int value = 99; value < 150; value += 10)
        assert_true(gs_trans_letter(value) == '?' && gs_uplo_letter(value) == '?' &&
                    gs_diag_letter(value) == '?' && gs_side_letter(value) == '?');
    assert_true(gs_trans_letter('N') == '?' && gs_side_letter('L') == '?');
}

static void test_flips(void **state)
{
    (void)state;
    assert_true(gs_flip_side('L') == 'R' && gs_flip_side('R') == 'L' && gs_flip_side('?') == '?');
    assert_true(gs_flip_uplo('U') == 'L' && gs_flip_uplo('L') == 'U' && gs_flip_uplo('?') == '?');
    for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++) {
        bool complex_type = gs_is_complex((gs_dtype)dtype);
        assert_int_equal(gs_flip_trans('N', (gs_dtype)dtype), 'T');
        assert_int_equal(gs_flip_trans('T', (gs_dtype)dtype), 'N');
        assert_int_equal(gs_flip_trans('C', (gs_dtype)dtype), complex_type ? 'C' : 'N');
        assert_int_equal(gs_flip_trans('?', (gs_dtype)dtype), '?');
    }
    assert_true(gs_flip_conj('N') == 'C' && gs_flip_conj('C') == 'N' && gs_flip_conj('T') == 'T');
}

static void test_layout(void **state)
{
    struct gs_call call = gemm('N', 'N', 2, 3, 4, 2, 4, 2, one, one);
    (void)state;
    gs_check_layout(&call, GS_ROW_MAJOR);
    gs_check_layout(&call, GS_COL_MAJOR);
    assert_objection(call, 0);
    gs_check_layout(&call, 100);
    assert_objection(call, GS_BAD_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm_operands),   cmocka_unit_test(test_symm_operands),
        cmocka_unit_test(test_rank_k_operands), cmocka_unit_test(test_real_scalars),
        cmocka_unit_test(test_trmm_operands),   cmocka_unit_test(test_gemmt_operands),
        cmocka_unit_test(test_triangles),       cmocka_unit_test(test_gemm_objections),
        cmocka_unit_test(test_symm_objections), cmocka_unit_test(test_rank_k_objections),
        cmocka_unit_test(test_other_objections), cmocka_unit_test(test_letters),
        cmocka_unit_test(test_flips),           cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests_name("describe", tests, NULL, NULL);
}
