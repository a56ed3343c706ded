/* SPDX-License-Identifier: Apache-2.0
 *
 * The breaker, and when a start-up has paid for itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/breaker.h"
#include "policy/start.h"

#define MS UINT64_C(1000000)

static int reset(void **state)
{
    (void)state;
    gs_breaker_reset();
    gs_start_reset();
    return 0;
}

static void test_closed_at_first(void **state)
{
    (void)state;
    assert_int_equal(gs_breaker_check(0), GS_NO_REASON);
    assert_int_equal(gs_breaker_check(UINT64_MAX), GS_NO_REASON);
}

static void test_opens_at_the_limit(void **state)
{
    (void)state;
    gs_breaker_note(GS_STATUS, 1, 3);
    gs_breaker_note(GS_TIMEOUT, 2, 3);
    assert_int_equal(gs_breaker_check(3), GS_NO_REASON);
    gs_breaker_success(); /* errors stay counted */
    assert_int_equal(gs_breaker_check(3), GS_NO_REASON);
    gs_breaker_note(GS_STATUS, 4, 3);
    assert_int_equal(gs_breaker_check(5), GS_BREAKER_OPEN);
    gs_breaker_success();
    assert_int_equal(gs_breaker_check(UINT64_MAX), GS_BREAKER_OPEN); /* for good */
    gs_breaker_reset();
    assert_int_equal(gs_breaker_check(6), GS_NO_REASON);
    gs_breaker_note(GS_STATUS, 7, 3);
    assert_int_equal(gs_breaker_check(8), GS_NO_REASON); /* the count began anew */
}

static void test_a_limit_of_one(void **state)
{
    (void)state;
    gs_breaker_note(GS_STATUS, 1, 1);
    assert_int_equal(gs_breaker_check(1), GS_BREAKER_OPEN);
}

static void test_a_lost_context_opens_at_once(void **state)
{
    (void)state;
    gs_breaker_note(GS_STICKY, 1, 3);
    assert_int_equal(gs_breaker_check(1), GS_BREAKER_OPEN);
}

static void test_no_limit_never_opens(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        gs_breaker_note(i % 2 ? GS_STATUS : GS_STICKY, 1, 0);
    assert_int_equal(gs_breaker_check(1), GS_NO_REASON);
}

static void test_other_reasons_do_not_count(void **state)
{
    (void)state;
    static const gs_reason others[] = {GS_MEM_HOST, GS_SHUTTING_DOWN, GS_VERIFY_MISMATCH,
                                       GS_NO_REASON, GS_ALIASED};
    for (int i = 0; i < 20; i++)
        gs_breaker_note(others[i % 5], 1, 1);
    assert_int_equal(gs_breaker_check(1), GS_NO_REASON);
}

static void test_a_full_device_is_left_alone_for_a_while(void **state)
{
    (void)state;
    static const uint64_t pauses_ms[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000};
    uint64_t now = 1000 * MS;
    for (int i = 0; i < 9; i++) {
        gs_breaker_note(GS_MEM_ALLOC_FAILED, now, 1);
        assert_int_equal(gs_breaker_check(now), GS_MEM_WOULD_NOT_FIT);
        assert_int_equal(gs_breaker_check(now + pauses_ms[i] * MS - 1), GS_MEM_WOULD_NOT_FIT);
        now += pauses_ms[i] * MS;
        assert_int_equal(gs_breaker_check(now), GS_NO_REASON);
    }
}

static void test_success_ends_the_doubling(void **state)
{
    (void)state;
    gs_breaker_note(GS_MEM_ALLOC_FAILED, 0, 3);
    gs_breaker_note(GS_MEM_ALLOC_FAILED, 100 * MS, 3);
    gs_breaker_success();
    gs_breaker_note(GS_MEM_ALLOC_FAILED, 1000 * MS, 3);
    assert_int_equal(gs_breaker_check(1100 * MS - 1), GS_MEM_WOULD_NOT_FIT);
    assert_int_equal(gs_breaker_check(1100 * MS), GS_NO_REASON);
}

static void test_open_is_said_before_full(void **state)
{
    (void)state;
    gs_breaker_note(GS_MEM_ALLOC_FAILED, 0, 1);
    gs_breaker_note(GS_STATUS, 0, 1);
    assert_int_equal(gs_breaker_check(1), GS_BREAKER_OPEN);
}

/* ---- ski rental ---- */

static void test_start_up_is_repaid_by_missed_savings(void **state)
{
    (void)state;
    assert_false(gs_start_is_repaid(.6));
    for (int i = 0; i < 5; i++)
        gs_start_missed(.1);
    assert_false(gs_start_is_repaid(.6));
    gs_start_missed(-100); /* a call that the CPU won takes nothing back */
    gs_start_missed(0);
    assert_false(gs_start_is_repaid(.6));
    gs_start_missed(.1 + 1e-6);
    assert_true(gs_start_is_repaid(.6));
    assert_false(gs_start_is_repaid(.7)); /* dearer than thought */
}

/* Whenever the program ends, it has lost at most twice what the best choice in hindsight would
 * have cost (a call's own saving beyond that: the one that tips the balance). */
static void test_loss_is_at_most_double(void **state)
{
    (void)state;
    const double startup = .6, saving = .05;
    for (int calls = 1; calls < 200; calls++) {
        double lost = 0;
        bool started = false;
        gs_start_reset();
        for (int i = 0; i < calls; i++) {
            if (!started && gs_start_is_repaid(startup)) {
                started = true;
                lost += startup;
            }
            if (!started) {
                gs_start_missed(saving);
                lost += saving;
            }
        }
        double best = calls * saving < startup ? calls * saving : startup;
        assert_true(lost <= 2 * best + saving);
    }
}

static void test_tiny_savings_add_up(void **state)
{
    (void)state;
    for (int i = 0; i < 1000000; i++)
        gs_start_missed(1e-6);
    assert_true(gs_start_is_repaid(.99));
    assert_false(gs_start_is_repaid(1.01));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_closed_at_first, reset),
        cmocka_unit_test_setup(test_opens_at_the_limit, reset),
        cmocka_unit_test_setup(test_a_limit_of_one, reset),
        cmocka_unit_test_setup(test_a_lost_context_opens_at_once, reset),
        cmocka_unit_test_setup(test_no_limit_never_opens, reset),
        cmocka_unit_test_setup(test_other_reasons_do_not_count, reset),
        cmocka_unit_test_setup(test_a_full_device_is_left_alone_for_a_while, reset),
        cmocka_unit_test_setup(test_success_ends_the_doubling, reset),
        cmocka_unit_test_setup(test_open_is_said_before_full, reset),
        cmocka_unit_test_setup(test_start_up_is_repaid_by_missed_savings, reset),
        cmocka_unit_test_setup(test_loss_is_at_most_double, reset),
        cmocka_unit_test_setup(test_tiny_savings_add_up, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
