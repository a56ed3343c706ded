/* SPDX-License-Identifier: Apache-2.0
 *
 * shim/compare.c: two results that differ by roundings pass, one wrong element does not; in every
 * family and type.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/compare.h"

enum { N = 12, LD = 14, ELEMENTS = LD * N };

/* Of the CPU and of the GPU; inputs are shared. */
struct pair {
    struct gs_call cpu, gpu;
    _Alignas(16) unsigned char a[ELEMENTS * 16], b[ELEMENTS * 16], c[ELEMENTS * 16],
        d[ELEMENTS * 16];
};

static uint64_t seed = 1;

static double random_unit(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(seed >> 33) / 0x1p30 - 1;
}

static void put(gs_dtype dtype, void *array, int64_t at, double complex value)
{
    switch (dtype) {
    case GS_F32: ((float *)array)[at] = (float)creal(value); break;
    case GS_F64: ((double *)array)[at] = creal(value); break;
    case GS_C32: ((float complex *)array)[at] = (float complex)value; break;
    default: ((double complex *)array)[at] = value;
    }
}

static double complex get(gs_dtype dtype, const void *array, int64_t at)
{
    switch (dtype) {
    case GS_F32: return ((const float *)array)[at];
    case GS_F64: return ((const double *)array)[at];
    case GS_C32: return ((const float complex *)array)[at];
    default: return ((const double complex *)array)[at];
    }
}

static double epsilon(gs_dtype dtype)
{
    return dtype == GS_F32 || dtype == GS_C32 ? FLT_EPSILON : DBL_EPSILON;
}

static void describe(struct gs_call *call, gs_operation operation, gs_dtype dtype, char uplo,
                     struct pair *p, void *output)
{
    const double alpha[2] = {1.5, 0}, beta[2] = {.5, 0};
    const float alpha_f[2] = {1.5f, 0}, beta_f[2] = {.5f, 0};
    bool single = dtype == GS_F32 || dtype == GS_C32;
    const void *x = single ? (const void *)alpha_f : alpha, *y = single ? (const void *)beta_f
                                                                        : beta;
    char trans = operation == GS_OP_HERK || operation == GS_OP_HER2K ? 'C' : 'T';
    bool two = operation == GS_OP_SYR2K || operation == GS_OP_HER2K;
    char side = uplo == 'U' ? 'L' : 'R';
    switch (operation) {
    case GS_OP_SYMM: case GS_OP_HEMM:
        gs_describe_symm(call, operation, dtype, side, uplo, N, N, x, p->a, LD, p->b, LD, y,
                         output, LD);
        break;
    case GS_OP_SYRK: case GS_OP_HERK: case GS_OP_SYR2K: case GS_OP_HER2K:
        gs_describe_rank_k(call, operation, dtype, uplo, trans, N, N, x, p->a, LD,
                           two ? p->b : NULL, LD, y, output, LD);
        break;
    case GS_OP_TRMM: case GS_OP_TRSM:
        gs_describe_trmm(call, operation, dtype, side, uplo, 'C', side == 'L' ? 'N' : 'U', N, N,
                         x, p->a, LD, output, LD);
        break;
    case GS_OP_GEMMT: case GS_OP_GEMMTR:
        gs_describe_gemmt(call, operation, dtype, uplo, 'N', 'T', N, N, x, p->a, LD, p->b, LD, y,
                          output, LD);
        break;
    default:
        gs_describe_gemm(call, operation, dtype, 'N', 'C', N, N, N, x, p->a, LD, p->b, LD, y,
                         output, LD);
    }
}

static struct gs_operand *output_of(struct gs_call *call)
{
    return &call->operand[call->operand_count - 1];
}

/* Elements that a routine does not refer to are NaN, in the gaps too; the other triangle of an
 * output differs between the two. */
static struct pair *make_pair(gs_operation operation, gs_dtype dtype, char uplo)
{
    struct pair *p = malloc(sizeof *p);
    memset(p, 0xff, sizeof *p);
    memset(&p->cpu, 0, sizeof p->cpu);
    memset(&p->gpu, 0, sizeof p->gpu);
    describe(&p->cpu, operation, dtype, uplo, p, p->c);
    describe(&p->gpu, operation, dtype, uplo, p, p->d);
    for (int i = 0; i < p->cpu.operand_count; i++) {
        struct gs_operand *x = &p->cpu.operand[i];
        for (int64_t j = 0; j < N; j++)
            for (int64_t row = gs_first_row(x, j); row < gs_end_row(x, j); row++) {
                double im = x->hermitian && row == j ? 0 : random_unit();
                double re = random_unit() + (row == j ? 2 : 0);
                put(dtype, x->host, row + j * LD, re + im * _Complex_I);
            }
    }
    memset(p->d, 0x11, sizeof p->d);
    struct gs_operand *c = output_of(&p->cpu);
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = gs_first_row(c, j); i < gs_end_row(c, j); i++) {
            double complex value = get(dtype, p->c, i + j * LD);
            put(dtype, p->d, i + j * LD, value * (1 + epsilon(dtype) * random_unit()));
        }
    return p;
}

static double difference(struct pair *p)
{
    return gs_compare(&p->cpu, &p->gpu, 1);
}

static bool exists(gs_operation operation, gs_dtype dtype)
{
    bool complex_only = operation == GS_OP_HEMM || operation == GS_OP_HERK ||
                        operation == GS_OP_HER2K || operation == GS_OP_GEMM3M;
    return gs_is_complex(dtype) || !complex_only;
}

/* Runs a check in every family, type and triangle. */
static void in_each(void (*check)(gs_operation operation, gs_dtype dtype, char uplo))
{
    for (int operation = 0; operation < GS_OP_COUNT; operation++)
        for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++)
            if (exists((gs_operation)operation, (gs_dtype)dtype)) {
                check((gs_operation)operation, (gs_dtype)dtype, 'U');
                check((gs_operation)operation, (gs_dtype)dtype, 'L');
            }
}

static void equal_within_rounding(gs_operation operation, gs_dtype dtype, char uplo)
{
    struct pair *p = make_pair(operation, dtype, uplo);
    assert_true(difference(p) > 0 && difference(p) <= 1);
    memcpy(p->d, p->c, sizeof p->d);
    assert_true(difference(p) == 0);
    free(p);
}

static void test_equal_within_rounding(void **state)
{
    (void)state;
    in_each(equal_within_rounding);
}

/* Each element in its turn: real part, and where there is one the imaginary part. */
static void one_wrong_element(gs_operation operation, gs_dtype dtype, char uplo)
{
    struct pair *p = make_pair(operation, dtype, uplo);
    const struct gs_operand *c = output_of(&p->cpu);
    double off = 2e5 * epsilon(dtype);
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = gs_first_row(c, j); i < gs_end_row(c, j); i++)
            for (int part = 0; part < (gs_is_complex(dtype) ? 2 : 1); part++) {
                double complex right = get(dtype, p->d, i + j * LD);
                put(dtype, p->d, i + j * LD, right + (part == 0 ? off : off * _Complex_I));
                assert_true(difference(p) > 1);
                put(dtype, p->d, i + j * LD, right);
            }
    assert_true(difference(p) <= 1);
    free(p);
}

static void test_one_wrong_element(void **state)
{
    (void)state;
    in_each(one_wrong_element);
}

/* NaN, Inf and signs of Inf on one side alone are wrong; on both sides they are equal. */
static void spoilt(gs_operation operation, gs_dtype dtype, char uplo)
{
    struct pair *p = make_pair(operation, dtype, uplo);
    const double values[] = {NAN, INFINITY, -INFINITY};
    int64_t at = 3 + 3 * LD; /* on the diagonal: in any part */
    double complex right = get(dtype, p->c, at);
    for (int i = 0; i < 3; i++) {
        put(dtype, p->d, at, values[i]);
        assert_true(isinf(difference(p)));
        put(dtype, p->c, at, values[i]);
        assert_true(difference(p) <= 1);
        put(dtype, p->d, at, right);
        assert_true(isinf(difference(p)));
        put(dtype, p->c, at, right);
    }
    free(p);
}

static void test_nan_and_infinity(void **state)
{
    (void)state;
    in_each(spoilt);
}

/* A complex NaN may lie in either part. */
static void test_nan_in_the_imaginary_part(void **state)
{
    (void)state;
    for (int operation = 0; operation < GS_OP_COUNT; operation++) {
        struct pair *p = make_pair((gs_operation)operation, GS_C64, 'U');
        int64_t at = 3 + 3 * LD;
        ((double *)p->c)[2 * at + 1] = ((double *)p->d)[2 * at + 1] = NAN;
        assert_true(difference(p) <= 1);
        ((double *)p->c)[2 * at + 1] = 0;
        assert_true(isinf(difference(p)));
        free(p);
    }
}

/* The error of a small element of a solution may come from large ones that agree. */
static void test_small_element_of_a_solution(void **state)
{
    struct pair *p = make_pair(GS_OP_TRSM, GS_F64, 'L'); /* from the right: rows are systems */
    (void)state;
    memcpy(p->d, p->c, sizeof p->d);
    for (int64_t j = 0; j < N; j++)
        put(GS_F64, p->c, 2 + j * LD, j == 4 ? 1e-12 : 1e3);
    for (int64_t j = 0; j < N; j++)
        put(GS_F64, p->d, 2 + j * LD, j == 4 ? 1.1e-12 : 1e3);
    assert_true(difference(p) > 0 && difference(p) <= 1);
    put(GS_F64, p->d, 2 + 4 * LD, 1e-5);
    assert_true(difference(p) > 1);
    free(p);
}

static void test_largest(void **state)
{
    struct pair *p = make_pair(GS_OP_SYRK, GS_C32, 'L');
    (void)state;
    put(GS_C32, p->c, 5 + 2 * LD, 1 - 7 * _Complex_I);
    put(GS_C32, p->c, 2 + 5 * LD, 100); /* the other triangle */
    assert_true(gs_largest(&p->cpu, output_of(&p->cpu)) == 7);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_within_rounding),
        cmocka_unit_test(test_one_wrong_element),
        cmocka_unit_test(test_nan_and_infinity),
        cmocka_unit_test(test_nan_in_the_imaginary_part),
        cmocka_unit_test(test_small_element_of_a_solution),
        cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
