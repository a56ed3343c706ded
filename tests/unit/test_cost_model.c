/* SPDX-License-Identifier: Apache-2.0
 *
 * Predictions: their shape, and that they come to agree with what is measured.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/cost_model.h"

static struct gs_machine machine;

static int reset(void **state)
{
    (void)state;
    gs_learn_reset();
    gs_machine_init(&machine, 8);
    return 0;
}

static struct gs_call gemm(gs_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    static const double one[2] = {1, 0};
    static const float one_f[2] = {1, 0};
    static char memory[3];
    const void *scalar = dtype == GS_F32 || dtype == GS_C32 ? (const void *)one_f : one;
    struct gs_call call;
    gs_describe_gemm(&call, GS_OP_GEMM, dtype, 'N', 'N', m, n, k, scalar, memory, m, memory + 1, k, scalar,
                     memory + 2, m);
    return call;
}

static struct gs_prediction predict(gs_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    struct gs_call call = gemm(dtype, m, n, k);
    return gs_predict(&machine, &call);
}

static void test_all_terms_are_positive_and_add_up(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 128, 129, 4096, 100000};
    for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++)
        for (int i = 0; i < 6 * 6 * 6; i++) {
            struct gs_prediction p = predict((gs_dtype)dtype, sizes[i % 6], sizes[i / 6 % 6],
                                             sizes[i / 36]);
            assert_true(p.cpu > 0 && p.fixed > 0 && p.copy_in > 0 && p.compute > 0 &&
                        p.copy_out > 0 && p.compute_as_f32 > 0);
            assert_true(isfinite(p.cpu) && isfinite(p.gpu));
            double sum = p.fixed + p.copy_in + p.compute + p.copy_out;
            assert_true(fabs(p.gpu - sum) <= 4 * DBL_EPSILON * sum);
            assert_true(p.compute_as_f32 <= p.compute * (1 + DBL_EPSILON));
        }
}

/* More of anything takes no less time. Waves of tiles may make the device a little faster with
 * more work, by what the last wave was short of: not beyond the fourfold that it allows for. */
static void test_monotonic(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++)
        for (int dimension = 0; dimension < 3; dimension++) {
            struct gs_prediction before = {0};
            for (int64_t size = 64; size <= 65536; size *= 2) {
                int64_t s[3] = {512, 512, 512};
                s[dimension] = size;
                struct gs_prediction p = predict((gs_dtype)dtype, s[0], s[1], s[2]);
                assert_true(p.cpu >= before.cpu);
                assert_true(p.copy_in >= before.copy_in && p.copy_out >= before.copy_out);
                assert_true(p.compute >= before.compute * .999);
                before = p;
            }
        }
}

static void test_large_products_belong_to_the_device(void **state)
{
    (void)state;
    struct gs_prediction tiny = predict(GS_F64, 16, 16, 16), large = predict(GS_F64, 8192, 8192,
                                                                             8192);
    assert_true(tiny.gpu > tiny.cpu);
    assert_true(large.cpu > 3 * large.gpu);
    /* Bytes count, not operations alone: a long thin product is copies (C92). */
    struct gs_prediction thin = predict(GS_F64, 1000000, 2, 2);
    assert_true(thin.copy_in + thin.copy_out > thin.compute && thin.gpu > thin.cpu);
}

static void test_beta_costs_a_copy(void **state)
{
    (void)state;
    static const double zero = 0, one = 1;
    static char memory[3];
    struct gs_call without, with;
    gs_describe_gemm(&without, GS_OP_GEMM, GS_F64, 'N', 'N', 1000, 1000, 1000, &one, memory, 1000, memory,
                     1000, &zero, memory, 1000);
    gs_describe_gemm(&with, GS_OP_GEMM, GS_F64, 'N', 'N', 1000, 1000, 1000, &one, memory, 1000, memory, 1000,
                     &one, memory, 1000);
    struct gs_prediction p = gs_predict(&machine, &without), q = gs_predict(&machine, &with);
    assert_true(fabs(q.copy_in / p.copy_in - 1.5) < .01);
    assert_true(q.copy_out == p.copy_out);
}

static void test_fp64_rate_is_a_term_of_its_own(void **state)
{
    (void)state;
    machine.device_flops[GS_F64] = machine.device_flops[GS_F32] / 64;
    machine.device_flops[GS_C64] = machine.device_flops[GS_C32] / 64;
    struct gs_prediction p = predict(GS_F64, 4096, 4096, 4096);
    assert_true(fabs(p.compute / p.compute_as_f32 - 64) < 1e-6);
    p = predict(GS_F32, 4096, 4096, 4096);
    assert_true(p.compute == p.compute_as_f32);
}

/* ---- learning ---- */

static void test_learning_converges(void **state)
{
    (void)state;
    static const double factors[] = {.02, .3, 1, 3, 40};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        gs_learn_reset();
        struct gs_call call = gemm(GS_F64, 1000, 1000, 1000);
        struct gs_prediction first = gs_predict(&machine, &call);
        struct gs_gpu_times truth = {.copy_in = first.copy_in * factors[i],
                                     .compute = first.compute * factors[i],
                                     .copy_out = first.copy_out * factors[i]};
        for (int round = 0; round < 60; round++) {
            gs_learn_cpu(&machine, &call, first.cpu * factors[i]);
            gs_learn_gpu(&machine, &call, &truth);
        }
        struct gs_prediction p = gs_predict(&machine, &call);
        assert_true(fabs(p.cpu / (first.cpu * factors[i]) - 1) < .01);
        assert_true(fabs(p.compute / truth.compute - 1) < .01);
        assert_true(fabs(p.copy_in / truth.copy_in - 1) < .01);
        assert_true(fabs(p.copy_out / truth.copy_out - 1) < .01);
    }
}

static void test_one_outlier_does_not_decide(void **state)
{
    (void)state;
    struct gs_call call = gemm(GS_F64, 1000, 1000, 1000);
    double usual = gs_predict(&machine, &call).cpu;
    for (int i = 0; i < 20; i++)
        gs_learn_cpu(&machine, &call, usual);
    gs_learn_cpu(&machine, &call, usual * 1e6); /* stopped by a debugger, say */
    assert_true(gs_predict(&machine, &call).cpu < 2.5 * usual);
    gs_learn_reset();
    gs_learn_cpu(&machine, &call, usual * 1e6); /* the very first */
    assert_true(gs_predict(&machine, &call).cpu < 2.5 * usual);
}

static void test_a_new_shape_profits_from_its_type(void **state)
{
    (void)state;
    struct gs_call seen = gemm(GS_F64, 1000, 1000, 1000), other = gemm(GS_F64, 200, 3000, 50);
    double before = gs_predict(&machine, &other).cpu;
    double unrelated = predict(GS_F32, 200, 3000, 50).cpu;
    for (int i = 0; i < 40; i++)
        gs_learn_cpu(&machine, &seen, gs_predict(&machine, &seen).cpu / 2);
    assert_true(gs_predict(&machine, &other).cpu < .6 * before);
    assert_true(predict(GS_F32, 200, 3000, 50).cpu == unrelated);
}

static void test_nonsense_teaches_nothing(void **state)
{
    (void)state;
    struct gs_call call = gemm(GS_F64, 1000, 1000, 1000);
    struct gs_prediction before = gs_predict(&machine, &call);
    struct gs_gpu_times nothing = {0, 0, 0, 0}, negative = {-1, -1, -1, -1};
    gs_learn_cpu(&machine, &call, 0);
    gs_learn_cpu(&machine, &call, -1);
    gs_learn_gpu(&machine, &call, &nothing);
    gs_learn_gpu(&machine, &call, &negative);
    struct gs_prediction after = gs_predict(&machine, &call);
    assert_true(after.cpu == before.cpu && after.gpu == before.gpu);
}

static void test_learning_is_bounded(void **state)
{
    (void)state;
    struct gs_call call = gemm(GS_F64, 1000, 1000, 1000);
    double before = gs_predict(&machine, &call).cpu;
    for (int i = 0; i < 100; i++)
        gs_learn_cpu(&machine, &call, 1e-30);
    assert_true(gs_predict(&machine, &call).cpu >= before * .9e-3);
}

/* ---- the floor ---- */

static void test_the_floor(void **state)
{
    (void)state;
    double min_time = 20e-6;
    for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++) {
        double floor = gs_floor_for(&machine, (gs_dtype)dtype, min_time);
        assert_true(floor > 0);
        assert_true(fabs(gs_floor_for(&machine, (gs_dtype)dtype, 2 * min_time) / floor - 2) <
                    1e-9);
        /* A thick product of that much work takes about that long. */
        int64_t side = (int64_t)cbrt(floor);
        struct gs_prediction p = predict((gs_dtype)dtype, side, side, side);
        assert_true(p.cpu > .5 * min_time && p.cpu < 3 * min_time);
    }
    struct gs_call call = gemm(GS_F64, 1000, 1000, 1000);
    double floor = gs_floor_for(&machine, GS_F64, min_time);
    for (int i = 0; i < 60; i++)
        gs_learn_cpu(&machine, &call, gs_predict(&machine, &call).cpu);
    double usual = gs_predict(&machine, &call).cpu;
    for (int i = 0; i < 60; i++)
        gs_learn_cpu(&machine, &call, usual * 4); /* a slower CPU has a lower floor */
    assert_true(gs_floor_for(&machine, GS_F64, min_time) < .5 * floor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_terms_are_positive_and_add_up, reset),
        cmocka_unit_test_setup(test_monotonic, reset),
        cmocka_unit_test_setup(test_large_products_belong_to_the_device, reset),
        cmocka_unit_test_setup(test_beta_costs_a_copy, reset),
        cmocka_unit_test_setup(test_fp64_rate_is_a_term_of_its_own, reset),
        cmocka_unit_test_setup(test_learning_converges, reset),
        cmocka_unit_test_setup(test_one_outlier_does_not_decide, reset),
        cmocka_unit_test_setup(test_a_new_shape_profits_from_its_type, reset),
        cmocka_unit_test_setup(test_nonsense_teaches_nothing, reset),
        cmocka_unit_test_setup(test_learning_is_bounded, reset),
        cmocka_unit_test_setup(test_the_floor, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
