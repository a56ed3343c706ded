/* SPDX-License-Identifier: Apache-2.0
 *
 * Each rule of the decision, its place in the order, and what the modes make of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/decide.h"

static double array_a[100], array_b[100], array_c[100];
static struct gs_call call;

/* A call that auto runs on the GPU. */
static struct gs_question good_question(void)
{
    double one = 1, zero = 0;
    gs_describe_gemm(&call, GS_OP_GEMM, GS_F64, 'N', 'N', 10, 10, 10, &one, array_a, 10, array_b, 10, &zero,
                     array_c, 10);
    return (struct gs_question){
        .call = &call,
        .mode = GS_MODE_AUTO,
        .margin = 1.2,
        .routine_selected = true,
        .width_proven = true,
        .device = GS_READY,
        .memory_needed = 2400,
        .memory_allowed = 1e9,
        .predicted = {.cpu = 10, .gpu = 1, .fixed = .1, .copy_in = .3, .compute = .4,
                      .copy_out = .2, .compute_as_f32 = .2},
    };
}

static void expect(const struct gs_question *q, bool gpu, gs_reason reason)
{
    struct gs_verdict verdict = gs_decide(q);
    assert_int_equal(verdict.reason, reason);
    assert_int_equal(verdict.gpu, gpu);
}

/* What each rule of "cannot" objects to, in the published order. */
static void no_bad_argument(struct gs_question *q) { (void)q; call.objection = GS_BAD_ARGUMENT; }
static void no_routine(struct gs_question *q) { q->routine_selected = false; }
static void no_empty(struct gs_question *q) { (void)q; call.objection = GS_SIZE_EMPTY; }
static void no_width(struct gs_question *q) { q->width_proven = false; }
static void no_backend(struct gs_question *q) { q->unsupported = GS_DIM_LIMIT; }
static void no_alias(struct gs_question *q) { (void)q; call.operand[2].host = array_a; }
static void no_breaker(struct gs_question *q) { q->breaker = GS_BREAKER_OPEN; }

static void no_device(struct gs_question *q)
{
    q->device = GS_REFUSED;
    q->refusal = GS_NO_DRIVER;
}

static void no_memory(struct gs_question *q) { q->memory_needed = 2e9; }

static const struct {
    void (*spoil)(struct gs_question *q);
    gs_reason reason;
} cannot[] = {
    {no_bad_argument, GS_BAD_ARGUMENT}, {no_routine, GS_ROUTINE_EXCLUDED},
    {no_empty, GS_SIZE_EMPTY},          {no_width, GS_ABI},
    {no_backend, GS_DIM_LIMIT},         {no_alias, GS_ALIASED},
    {no_breaker, GS_BREAKER_OPEN},      {no_device, GS_NO_DRIVER},
    {no_memory, GS_MEM_WOULD_NOT_FIT},
};
#define CANNOT (sizeof cannot / sizeof cannot[0])

static void test_the_gpu_where_it_is_faster(void **state)
{
    (void)state;
    struct gs_question q = good_question();
    expect(&q, true, GS_PREDICTED_FASTER);
}

static void test_each_objection_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < CANNOT; i++) {
        struct gs_question q = good_question();
        cannot[i].spoil(&q);
        expect(&q, false, cannot[i].reason);
    }
}

static void test_the_first_objection_names_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < CANNOT; i++)
        for (size_t j = i + 1; j < CANNOT; j++) {
            struct gs_question q = good_question();
            cannot[j].spoil(&q);
            cannot[i].spoil(&q);
            if (call.objection == GS_SIZE_EMPTY && cannot[i].reason == GS_BAD_ARGUMENT)
                call.objection = GS_BAD_ARGUMENT;
            expect(&q, false, cannot[i].reason);
        }
}

static void test_no_mode_overrides_what_cannot_be(void **state)
{
    (void)state;
    static const enum gs_mode modes[] = {GS_MODE_AUTO, GS_MODE_FORCE, GS_MODE_VERIFY};
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
        for (size_t i = 0; i < CANNOT; i++) {
            struct gs_question q = good_question();
            q.mode = modes[m];
            cannot[i].spoil(&q);
            expect(&q, false, cannot[i].reason);
            assert_false(gs_decide(&q).wants_start);
        }
}

static void test_memory_that_the_user_limits(void **state)
{
    (void)state;
    struct gs_question q = good_question();
    q.memory_by_user = true;
    q.memory_needed = 1e9;
    expect(&q, true, GS_PREDICTED_FASTER); /* just fits */
    q.memory_needed = 1e9 + 1;
    expect(&q, false, GS_MEM_USER_LIMIT);
    q.memory_allowed = 0; /* not known yet */
    expect(&q, true, GS_PREDICTED_FASTER);
}

static void test_the_back_off_is_not_the_breaker(void **state)
{
    (void)state;
    struct gs_question q = good_question();
    q.breaker = GS_MEM_WOULD_NOT_FIT;
    expect(&q, false, GS_MEM_WOULD_NOT_FIT);
}

/* ---- economic reasons, by counterfactual ---- */

static struct gs_question priced(double cpu, double fixed, double copy_in, double compute,
                                 double copy_out, double compute_as_f32)
{
    struct gs_question q = good_question();
    q.margin = 1;
    q.predicted = (struct gs_prediction){
        .cpu = cpu, .gpu = fixed + copy_in + compute + copy_out, .fixed = fixed,
        .copy_in = copy_in, .compute = compute, .copy_out = copy_out,
        .compute_as_f32 = compute_as_f32};
    return q;
}

static void test_counterfactuals(void **state)
{
    (void)state;
    struct gs_question q = priced(5, 1, 3, 1, 3, 1); /* 8; without copies 2 */
    expect(&q, false, GS_TRANSFER_DOMINATES);
    q = priced(5, 4, .5, 2, .5, 2);                  /* 7; without copies 6, without fixed 3 */
    expect(&q, false, GS_SIZE_BELOW_CROSSOVER);
    q = priced(5, 1, .5, 6, .5, 1);                  /* 8; without copies 7, fixed 7; f32: 3 */
    expect(&q, false, GS_ALGO_FP64_RATE);
    q = priced(5, 1, 1, 9, 1, 9);                    /* the device is slower, whatever else */
    expect(&q, false, GS_ALGO_CPU_FASTER);
    q = priced(3, 2.5, 2, 1, 2, 1);                  /* neither copies nor launch alone */
    expect(&q, false, GS_SIZE_BELOW_CROSSOVER);
    q = priced(5, 1, 1, 1, 1, 1);
    expect(&q, true, GS_PREDICTED_FASTER);
}

static void test_the_margin(void **state)
{
    (void)state;
    struct gs_question q = priced(4.7, 1, 1, 1, 1, 1);
    q.margin = 1.2;
    expect(&q, false, GS_TRANSFER_DOMINATES);
    q.predicted.cpu = 4.9;
    expect(&q, true, GS_PREDICTED_FASTER);
    q.margin = 1.3;
    expect(&q, false, GS_TRANSFER_DOMINATES);
}

static void test_more_cpu_time_never_speaks_for_the_cpu(void **state)
{
    (void)state;
    for (double cpu = .1; cpu < 20; cpu *= 1.1) {
        struct gs_question slow = priced(cpu * 1.1, 1, 2, 3, 1, 2), fast = slow;
        fast.predicted.cpu = cpu;
        assert_true(gs_decide(&slow).gpu || !gs_decide(&fast).gpu);
    }
}

/* ---- start-up and contention ---- */

static void test_start_up(void **state)
{
    (void)state;
    struct gs_question q = good_question();
    q.device = GS_COLD;
    expect(&q, false, GS_GRAN_STARTUP);
    assert_false(gs_decide(&q).wants_start);
    q.startup_repaid = true;
    expect(&q, false, GS_GRAN_STARTUP);
    assert_true(gs_decide(&q).wants_start);
    q.device = GS_STARTING;
    expect(&q, false, GS_NOT_READY);
    assert_false(gs_decide(&q).wants_start);
    q.device = GS_READY;
    q.queue_full = true;
    expect(&q, false, GS_GRAN_CONTENTION);
}

static void test_a_slow_call_starts_nothing(void **state)
{
    (void)state;
    struct gs_question q = priced(1, 1, 1, 1, 1, 1);
    q.device = GS_COLD;
    q.startup_repaid = true;
    expect(&q, false, GS_SIZE_BELOW_CROSSOVER);
    assert_false(gs_decide(&q).wants_start);
}

/* ---- modes ---- */

static void test_force_knows_no_price(void **state)
{
    (void)state;
    struct gs_question q = priced(1, 1, 1, 9, 1, 9);
    q.mode = GS_MODE_FORCE;
    q.queue_full = true;
    expect(&q, true, GS_FORCED);
    assert_false(gs_decide(&q).wants_start);
    static const enum gs_device_state states[] = {GS_COLD, GS_STARTING};
    for (size_t i = 0; i < 2; i++) {
        q.device = states[i];
        expect(&q, true, GS_FORCED);
        assert_true(gs_decide(&q).wants_start);
    }
}

static void test_observe_says_what_auto_would_have_done(void **state)
{
    (void)state;
    struct gs_question q = good_question();
    q.mode = GS_MODE_OBSERVE;
    struct gs_verdict verdict = gs_decide(&q);
    assert_int_equal(verdict.reason, GS_OBSERVE);
    assert_int_equal(verdict.would, GS_PREDICTED_FASTER);
    assert_true(verdict.would_gpu && !verdict.gpu && !verdict.wants_start);

    q.device = GS_COLD; /* never started here: on paper, it is once it would have paid */
    verdict = gs_decide(&q);
    assert_int_equal(verdict.would, GS_GRAN_STARTUP);
    assert_true(!verdict.would_gpu && !verdict.wants_start);
    q.startup_repaid = true;
    verdict = gs_decide(&q);
    assert_int_equal(verdict.would, GS_PREDICTED_FASTER);
    assert_false(verdict.wants_start);

    no_alias(&q);
    verdict = gs_decide(&q);
    assert_int_equal(verdict.reason, GS_OBSERVE);
    assert_int_equal(verdict.would, GS_ALIASED);
}

static void test_verify(void **state)
{
    (void)state;
    struct gs_question q = priced(1, 1, 1, 9, 1, 9);
    q.mode = GS_MODE_VERIFY;
    struct gs_verdict verdict = gs_decide(&q);
    assert_int_equal(verdict.reason, GS_VERIFY_KEEPS_CPU);
    assert_int_equal(verdict.would, GS_ALGO_CPU_FASTER);
    assert_true(!verdict.gpu && !verdict.would_gpu && !verdict.wants_start);
    q.device = GS_COLD;
    assert_true(gs_decide(&q).wants_start);
}

static void test_off(void **state)
{
    (void)state;
    struct gs_question q = good_question();
    q.mode = GS_MODE_OFF;
    expect(&q, false, GS_OFF);
}

static void test_a_fallback_is_on_the_cpu(void **state)
{
    (void)state;
    struct gs_verdict verdict = gs_verdict_fallen_back(GS_STATUS);
    assert_int_equal(verdict.reason, GS_STATUS);
    assert_true(!verdict.gpu && !verdict.wants_start && verdict.would == GS_NO_REASON);
}

/* ---- shared memory ---- */

static bool aliased(const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    struct gs_call x;
    double one = 1;
    gs_describe_gemm(&x, GS_OP_GEMM, GS_F64, 'N', 'N', 3, 4, 5, &one, a, lda, b, ldb, &one, c, ldc);
    assert_int_equal(x.objection, GS_NO_REASON);
    return gs_call_is_aliased(&x);
}

static void test_aliasing_by_range(void **state)
{
    (void)state;
    static double m[400];
    /* A: 3 x 5, B: 5 x 4, C: 3 x 4; the last column ends with its last element. */
    assert_false(aliased(m, 3, m + 100, 5, m + 200, 3));
    assert_true(aliased(m, 3, m + 100, 5, m, 3));
    assert_false(aliased(m, 3, m + 100, 5, m + 15, 3));      /* directly behind A */
    assert_true(aliased(m, 3, m + 100, 5, m + 14, 3));       /* its last element */
    assert_false(aliased(m + 12, 3, m + 100, 5, m, 3));      /* directly before A */
    assert_true(aliased(m + 11, 3, m + 100, 5, m, 3));
    assert_false(aliased(m, 3, m + 100, 5, m + 120, 3));     /* behind B */
    assert_true(aliased(m, 3, m + 100, 5, m + 119, 3));
    assert_false(aliased(m, 10, m + 100, 5, m + 3, 10));     /* in the gaps of A: separate rows */
    assert_false(aliased(m, 10, m + 100, 5, m + 13, 10));    /* from its second column on */
    assert_false(aliased(m + 13, 10, m + 100, 5, m, 10));    /* above it */
    assert_true(aliased(m, 10, m + 100, 5, m + 2, 10));      /* with its last row */
    assert_true(aliased(m, 10, m + 100, 5, m + 8, 10));      /* into the next column's first row */
    assert_true(aliased(m, 10, m + 100, 5, m + 3, 11));      /* rows that drift into it */
    assert_false(aliased(m, 10, m + 100, 5, m + 43, 10));    /* behind A's last column */
    assert_true(aliased(m, 10, m + 100, 5, m + 42, 10));
    assert_false(aliased(m + 33, 3, m + 100, 5, m, 10));     /* behind C's last column */
    assert_true(aliased(m + 32, 3, m + 100, 5, m, 10));
    assert_false(aliased(m, 3, m, 5, m + 200, 3));           /* inputs may share */
    assert_false(aliased(m, 3, m + 2, 5, m + 200, 3));
    assert_true(aliased(m, 3, m + 100, 5, (char *)m + 1, 3)); /* and by bytes, not elements */
    assert_true(aliased(m, 3, m + 100, 5, (char *)(m + 15) - 1, 3));
}

static void test_aliasing_at_the_ends_of_memory(void **state)
{
    (void)state;
    struct gs_call x;
    const double one[2] = {1, 0};
    const int64_t huge = INT64_C(1) << 40;
    char *high = (char *)(uintptr_t)UINT64_C(0x7ffffffff000);
    /* huge * huge elements: only 128 bits hold the size in bytes. */
    gs_describe_gemm(&x, GS_OP_GEMM, GS_C64, 'N', 'N', huge, huge, huge, one, (void *)4096, huge, high, huge,
                     one, high + 4096, huge);
    assert_true(gs_call_is_aliased(&x));
    gs_describe_gemm(&x, GS_OP_GEMM, GS_C64, 'N', 'N', 1, 1, 1, one, high, huge, high + 16, huge, one,
                     high + 32, huge);
    assert_false(gs_call_is_aliased(&x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_gpu_where_it_is_faster),
        cmocka_unit_test(test_each_objection_alone),
        cmocka_unit_test(test_the_first_objection_names_the_reason),
        cmocka_unit_test(test_no_mode_overrides_what_cannot_be),
        cmocka_unit_test(test_memory_that_the_user_limits),
        cmocka_unit_test(test_the_back_off_is_not_the_breaker),
        cmocka_unit_test(test_counterfactuals),
        cmocka_unit_test(test_the_margin),
        cmocka_unit_test(test_more_cpu_time_never_speaks_for_the_cpu),
        cmocka_unit_test(test_start_up),
        cmocka_unit_test(test_a_slow_call_starts_nothing),
        cmocka_unit_test(test_force_knows_no_price),
        cmocka_unit_test(test_observe_says_what_auto_would_have_done),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_a_fallback_is_on_the_cpu),
        cmocka_unit_test(test_aliasing_by_range),
        cmocka_unit_test(test_aliasing_at_the_ends_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
