/* SPDX-License-Identifier: Apache-2.0 */
#include "gemm_data.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BEFORE = 256, SURROUNDINGS = 0xff };

struct arena arena_make(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = (size + BEFORE + page - 1) / page * page;
    unsigned char *map =
        mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + whole, page, PROT_NONE) != 0) {
        perror("arena");
        exit(2);
    }
    return (struct arena){map, whole};
}

size_t matrix_span(const struct matrix *x)
{
    if (x->lines == 0 || x->length == 0)
        return 0;
    return (size_t)((x->lines - 1) * x->ld + x->length) * element_bytes(x->dtype);
}

struct matrix matrix_place(const struct arena *arena, enum dtype dtype, bool row_major,
                           int64_t rows, int64_t cols, int64_t extra_ld)
{
    struct matrix x = {
        .dtype = dtype,
        .lines = row_major ? rows : cols,
        .length = row_major ? cols : rows,
    };
    x.ld = (x.length > 0 ? x.length : 1) + extra_ld;
    size_t span = matrix_span(&x);
    if (span + BEFORE > arena->size) {
        fprintf(stderr, "arena too small\n");
        exit(2);
    }
    x.first = arena->bytes + arena->size - span;
    memset((unsigned char *)x.first - BEFORE, SURROUNDINGS, span + BEFORE);
    return x;
}

static bool all_surroundings(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != SURROUNDINGS)
            return false;
    return true;
}

bool matrix_surroundings_intact(const struct arena *arena, const struct matrix *x)
{
    size_t size = element_bytes(x->dtype), gap = (size_t)(x->ld - x->length) * size;
    const unsigned char *first = x->first, *end = arena->bytes + arena->size;
    if (!all_surroundings(first - BEFORE, BEFORE))
        return false;
    if (matrix_span(x) == 0)
        return true;
    for (int64_t line = 0; line < x->lines - 1; line++)
        if (!all_surroundings(first + (size_t)(line * x->ld + x->length) * size, gap))
            return false;
    return first + matrix_span(x) == end;
}

double random_unit(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(int64_t)(*seed >> 40) / 0x1p23 - 1;
}

static void set_at(const struct matrix *x, int64_t at, double re, double im)
{
    switch (x->dtype) {
    case S: ((float *)x->first)[at] = (float)re; break;
    case D: ((double *)x->first)[at] = re; break;
    case C:
        ((float *)x->first)[2 * at] = (float)re;
        ((float *)x->first)[2 * at + 1] = (float)im;
        break;
    default:
        ((double *)x->first)[2 * at] = re;
        ((double *)x->first)[2 * at + 1] = im;
    }
}

void matrix_random(const struct matrix *x, uint64_t *seed)
{
    for (int64_t line = 0; line < x->lines; line++)
        for (int64_t i = 0; i < x->length; i++) {
            double re = random_unit(seed), im = random_unit(seed);
            set_at(x, line * x->ld + i, re, im);
        }
}

void matrix_fill(const struct matrix *x, double re, double im)
{
    for (int64_t line = 0; line < x->lines; line++)
        for (int64_t i = 0; i < x->length; i++)
            set_at(x, line * x->ld + i, re, im);
}

void matrix_spoil(const struct matrix *x)
{
    for (int64_t line = 0; line < x->lines; line++)
        for (int64_t i = 0; i < x->length; i++) {
            double value = (line + i) % 2 ? (double)INFINITY : (double)NAN;
            set_at(x, line * x->ld + i, value, value);
        }
}

static int64_t place_of(const struct matrix *x, bool row_major, int64_t row, int64_t column)
{
    return row_major ? row * x->ld + column : column * x->ld + row;
}

void matrix_set(const struct matrix *x, bool row_major, int64_t row, int64_t column, double re,
                double im)
{
    set_at(x, place_of(x, row_major, row, column), re, im);
}

void matrix_get(const struct matrix *x, bool row_major, int64_t row, int64_t column,
                long double value[2])
{
    int64_t at = place_of(x, row_major, row, column);
    value[1] = 0;
    switch (x->dtype) {
    case S: value[0] = ((const float *)x->first)[at]; break;
    case D: value[0] = ((const double *)x->first)[at]; break;
    case C:
        value[0] = ((const float *)x->first)[2 * at];
        value[1] = ((const float *)x->first)[2 * at + 1];
        break;
    default:
        value[0] = ((const double *)x->first)[2 * at];
        value[1] = ((const double *)x->first)[2 * at + 1];
    }
}

/* op(X)(i, j) */
static void operand_get(const struct matrix *x, bool row_major, char trans, int64_t i, int64_t j,
                        long double value[2])
{
    char flag = trans & ~0x20; /* upper case */
    if (flag == 'N') {
        matrix_get(x, row_major, i, j, value);
        return;
    }
    matrix_get(x, row_major, j, i, value);
    if (flag == 'C')
        value[1] = -value[1];
}

static long double size_of(const long double x[2])
{
    return fabsl(x[0]) + fabsl(x[1]);
}

static void add_product(long double sum[2], const long double x[2], const long double y[2])
{
    sum[0] += x[0] * y[0] - x[1] * y[1];
    sum[1] += x[0] * y[1] + x[1] * y[0];
}

struct wanted product_element(const struct gemm *g, const struct matrix *a,
                              const struct matrix *b, const struct matrix *c_before, int64_t i,
                              int64_t j)
{
    bool row_major = g->interface == ROWS;
    long double alpha[2] = {g->alpha[0], g->alpha[1]}, beta[2] = {g->beta[0], g->beta[1]};
    long double x[2], y[2], sum[2] = {0, 0}, sizes = 0;
    struct wanted wanted = {{0, 0}, 0};
    if (size_of(alpha) != 0) {
        for (int64_t p = 0; p < g->k; p++) {
            operand_get(a, row_major, g->transa, i, p, x);
            operand_get(b, row_major, g->transb, p, j, y);
            add_product(sum, x, y);
            sizes += size_of(x) * size_of(y);
        }
        add_product(wanted.value, alpha, sum);
        wanted.bound = size_of(alpha) * sizes;
    }
    if (size_of(beta) != 0) {
        matrix_get(c_before, row_major, i, j, x);
        add_product(wanted.value, beta, x);
        wanted.bound += size_of(beta) * size_of(x);
    }
    wanted.bound *= (is_single(g->dtype) ? FLT_EPSILON : DBL_EPSILON) *
                    (double)(is_complex(g->dtype) ? 2 * g->k + 4 : g->k + 2);
    return wanted;
}

bool element_is_near(const struct matrix *c, bool row_major, int64_t i, int64_t j,
                     const struct wanted *wanted)
{
    long double value[2];
    matrix_get(c, row_major, i, j, value);
    return fabsl(value[0] - wanted->value[0]) <= wanted->bound &&
           fabsl(value[1] - wanted->value[1]) <= wanted->bound;
}
