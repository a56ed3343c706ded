/* SPDX-License-Identifier: Apache-2.0
 *
 * level3_driver: one case. What a routine must not read is NaN; what it must not write is compared
 * byte for byte: inputs, gaps, surroundings, the other triangle of C.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "level3_sweep.h"

static bool is_zero(const double x[2])
{
    return x[0] == 0 && x[1] == 0;
}

static bool is_upper(const struct level3 *l)
{
    return l->uplo == 'U' || l->uplo == 'u';
}

static bool is_unit(const struct level3 *l)
{
    return l->diag == 'U' || l->diag == 'u';
}

static void scale(const struct matrix *x, bool rows, int64_t i, int64_t j, long double factor)
{
    long double value[2];
    matrix_get(x, rows, i, j, value);
    matrix_set(x, rows, i, j, (double)(value[0] * factor), (double)(value[1] * factor));
}

/* Large on the diagonal: solutions stay as small as their right-hand sides. */
static void make_solvable(const struct level3 *l, const struct matrix *a, int64_t n)
{
    bool rows = l->interface == ROWS;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            long double value[2];
            matrix_get(a, rows, i, j, value);
            if (i == j)
                matrix_set(a, rows, i, j, value[0] < 0 ? -1.5 : 1.25,
                           is_complex(l->dtype) ? (double)value[1] : 0);
            else
                scale(a, rows, i, j, 1 / (long double)n);
        }
}

/* The triangle that is not referenced, and a diagonal of ones, are NaN. */
static void spoil_unreferenced(const struct level3 *l, const struct matrix *a, int64_t n)
{
    bool rows = l->interface == ROWS;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if ((is_upper(l) ? i > j : i < j) ||
                (i == j && is_triangular(l->family) && is_unit(l)))
                matrix_set(a, rows, i, j, (double)NAN, (double)NAN);
}

/* Of a Hermitian matrix the imaginary part of the diagonal counts as zero, whatever it is. */
static void spoil_diagonal(const struct level3 *l, const struct matrix *x, int64_t n)
{
    bool rows = l->interface == ROWS;
    for (int64_t i = 0; i < n; i++) {
        long double value[2];
        matrix_get(x, rows, i, i, value);
        matrix_set(x, rows, i, i, (double)value[0], 1e6 * (double)value[1] + 1e5);
    }
}

static void fill_inputs(const struct level3 *l, const struct operands *x,
                        const struct shapes *shapes, uint64_t *seed)
{
    if (is_zero(l->alpha)) { /* neither is read */
        matrix_spoil(&x->a);
        matrix_spoil(&x->b);
        return;
    }
    matrix_random(&x->a, seed);
    matrix_random(&x->b, seed);
    if (!has_side(l->family))
        return;
    if (is_triangular(l->family))
        make_solvable(l, &x->a, shapes->a_rows);
    if (l->family == HEMM)
        spoil_diagonal(l, &x->a, shapes->a_rows);
    spoil_unreferenced(l, &x->a, shapes->a_rows);
}

static void fill_output(const struct level3 *l, const struct matrix *c, uint64_t *seed)
{
    bool rows = l->interface == ROWS;
    bool is_input = is_triangular(l->family) ? !is_zero(l->alpha) : !is_zero(l->beta);
    if (!is_input) {
        matrix_spoil(c); /* need not be set */
        return;
    }
    matrix_random(c, seed);
    if (l->family == HERK || l->family == HER2K)
        spoil_diagonal(l, c, l->n);
    for (int64_t i = 0; writes_triangle(l->family) && i < l->n; i++)
        for (int64_t j = 0; j < l->n; j++)
            if (!is_written(l, i, j))
                matrix_set(c, rows, i, j, (double)NAN, (double)NAN);
}

static const void *place(const struct matrix *x, bool rows, int64_t i, int64_t j)
{
    int64_t at = rows ? i * x->ld + j : j * x->ld + i;
    return (const char *)x->first + (size_t)at * element_bytes(x->dtype);
}

/* Of the largest results a sample: around the diagonal, at the edges, and some of the rest. */
static bool is_checked(const struct level3 *l, const struct shapes *s, int64_t i, int64_t j)
{
    bool large = s->c_rows * s->c_cols * (has_side(l->family) ? s->a_rows : l->k) > 300000;
    return !large || i == j || i == 0 || j == 0 || i == s->c_rows - 1 || j == s->c_cols - 1 ||
           i % 256 == 0 || j % 256 == 0 || (31 * i + 17 * j) % 23 == 0;
}

static void check_output(struct sweep *sweep, const struct level3 *l, const struct operands *x,
                         const struct shapes *shapes)
{
    bool rows = l->interface == ROWS;
    for (int64_t i = 0; i < shapes->c_rows; i++)
        for (int64_t j = 0; j < shapes->c_cols; j++) {
            const char *objection = NULL;
            if (!is_written(l, i, j))
                objection = memcmp(place(&x->c, rows, i, j), place(&x->before, rows, i, j),
                                   element_bytes(l->dtype)) != 0
                                ? "the other triangle of C was written to"
                                : NULL;
            else if (is_checked(l, shapes, i, j))
                objection = level3_objection(l, x, i, j);
            if (objection != NULL) {
                sweep_fail(sweep, l, objection);
                return;
            }
        }
}

/* Makes the call and checks all but the elements of C. */
static void call(struct sweep *sweep, const struct level3 *l, const struct operands *x)
{
    void *a_before = copy_of(x->a.first, matrix_span(&x->a));
    void *b_before = copy_of(x->b.first, matrix_span(&x->b));
    level3_call(l, level3_linked(l->family, l->dtype, l->interface));
    if (memcmp(x->a.first, a_before, matrix_span(&x->a)) != 0)
        sweep_fail(sweep, l, "A was written to");
    if (memcmp(x->b.first, b_before, matrix_span(&x->b)) != 0)
        sweep_fail(sweep, l, "B was written to");
    if (!matrix_surroundings_intact(&sweep->a, &x->a) ||
        !matrix_surroundings_intact(&sweep->b, &x->b))
        sweep_fail(sweep, l, "bytes around A or B were written to");
    if (!matrix_surroundings_intact(&sweep->c, &x->c))
        sweep_fail(sweep, l, "bytes around C were written to");
    free(a_before);
    free(b_before);
}

static bool is_empty(const struct level3 *l, const struct shapes *s)
{
    return s->c_rows == 0 || s->c_cols == 0 || (!has_side(l->family) && l->k == 0) ||
           is_zero(l->alpha);
}

void sweep_case(struct sweep *sweep, struct level3 *l, int64_t gap)
{
    bool rows = l->interface == ROWS;
    uint64_t seed = sweep_seed(sweep);
    struct shapes s = level3_shapes(l);
    enum dtype t = l->dtype;
    struct operands x = {
        .a = matrix_place(&sweep->a, t, rows, s.a_rows, s.a_cols, gap),
        .b = matrix_place(&sweep->b, t, rows, s.b_rows, s.b_cols, 2 * gap),
        .c = matrix_place(&sweep->c, t, rows, s.c_rows, s.c_cols, gap),
    };
    fill_inputs(l, &x, &s, &seed);
    fill_output(l, &x.c, &seed);
    l->a = x.a.first, l->b = x.b.first, l->c = x.c.first;
    l->lda = x.a.ld, l->ldb = x.b.ld, l->ldc = x.c.ld;
    x.before = x.c;
    x.before.first = copy_of(x.c.first, matrix_span(&x.c));
    call(sweep, l, &x);
    check_output(sweep, l, &x, &s);
    free(x.before.first);
    sweep->fates[l->family][t][is_empty(l, &s) ? EMPTY : ON_DEVICE]++;
}
