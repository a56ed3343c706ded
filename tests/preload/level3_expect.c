/* SPDX-License-Identifier: Apache-2.0 */
#include "level3_expect.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef long double complex exact;

static char upper(char flag)
{
    return flag >= 'a' ? (char)(flag - 'a' + 'A') : flag;
}

static bool is_left(const struct level3 *l)
{
    return upper(l->side) == 'L';
}

static bool in_triangle(const struct level3 *l, int64_t i, int64_t j)
{
    return upper(l->uplo) == 'U' ? i <= j : i >= j;
}

static void set_op(char trans, int64_t rows, int64_t cols, int64_t *out_rows, int64_t *out_cols)
{
    bool is_n = upper(trans) == 'N';
    *out_rows = is_n ? rows : cols;
    *out_cols = is_n ? cols : rows;
}

struct shapes level3_shapes(const struct level3 *l)
{
    struct shapes s = {0};
    int64_t m = writes_triangle(l->family) ? l->n : l->m;
    s.c_rows = m, s.c_cols = l->n;
    if (has_side(l->family)) {
        s.a_rows = s.a_cols = is_left(l) ? l->m : l->n;
        s.b_rows = l->m, s.b_cols = l->n;
    } else {
        set_op(l->transa, m, l->k, &s.a_rows, &s.a_cols);
        if (is_rank_k(l->family))
            s.b_rows = s.a_rows, s.b_cols = s.a_cols;
        else
            set_op(l->transb, l->k, l->n, &s.b_rows, &s.b_cols);
    }
    return s;
}

bool is_written(const struct level3 *l, int64_t i, int64_t j)
{
    return !writes_triangle(l->family) || in_triangle(l, i, j);
}

static exact value_of(const double x[2])
{
    return (long double)x[0] + (long double)x[1] * _Complex_I;
}

/* alpha and beta as the routine takes them: float in single precision. */
static exact rounded(const struct level3 *l, const double x[2])
{
    double single[2] = {(double)(float)x[0], (double)(float)x[1]};
    return value_of(is_single(l->dtype) ? single : x);
}

static long double size_of(exact x)
{
    return fabsl(creall(x)) + fabsl(cimagl(x));
}

static bool row_major(const struct level3 *l)
{
    return l->interface == ROWS;
}

static exact get(const struct level3 *l, const struct matrix *x, int64_t i, int64_t j)
{
    long double value[2];
    matrix_get(x, row_major(l), i, j, value);
    return value[0] + value[1] * _Complex_I;
}

/* op(X)(i, j) */
static exact op(const struct level3 *l, const struct matrix *x, char trans, int64_t i, int64_t j)
{
    char flag = upper(trans);
    exact value = flag == 'N' ? get(l, x, i, j) : get(l, x, j, i);
    return flag == 'C' ? conjl(value) : value;
}

/* The whole matrix that one triangle of A stands for. */
static exact symmetric(const struct level3 *l, const struct matrix *a, int64_t i, int64_t j)
{
    bool hermitian = l->family == HEMM, given = in_triangle(l, i, j);
    exact value = given ? get(l, a, i, j) : get(l, a, j, i);
    if (hermitian && i == j)
        return creall(value);
    return hermitian && !given ? conjl(value) : value;
}

static exact triangular(const struct level3 *l, const struct matrix *a, int64_t i, int64_t j)
{
    if (i == j && upper(l->diag) == 'U')
        return 1;
    return in_triangle(l, i, j) ? get(l, a, i, j) : 0;
}

static exact op_triangular(const struct level3 *l, const struct matrix *a, int64_t i, int64_t j)
{
    char flag = upper(l->transa);
    exact value = flag == 'N' ? triangular(l, a, i, j) : triangular(l, a, j, i);
    return flag == 'C' ? conjl(value) : value;
}

struct sum {
    exact value;
    long double sizes;
};

static void add(struct sum *sum, exact scalar, exact x, exact y)
{
    sum->value += scalar * x * y;
    sum->sizes += size_of(scalar) * size_of(x) * size_of(y);
}

/* Term p of element (i, j), but for alpha. */
static void add_rank_k(struct sum *sum, const struct level3 *l, const struct operands *x,
                       exact alpha, int64_t i, int64_t j, int64_t p)
{
    char trans = l->transa;
    bool hermitian = is_hermitian(l->family);
    const struct matrix *b = is_rank_2k(l->family) ? &x->b : &x->a;
    exact right = op(l, b, trans, j, p);
    add(sum, alpha, op(l, &x->a, trans, i, p), hermitian ? conjl(right) : right);
    if (!is_rank_2k(l->family))
        return;
    right = op(l, &x->a, trans, j, p);
    add(sum, hermitian ? conjl(alpha) : alpha, op(l, b, trans, i, p),
        hermitian ? conjl(right) : right);
}

static void add_sided(struct sum *sum, const struct level3 *l, const struct operands *x,
                      exact alpha, int64_t i, int64_t j, int64_t p)
{
    bool triangle = is_triangular(l->family), left = is_left(l);
    /* trsm: the solution times the triangle, to be compared with B. */
    const struct matrix *b = l->family == TRSM ? &x->c : triangle ? &x->before : &x->b;
    int64_t row = left ? i : p, col = left ? p : j;
    exact a = triangle ? op_triangular(l, &x->a, row, col) : symmetric(l, &x->a, row, col);
    if (triangle && a == 0)
        return;
    add(sum, alpha, a, left ? get(l, b, p, j) : get(l, b, i, p));
}

static int64_t term_count(const struct level3 *l)
{
    return !has_side(l->family) ? l->k : is_left(l) ? l->m : l->n;
}

static struct sum product(const struct level3 *l, const struct operands *x, exact alpha,
                          int64_t i, int64_t j)
{
    struct sum sum = {0, 0};
    for (int64_t p = 0; alpha != 0 && p < term_count(l); p++)
        if (is_rank_k(l->family))
            add_rank_k(&sum, l, x, alpha, i, j, p);
        else if (has_side(l->family))
            add_sided(&sum, l, x, alpha, i, j, p);
        else
            add(&sum, alpha, op(l, &x->a, l->transa, i, p), op(l, &x->b, l->transb, p, j));
    return sum;
}

/* Roundings per unit of size: a complex product of k terms is two real ones of 2 k. gemm3m adds
 * real and imaginary parts before it multiplies. */
static long double bound_of(const struct level3 *l, long double sizes)
{
    long double terms = (long double)term_count(l) * (is_rank_2k(l->family) ? 2 : 1) + 2;
    long double factor = (is_complex(l->dtype) ? 2 : 1) * (l->family == GEMM3M ? 4 : 1);
    long double eps = is_single(l->dtype) ? FLT_EPSILON : DBL_EPSILON;
    return factor * terms * eps * sizes;
}

bool is_quick_return(const struct level3 *l)
{
    bool nothing = (l->alpha[0] == 0 && l->alpha[1] == 0) || term_count(l) == 0;
    return nothing && !is_triangular(l->family) && l->beta[0] == 1 && l->beta[1] == 0;
}

static bool is_near(exact got, exact wanted, long double bound)
{
    return fabsl(creall(got) - creall(wanted)) <= bound &&
           fabsl(cimagl(got) - cimagl(wanted)) <= bound;
}

static const char *say(const struct level3 *l, int64_t i, int64_t j, exact got, exact wanted,
                       long double bound)
{
    static _Thread_local char text[240];
    snprintf(text, sizeof text, "C(%lld,%lld) %s %.12Lg%+.12Lgi, not %.12Lg%+.12Lgi +- %Lg",
             (long long)i, (long long)j, l->family == TRSM ? "gives" : "is", creall(got),
             cimagl(got), creall(wanted), cimagl(wanted), bound);
    return text;
}

static const char *solution_objection(const struct level3 *l, const struct operands *x, int64_t i,
                                      int64_t j)
{
    exact alpha = rounded(l, l->alpha), right = 0;
    struct sum sum = product(l, x, 1, i, j);
    if (alpha == 0) /* B is not read */
        return get(l, &x->c, i, j) == 0 ? NULL : say(l, i, j, get(l, &x->c, i, j), 0, 0);
    right = alpha * get(l, &x->before, i, j);
    long double bound = bound_of(l, sum.sizes + size_of(right));
    return is_near(sum.value, right, bound) ? NULL : say(l, i, j, sum.value, right, bound);
}

const char *level3_objection(const struct level3 *l, const struct operands *x, int64_t i,
                             int64_t j)
{
    exact beta = rounded(l, l->beta), got = get(l, &x->c, i, j);
    bool real_diagonal = i == j && (l->family == HERK || l->family == HER2K);
    if (l->family == TRSM)
        return solution_objection(l, x, i, j);
    struct sum sum = product(l, x, rounded(l, l->alpha), i, j);
    if (!is_triangular(l->family) && beta != 0) {
        exact old = get(l, &x->before, i, j);
        if (real_diagonal && !is_quick_return(l))
            old = creall(old);
        add(&sum, beta, old, 1);
    }
    if (real_diagonal && !is_quick_return(l)) {
        sum.value = creall(sum.value);
        if (cimagl(got) != 0)
            return say(l, i, j, got, sum.value, 0);
    }
    long double bound = bound_of(l, sum.sizes);
    return is_near(got, sum.value, bound) ? NULL : say(l, i, j, got, sum.value, bound);
}
