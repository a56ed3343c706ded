/* SPDX-License-Identifier: Apache-2.0
 *
 * From BLAS arguments to a gs_call.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/reasons.h"
#include "shim/call.h"

static double a[1], b[1], c[1];
static const double one = 1, half = .5, zero = 0;

/* m = 7, n = 5, k = 3 with the smallest leading dimensions there are. */
static gs_reason objection(char transa, char transb, int64_t m, int64_t n, int64_t k, int64_t lda,
                           int64_t ldb, int64_t ldc)
{
    struct gs_call call;
    gs_describe_gemm(&call, GS_OP_GEMM, GS_F64, transa, transb, m, n, k, &one, a, lda, b, ldb, &half, c, ldc);
    return (gs_reason)call.objection;
}

static void test_legal_calls(void **state)
{
    (void)state;
    static const char flags[] = "NTCntc";
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            bool na = i % 3 == 0, nb = j % 3 == 0;
            int64_t lda = na ? 7 : 3, ldb = nb ? 3 : 5;
            assert_int_equal(objection(flags[i], flags[j], 7, 5, 3, lda, ldb, 7), GS_NO_REASON);
            assert_int_equal(objection(flags[i], flags[j], 7, 5, 3, lda + 9, ldb + 9, 16),
                             GS_NO_REASON);
            /* One less is illegal, for each of the three. */
            assert_int_equal(objection(flags[i], flags[j], 7, 5, 3, lda - 1, ldb, 7),
                             GS_BAD_ARGUMENT);
            assert_int_equal(objection(flags[i], flags[j], 7, 5, 3, lda, ldb - 1, 7),
                             GS_BAD_ARGUMENT);
            assert_int_equal(objection(flags[i], flags[j], 7, 5, 3, lda, ldb, 6),
                             GS_BAD_ARGUMENT);
        }
}

static void test_illegal_values(void **state)
{
    (void)state;
    static const char bad[] = {'Q', '\0', ' ', '1', 'X', 'n' - 1, 'I'};
    for (size_t i = 0; i < sizeof bad; i++) {
        assert_int_equal(objection(bad[i], 'N', 7, 5, 3, 9, 9, 9), GS_BAD_ARGUMENT);
        assert_int_equal(objection('N', bad[i], 7, 5, 3, 9, 9, 9), GS_BAD_ARGUMENT);
    }
    assert_int_equal(objection('N', 'N', -1, 5, 3, 9, 9, 9), GS_BAD_ARGUMENT);
    assert_int_equal(objection('N', 'N', 7, -1, 3, 9, 9, 9), GS_BAD_ARGUMENT);
    assert_int_equal(objection('N', 'N', 7, 5, -1, 9, 9, 9), GS_BAD_ARGUMENT);
    assert_int_equal(objection('N', 'N', INT64_MIN, INT64_MIN, INT64_MIN, 1, 1, 1),
                     GS_BAD_ARGUMENT);
}

static void test_conjugation_alone_is_an_extension(void **state)
{
    (void)state;
    assert_int_equal(objection('R', 'N', 7, 5, 3, 7, 3, 7), GS_ARGUMENT);
    assert_int_equal(objection('N', 'r', 7, 5, 3, 7, 3, 7), GS_ARGUMENT);
    assert_int_equal(objection('R', 'N', 7, 5, 3, 6, 3, 7), GS_BAD_ARGUMENT); /* as N: 7 rows */
    assert_int_equal(objection('R', 'N', 0, 5, 3, 7, 3, 7), GS_ARGUMENT);
}

static void test_zero_sizes(void **state)
{
    (void)state;
    assert_int_equal(objection('N', 'N', 0, 5, 3, 1, 3, 1), GS_SIZE_EMPTY);
    assert_int_equal(objection('N', 'N', 7, 0, 3, 7, 3, 7), GS_SIZE_EMPTY);
    assert_int_equal(objection('N', 'N', 7, 5, 0, 7, 1, 7), GS_SIZE_EMPTY);
    /* A leading dimension of 0 is illegal even then (C14). */
    assert_int_equal(objection('N', 'N', 0, 5, 3, 0, 3, 1), GS_BAD_ARGUMENT);
    assert_int_equal(objection('N', 'N', 7, 5, 0, 7, 0, 7), GS_BAD_ARGUMENT);
    assert_int_equal(objection('N', 'N', 0, 0, 0, 1, 1, 0), GS_BAD_ARGUMENT);
}

static void test_alpha_zero(void **state)
{
    (void)state;
    static const double minus_zero = -0.0, complex_zero[2] = {0, -0.0}, imaginary[2] = {0, 1};
    static const double nan_alpha = NAN;
    static const float float_zero[2] = {0, 0}, float_imaginary[2] = {0, 1e-40f};
    static const struct {
        gs_dtype dtype;
        const void *alpha;
        gs_reason reason;
    } rows[] = {
        {GS_F64, &zero, GS_SIZE_EMPTY},          {GS_F64, &minus_zero, GS_SIZE_EMPTY},
        {GS_C64, complex_zero, GS_SIZE_EMPTY},   {GS_C64, imaginary, GS_NO_REASON},
        {GS_F32, float_zero, GS_SIZE_EMPTY},     {GS_C32, float_zero, GS_SIZE_EMPTY},
        {GS_C32, float_imaginary, GS_NO_REASON}, {GS_F64, &nan_alpha, GS_NO_REASON},
        {GS_F32, &float_imaginary[1], GS_NO_REASON},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gs_call call;
        gs_describe_gemm(&call, GS_OP_GEMM, rows[i].dtype, 'N', 'N', 1, 1, 1, rows[i].alpha, a, 1, b, 1,
                         complex_zero, c, 1);
        assert_int_equal(call.objection, rows[i].reason);
    }
}

static void test_operands(void **state)
{
    (void)state;
    struct gs_call call;
    gs_describe_gemm(&call, GS_OP_GEMM, GS_F64, 't', 'N', 7, 5, 3, &one, a, 11, b, 12, &half, c, 13);
    assert_int_equal(call.operation, GS_OP_GEMM);
    assert_true(call.transa == 'T' && call.transb == 'N');
    assert_true(call.m == 7 && call.n == 5 && call.k == 3 && call.work == 105);
    assert_true(call.uplo == 0 && call.side == 0 && call.diag == 0);
    assert_int_equal(call.operand_count, 3);
    const struct gs_operand *x = call.operand;
    assert_true(x[0].host == a && x[0].rows == 3 && x[0].cols == 7 && x[0].ld == 11);
    assert_true(x[1].host == b && x[1].rows == 3 && x[1].cols == 5 && x[1].ld == 12);
    assert_true(x[2].host == c && x[2].rows == 7 && x[2].cols == 5 && x[2].ld == 13);
    assert_true(x[0].role == GS_IN && x[1].role == GS_IN && x[2].role == GS_INOUT);
    assert_true(gs_call_bytes(&call, GS_IN) == 8 * (21 + 15 + 35));
    assert_true(gs_call_bytes(&call, GS_OUT) == 8 * 35);
    assert_true(gs_call_flop(&call) == 210);
}

static void test_beta_makes_the_role_of_c(void **state)
{
    (void)state;
    static const double complex_beta[2] = {0, 1}, nan_beta = NAN, minus_zero = -0.0;
    struct gs_call call;
    gs_describe_gemm(&call, GS_OP_GEMM, GS_F64, 'N', 'N', 1, 1, 1, &one, a, 1, b, 1, &zero, c, 1);
    assert_int_equal(call.operand[2].role, GS_OUT);
    gs_describe_gemm(&call, GS_OP_GEMM, GS_F64, 'N', 'N', 1, 1, 1, &one, a, 1, b, 1, &minus_zero, c, 1);
    assert_int_equal(call.operand[2].role, GS_OUT);
    gs_describe_gemm(&call, GS_OP_GEMM, GS_F64, 'N', 'N', 1, 1, 1, &one, a, 1, b, 1, &nan_beta, c, 1);
    assert_int_equal(call.operand[2].role, GS_INOUT);
    gs_describe_gemm(&call, GS_OP_GEMM, GS_C64, 'N', 'N', 1, 1, 1, complex_beta, a, 1, b, 1, complex_beta, c,
                     1);
    assert_int_equal(call.operand[2].role, GS_INOUT);
}

static void test_scalars_are_copied_bit_for_bit(void **state)
{
    (void)state;
    static const uint32_t bits32[2] = {0x7f812345, 0xff8abcde};
    static const uint64_t bits64[2] = {UINT64_C(0x7ff0123456789abc), UINT64_C(0xfff4fedcba987654)};
    for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++) {
        struct gs_call call;
        bool single = dtype == GS_F32 || dtype == GS_C32;
        const void *scalar = single ? (const void *)bits32 : bits64;
        unsigned char expected[16] = {0};
        memset(&call, 0xaa, sizeof call);
        memcpy(expected, scalar, gs_element_bytes((gs_dtype)dtype));
        gs_describe_gemm(&call, GS_OP_GEMM, (gs_dtype)dtype, 'N', 'N', 1, 1, 1, scalar, a, 1, b, 1, scalar, c,
                         1);
        assert_memory_equal(&call.alpha, expected, 16);
        assert_memory_equal(&call.beta, expected, 16);
    }
}

static void test_sizes_that_overflow(void **state)
{
    (void)state;
    static const double scalar[2] = {1, 0};
    struct gs_call call;
    const int64_t big = INT64_C(1) << 40;
    gs_describe_gemm(&call, GS_OP_GEMM, GS_C64, 'N', 'N', big, big, big, scalar, a, big, b, big, scalar, c, big);
    assert_int_equal(call.objection, GS_NO_REASON);
    assert_true(call.work == 0x1p120);
    assert_true(gs_operand_bytes(&call, 0) == 0x1p84);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legal_calls),
        cmocka_unit_test(test_illegal_values),
        cmocka_unit_test(test_conjugation_alone_is_an_extension),
        cmocka_unit_test(test_zero_sizes),
        cmocka_unit_test(test_alpha_zero),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_beta_makes_the_role_of_c),
        cmocka_unit_test(test_scalars_are_copied_bit_for_bit),
        cmocka_unit_test(test_sizes_that_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
