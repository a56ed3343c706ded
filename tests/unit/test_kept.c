/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept copies: exactly the elements move, and the pool of buffers is bounded.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu_backends/kept.h"

static size_t mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void fill(unsigned char *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(seed + i * 7 + i / 251);
}

static void check_round(gs_dtype dtype, int64_t rows, int64_t cols, int64_t ld)
{
    size_t size = gs_element_bytes(dtype), whole = (size_t)(ld * cols) * size;
    unsigned char *host = malloc(whole + 64), *before = malloc(whole + 64),
                  *spoilt = malloc(whole + 64);
    struct gs_operand x = {host, rows, cols, ld, GS_INOUT, GS_FULL, false};
    struct gs_kept kept;
    fill(host, whole + 64, 3);
    memcpy(before, host, whole + 64);
    assert_true(gs_kept_take(&kept, dtype, &x));
    assert_false(kept.filled);
    gs_kept_fill(&kept, dtype, &x);
    assert_memory_equal(host, before, whole + 64);
    fill(host, whole + 64, 99); /* the device's half-written result, and other threads' rows */
    memcpy(spoilt, host, whole + 64);
    gs_kept_restore(&kept, dtype, &x);
    for (size_t i = 0; i < whole + 64; i++) {
        size_t element = i / size;
        bool is_ours = element % (size_t)ld < (size_t)rows && element / (size_t)ld < (size_t)cols;
        assert_int_equal(host[i], is_ours ? before[i] : spoilt[i]);
    }
    gs_kept_give(&kept);
    free(host);
    free(before);
    free(spoilt);
}

static void test_elements_and_nothing_else(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++) {
        check_round((gs_dtype)dtype, 1, 1, 1);
        check_round((gs_dtype)dtype, 7, 5, 7);
        check_round((gs_dtype)dtype, 7, 5, 11);
        check_round((gs_dtype)dtype, 1, 40, 3);
        check_round((gs_dtype)dtype, 300, 200, 301);
    }
}

/* The operand ends with its last element, and a page without access follows. */
static void test_end_of_a_page(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *map = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(map + 2 * page, page, PROT_NONE), 0);
    size_t elements = 4 * 10 + 3; /* five columns of 3 with ld 10 */
    struct gs_operand x = {map + 2 * page - elements * 8, 3, 5, 10, GS_INOUT, GS_FULL, false};
    struct gs_kept kept;
    assert_true(gs_kept_take(&kept, GS_F64, &x));
    gs_kept_fill(&kept, GS_F64, &x);
    gs_kept_restore(&kept, GS_F64, &x);
    gs_kept_give(&kept);
    munmap(map, 3 * page);
}

static void test_an_unfilled_copy_restores_nothing(void **state)
{
    (void)state;
    double values[4] = {1, 2, 3, 4}, before[4] = {1, 2, 3, 4};
    struct gs_operand x = {values, 2, 2, 2, GS_INOUT, GS_FULL, false};
    struct gs_kept kept;
    assert_true(gs_kept_take(&kept, GS_F64, &x));
    memset(kept.bytes, 0x55, sizeof values);
    gs_kept_restore(&kept, GS_F64, &x);
    assert_memory_equal(values, before, sizeof values);
    gs_kept_give(&kept);
    gs_kept_give(&kept); /* given already: nothing happens */
}

static void test_buffers_are_used_again(void **state)
{
    (void)state;
    double *large = (double *)1; /* never touched: take and give look at sizes alone */
    struct gs_operand x = {large, 1000, 1000, 1000, GS_INOUT, GS_FULL, false};
    struct gs_kept kept;
    assert_true(gs_kept_take(&kept, GS_F64, &x));
    void *first = kept.bytes;
    gs_kept_give(&kept);
    assert_null(kept.bytes);
    size_t before = mapped_bytes();
    for (int i = 0; i < 100; i++) {
        assert_true(gs_kept_take(&kept, GS_F64, &x));
        assert_ptr_equal(kept.bytes, first);
        gs_kept_give(&kept);
    }
    assert_true(mapped_bytes() <= before);
}

/* Buffers of ever new sizes, given back: no more than the pool's bound stays. */
static void test_the_pool_is_bounded(void **state)
{
    (void)state;
    size_t before = mapped_bytes();
    for (int round = 0; round < 3; round++) {
        struct gs_kept kept[40];
        for (int i = 0; i < 40; i++) {
            struct gs_operand x = {NULL, 1000 * (i + 1), 1000, 1000 * (i + 1), GS_INOUT, GS_FULL, false};
            assert_true(gs_kept_take(&kept[i], GS_F64, &x));
        }
        for (int i = 0; i < 40; i++)
            gs_kept_give(&kept[i]);
        assert_true(mapped_bytes() <= before + GS_KEPT_POOL_BYTES);
    }
}

static void test_one_larger_than_the_pool(void **state)
{
    (void)state;
    struct gs_operand x = {NULL, 1 << 16, 1 << 12, 1 << 16, GS_INOUT, GS_FULL, false}; /* 2 GiB, untouched */
    struct gs_kept kept;
    size_t before = mapped_bytes();
    assert_true(gs_kept_take(&kept, GS_F64, &x));
    gs_kept_give(&kept);
    assert_true(mapped_bytes() <= before);
}

static void test_too_large_is_refused(void **state)
{
    (void)state;
    const int64_t huge = INT64_C(1) << 40;
    struct gs_operand x = {NULL, huge, huge, huge, GS_INOUT, GS_FULL, false};
    struct gs_kept kept;
    assert_false(gs_kept_take(&kept, GS_C64, &x)); /* 2^84 bytes */
    assert_null(kept.bytes);
    gs_kept_give(&kept);
    x = (struct gs_operand){NULL, INT64_C(1) << 42, 1, INT64_C(1) << 42, GS_INOUT, GS_FULL, false};
    assert_false(gs_kept_take(&kept, GS_F64, &x)); /* 2^45 bytes: mmap says no */
    gs_kept_give(&kept);
}

static void *take_and_give(void *failed)
{
    for (int i = 0; i < 300; i++) {
        double values[64 * 3], before[64 * 3];
        int64_t rows = 1 + i % 60;
        struct gs_operand x = {values, rows, 3, 64, GS_INOUT, GS_FULL, false};
        struct gs_kept kept;
        for (int j = 0; j < 64 * 3; j++)
            values[j] = before[j] = i + j;
        if (!gs_kept_take(&kept, GS_F64, &x)) {
            *(int *)failed = 1;
            break;
        }
        gs_kept_fill(&kept, GS_F64, &x);
        for (int64_t at = 0; at < 64 * 3; at++)
            if (at % 64 < rows)
                values[at] = -1;
        gs_kept_restore(&kept, GS_F64, &x);
        gs_kept_give(&kept);
        if (memcmp(values, before, sizeof values) != 0)
            *(int *)failed = 1;
    }
    return NULL;
}

static void test_threads_do_not_share_buffers(void **state)
{
    (void)state;
    enum { THREADS = 12 };
    pthread_t thread[THREADS];
    int failed[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, &failed[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(failed[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_pool_is_bounded),
        cmocka_unit_test(test_elements_and_nothing_else),
        cmocka_unit_test(test_end_of_a_page),
        cmocka_unit_test(test_an_unfilled_copy_restores_nothing),
        cmocka_unit_test(test_buffers_are_used_again),
        cmocka_unit_test(test_one_larger_than_the_pool),
        cmocka_unit_test(test_too_large_is_refused),
        cmocka_unit_test(test_threads_do_not_share_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
