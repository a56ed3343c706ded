/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef double complex element;

static bool is_single(const struct gs_call *call)
{
    return call->dtype == GS_F32 || call->dtype == GS_C32;
}

static element stored(const struct gs_call *call, const struct gs_operand *x, int64_t i, int64_t j)
{
    int64_t at = i + j * x->ld;
    switch (call->dtype) {
    case GS_F32: return ((const float *)x->host)[at];
    case GS_F64: return ((const double *)x->host)[at];
    case GS_C32: return ((const float complex *)x->host)[at];
    default: return ((const double complex *)x->host)[at];
    }
}

/* Element of the matrix that an operand stands for: the other triangle is its mirror image in
 * symmetric and Hermitian matrices, zero in triangular ones. */
static element meant(const struct gs_call *call, const struct gs_operand *x, int64_t i, int64_t j)
{
    bool triangular = call->operation == GS_OP_TRMM || call->operation == GS_OP_TRSM;
    bool given = i >= gs_first_row(x, j) && i < gs_end_row(x, j);
    if (x->part != GS_FULL && triangular && i == j && call->diag == 'U')
        return 1;
    if (x->hermitian && i == j)
        return creal(stored(call, x, i, j));
    if (given)
        return stored(call, x, i, j);
    if (triangular)
        return 0;
    return x->hermitian ? conj(stored(call, x, j, i)) : stored(call, x, j, i);
}

/* One factor of a product: op of an operand. */
struct factor {
    const struct gs_operand *operand;
    bool flip;
};

static element at(const struct gs_call *call, const struct factor *f, int64_t i, int64_t j)
{
    return f->flip ? meant(call, f->operand, j, i) : meant(call, f->operand, i, j);
}

/* 2-norms of the rows of the left factor (count x k) or the columns of the right one. */
static double *norms(const struct gs_call *call, const struct factor *f, int64_t count,
                     bool of_rows)
{
    double *norm = malloc((size_t)count * sizeof *norm);
    for (int64_t i = 0; norm != NULL && i < count; i++) {
        double sum = 0;
        for (int64_t l = 0; l < call->k; l++) {
            element value = of_rows ? at(call, f, i, l) : at(call, f, l, i);
            sum += creal(value) * creal(value) + cimag(value) * cimag(value);
        }
        norm[i] = sqrt(sum);
    }
    return norm;
}

/* The two factors whose product the call computes; the second term of a rank-2k update has them
 * the other way round, with the same norms up to their order. */
static void factors(const struct gs_call *call, struct factor *left, struct factor *right)
{
    const struct gs_operand *x = call->operand;
    bool flip_a = call->transa == 'T' || call->transa == 'C';
    bool flip_b = call->transb == 'T' || call->transb == 'C';
    switch (call->operation) {
    case GS_OP_SYMM:
    case GS_OP_HEMM:
    case GS_OP_TRMM:
        *left = call->side == 'L' ? (struct factor){&x[0], flip_a} : (struct factor){&x[1], false};
        *right = call->side == 'L' ? (struct factor){&x[1], false}
                                   : (struct factor){&x[0], flip_a};
        return;
    case GS_OP_SYRK:
    case GS_OP_HERK:
        *left = (struct factor){&x[0], flip_a};
        *right = (struct factor){&x[0], !flip_a};
        return;
    case GS_OP_SYR2K:
    case GS_OP_HER2K:
        *left = (struct factor){&x[0], flip_a};
        *right = (struct factor){&x[1], !flip_a};
        return;
    default:
        *left = (struct factor){&x[0], flip_a};
        *right = (struct factor){&x[1], flip_b};
    }
}

static double unit(const struct gs_call *call)
{
    return (is_single(call) ? FLT_EPSILON : DBL_EPSILON) * (double)(call->k + 2) *
           (gs_is_complex(call->dtype) ? 4 : 1);
}

static double modulus(const struct gs_call *call, const union gs_scalar *x)
{
    return is_single(call) ? hypot(x->f32[0], x->f32[1]) : hypot(x->f64[0], x->f64[1]);
}

static double part_ratio(double x, double y, double bound)
{
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    double r = fabs(x - y) / bound;
    return isnan(r) ? (double)INFINITY : r;
}

static bool is_spoilt(element x)
{
    return !isfinite(creal(x)) || !isfinite(cimag(x));
}

static bool is_nan(element x)
{
    return isnan(creal(x)) || isnan(cimag(x));
}

/* Complex elements that hold NaN or infinity are compared as a whole: which part shows it differs
 * among CPU libraries already ((inf + i) (1 + i) has a NaN or two infinities). */
static double ratio(element x, element y, double bound)
{
    if (cimag(x) != 0 && cimag(y) != 0 && is_spoilt(x) && is_spoilt(y))
        return 0;
    return fmax(part_ratio(creal(x), creal(y), bound), part_ratio(cimag(x), cimag(y), bound));
}

static const struct gs_operand *output_of(const struct gs_call *call)
{
    return &call->operand[call->operand_count - 1];
}

static double compare_product(const struct gs_call *call, const struct gs_call *other,
                              double largest_output)
{
    const struct gs_operand *cpu = output_of(call), *gpu = output_of(other);
    struct factor left, right;
    bool two_terms = call->operation == GS_OP_SYR2K || call->operation == GS_OP_HER2K;
    double scale = 2 * unit(call), alpha = modulus(call, &call->alpha), worst = 0;
    double rest = modulus(call, &call->beta) * largest_output +
                  (is_single(call) ? FLT_MIN : DBL_MIN);
    /* trmm overwrites a factor: its old contents are bounded by their largest element. */
    bool overwritten = call->operation == GS_OP_TRMM;
    factors(call, &left, &right);
    double *x = norms(call, &left, call->m, true), *y = norms(call, &right, call->n, false);
    double old = largest_output * sqrt((double)call->k) * (gs_is_complex(call->dtype) ? 1.5 : 1);
    for (int64_t j = 0; x != NULL && y != NULL && j < cpu->cols; j++)
        for (int64_t i = gs_first_row(cpu, j); i < gs_end_row(cpu, j); i++) {
            double xi = overwritten && call->side == 'R' ? old : x[i];
            double yj = overwritten && call->side == 'L' ? old : y[j];
            double product = xi * yj;
            if (two_terms)
                product += x[j] * y[i];
            worst = fmax(worst, ratio(stored(call, cpu, i, j), stored(call, gpu, i, j),
                                      scale * (alpha * product + rest)));
        }
    bool told = x != NULL && y != NULL;
    free(x);
    free(y);
    return told ? worst : (double)NAN;
}

/* Row or column s of the solution. */
static element solution(const struct gs_call *call, const struct gs_operand *x, int64_t l,
                        int64_t s)
{
    return call->side == 'L' ? stored(call, x, l, s) : stored(call, x, s, l);
}

static element coefficient(const struct gs_call *call, int64_t i, int64_t l)
{
    struct factor a = {&call->operand[0], call->transa != 'N'};
    element value = call->side == 'L' ? at(call, &a, i, l) : at(call, &a, l, i);
    return call->transa == 'C' ? conj(value) : value;
}

static double compare_solution(const struct gs_call *call, const struct gs_call *other)
{
    const struct gs_operand *cpu = output_of(call), *gpu = output_of(other);
    int64_t systems = call->side == 'L' ? call->n : call->m;
    int64_t step = systems > 64 ? systems / 64 : 1;
    double worst = 0;
    for (int64_t s = 0; s < systems; s += step)
        for (int64_t i = 0; i < call->k; i++) {
            element residual = 0;
            double bound = is_single(call) ? FLT_MIN : DBL_MIN;
            bool both_nan = false;
            for (int64_t l = 0; l < call->k; l++) {
                element a = coefficient(call, i, l);
                element x = solution(call, cpu, l, s), y = solution(call, gpu, l, s);
                if (a == 0 || (x == y && is_spoilt(x)))
                    continue;
                both_nan = both_nan || (is_nan(x) && is_nan(y));
                residual += a * (x - y);
                bound += 2 * unit(call) * cabs(a) * (cabs(x) + cabs(y));
            }
            if (!both_nan)
                worst = fmax(worst, ratio(residual, 0, bound));
        }
    return worst;
}

double gs_largest(const struct gs_call *call, const struct gs_operand *x)
{
    double most = 0;
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = gs_first_row(x, j); i < gs_end_row(x, j); i++) {
            element value = stored(call, x, i, j);
            most = fmax(most, fmax(fabs(creal(value)), fabs(cimag(value))));
        }
    return most;
}

double gs_compare(const struct gs_call *call, const struct gs_call *other, double largest_output)
{
    return call->operation == GS_OP_TRSM ? compare_solution(call, other)
                                         : compare_product(call, other, largest_output);
}
