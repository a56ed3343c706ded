/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_driver: NaN and Inf go where the product takes them and nowhere else; operands that share
 * memory.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_sweep.h"

/* ---- NaN and Inf ---- */

enum { NAN_I = 2, NAN_J = 1, NAN_P = 3 };

static bool is_finite(const struct matrix *c, bool row_major, int64_t i, int64_t j)
{
    long double value[2];
    matrix_get(c, row_major, i, j, value);
    return isfinite(value[0]) && isfinite(value[1]);
}

/* A(2, 3) or B(3, 1) is spoilt: row 2 or column 1 of C must show it, all others be right. */
static void run_spoilt(struct sweep *sweep, struct gemm *g, bool in_a, double value)
{
    bool row_major = g->interface == ROWS;
    uint64_t seed = sweep_seed(sweep);
    struct matrix a = matrix_place(&sweep->a, g->dtype, row_major, g->m, g->k, 1);
    struct matrix b = matrix_place(&sweep->b, g->dtype, row_major, g->k, g->n, 0);
    struct matrix c = matrix_place(&sweep->c, g->dtype, row_major, g->m, g->n, 2);
    matrix_random(&a, &seed);
    matrix_random(&b, &seed);
    matrix_spoil(&c);
    if (in_a)
        matrix_set(&a, row_major, NAN_I, NAN_P, value, 0);
    else
        matrix_set(&b, row_major, NAN_P, NAN_J, value, 0);
    g->a = a.first, g->b = b.first, g->c = c.first;
    g->lda = a.ld, g->ldb = b.ld, g->ldc = c.ld;
    sweep_call(sweep, g, &a, &b, &c);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            bool spoilt = in_a ? i == NAN_I : j == NAN_J;
            struct wanted wanted = product_element(g, &a, &b, &c, i, j);
            if (spoilt ? is_finite(&c, row_major, i, j)
                       : !element_is_near(&c, row_major, i, j, &wanted)) {
                sweep_fail(sweep, g, spoilt ? "NaN or Inf got lost" : "NaN or Inf has spread");
                return;
            }
        }
    sweep->fates[ON_DEVICE]++;
}

static void sweep_spoilt(struct sweep *sweep, enum dtype dtype, enum interface interface)
{
    static const int sizes[][3] = {{5, 4, 6}, {33, 20, 40}};
    static const double values[] = {NAN, INFINITY};
    for (int variant = 0; variant < 8; variant++) {
        const int *size = sizes[variant / 4];
        struct gemm g = {.dtype = dtype, .interface = interface, .transa = 'N', .transb = 'N',
                         .m = size[0], .n = size[1], .k = size[2], .alpha = {1}, .beta = {0}};
        if (sweep_wants(sweep))
            run_spoilt(sweep, &g, variant % 2 == 0, values[variant / 2 % 2]);
    }
}

/* ---- shared memory ---- */

/* The function of the CPU library itself, past any preload. */
static gemm_function original(enum dtype dtype, enum interface interface)
{
    void *library = dlopen(DRIVER_BLAS, RTLD_NOW | RTLD_NOLOAD);
    gemm_function function =
        library != NULL ? (gemm_function)dlsym(library, gemm_name(dtype, interface)) : NULL;
    if (function == NULL) {
        fprintf(stderr, "%s: not in " DRIVER_BLAS "\n", gemm_name(dtype, interface));
        exit(2);
    }
    return function;
}

enum { SIDE = 24 };

/* How operands lie in one array of elements; offsets and leading dimensions in elements. */
static const struct sharing {
    const char *what;
    int64_t a, lda, b, ldb, c, ldc;
    enum fate fate;
} sharings[] = {
    {"C is A", 0, SIDE, 2000, SIDE, 0, SIDE, OVERLAPPING},
    {"C is B", 0, SIDE, 2000, SIDE, 2000, SIDE, OVERLAPPING},
    {"C begins in B's last element", 0, SIDE, 2000, SIDE, 2000 + SIDE * SIDE - 1, SIDE,
     OVERLAPPING},
    {"C ends in A's first element", SIDE * SIDE - 1, SIDE, 2000, SIDE, 0, SIDE, OVERLAPPING},
    {"C in the gaps of A", 0, 2 * SIDE, 2000, SIDE, SIDE, 2 * SIDE, ON_DEVICE},
    {"C in the gaps of A and one row of it", 0, 2 * SIDE, 2000, SIDE, SIDE - 1, 2 * SIDE, OVERLAPPING},
    {"A is B", 0, SIDE, 0, SIDE, 2000, SIDE, ON_DEVICE},
    {"A overlaps B", 0, SIDE, 100, SIDE, 2000, SIDE, ON_DEVICE},
    {"C follows B at once", 0, SIDE, 1000, SIDE, 1000 + SIDE * SIDE, SIDE, ON_DEVICE},
    {"C precedes A at once", SIDE * SIDE, SIDE, 2000, SIDE, 0, SIDE, ON_DEVICE},
};

enum { SHARED_ELEMENTS = 3200 };

static struct matrix shared_matrix(const struct gemm *g, char *array, int64_t offset, int64_t ld)
{
    return (struct matrix){.dtype = g->dtype, .lines = SIDE, .length = SIDE, .ld = ld,
                           .first = array + (size_t)offset * element_bytes(g->dtype)};
}

/* Where the sharing is harmless the result must be right; everywhere it must be, bit for bit where
 * the CPU has to do it, what the CPU library makes of it. */
static void run_shared(struct sweep *sweep, struct gemm *g, const struct sharing *sharing)
{
    static char array[SHARED_ELEMENTS * 16], before[sizeof array], by_cpu[sizeof array];
    uint64_t seed = sweep_seed(sweep);
    struct matrix all = {.dtype = g->dtype, .lines = 1, .length = SHARED_ELEMENTS,
                         .ld = SHARED_ELEMENTS, .first = array};
    matrix_random(&all, &seed);
    struct matrix a = shared_matrix(g, before, sharing->a, sharing->lda);
    struct matrix b = shared_matrix(g, before, sharing->b, sharing->ldb);
    struct matrix c_before = shared_matrix(g, before, sharing->c, sharing->ldc);
    struct matrix c = shared_matrix(g, array, sharing->c, sharing->ldc);
    size_t size = element_bytes(g->dtype);
    g->a = array + (size_t)sharing->a * size;
    g->b = array + (size_t)sharing->b * size;
    g->c = array + (size_t)sharing->c * size;
    g->lda = sharing->lda, g->ldb = sharing->ldb, g->ldc = sharing->ldc;
    memcpy(before, array, sizeof array);
    gemm_call(g, original(g->dtype, g->interface));
    memcpy(by_cpu, array, sizeof array);
    memcpy(array, before, sizeof array);
    gemm_call(g, gemm_linked(g->dtype, g->interface));
    sweep->fates[sharing->fate]++;
    sweep->direct[sharing->fate] += g->interface != F77;
    if (sharing->fate == OVERLAPPING) {
        if (memcmp(array, by_cpu, sizeof array) != 0)
            sweep_fail(sweep, g, sharing->what);
        return;
    }
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            struct wanted wanted = product_element(g, &a, &b, &c_before, i, j);
            if (!element_is_near(&c, g->interface == ROWS, i, j, &wanted)) {
                sweep_fail(sweep, g, sharing->what);
                return;
            }
        }
}

static void sweep_shared(struct sweep *sweep, enum dtype dtype, enum interface interface)
{
    for (size_t i = 0; i < sizeof sharings / sizeof sharings[0]; i++)
        for (int beta = 0; beta < 2; beta++) {
            struct gemm g = {.dtype = dtype, .interface = interface, .transa = 'N',
                             .transb = 'T', .m = SIDE, .n = SIDE, .k = SIDE, .alpha = {1},
                             .beta = {beta * .5}};
            if (sweep_wants(sweep))
                run_shared(sweep, &g, &sharings[i]);
        }
}

void sweep_special(struct sweep *sweep)
{
    for (enum dtype t = S; t < DTYPES; t++)
        for (enum interface i = F77; i < INTERFACES; i++)
            if (sweep->types[t] && sweep->interfaces[i]) {
                sweep_spoilt(sweep, t, i);
                sweep_shared(sweep, t, i);
            }
}
