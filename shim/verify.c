/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_backends/backend.h"

struct gs_verify {
    struct gs_call shadow;        /* the call with private outputs */
    void *output[GS_MAX_OPERANDS];
    double largest_output;        /* of the in-out operands before the call */
};

static double element(const struct gs_call *call, const struct gs_operand *x, int64_t i, int64_t j,
                      int part)
{
    int64_t at = i + j * x->ld;
    switch (call->dtype) {
    case GS_F32: return ((const float *)x->host)[at];
    case GS_F64: return ((const double *)x->host)[at];
    case GS_C32: return ((const float *)x->host)[2 * at + part];
    default: return ((const double *)x->host)[2 * at + part];
    }
}

static int parts(const struct gs_call *call)
{
    return gs_is_complex(call->dtype) ? 2 : 1;
}

static double largest(const struct gs_call *call, const struct gs_operand *x)
{
    double most = 0;
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int part = 0; part < parts(call); part++) {
                double value = fabs(element(call, x, i, j, part));
                most = value > most ? value : most;
            }
    return most;
}

/* 2-norm of row (by_row) or column index of x. */
static double norm(const struct gs_call *call, const struct gs_operand *x, int64_t index,
                   bool by_row)
{
    double sum = 0;
    int64_t length = by_row ? x->cols : x->rows;
    for (int64_t l = 0; l < length; l++)
        for (int part = 0; part < parts(call); part++) {
            double value = by_row ? element(call, x, index, l, part)
                                  : element(call, x, l, index, part);
            sum += value * value;
        }
    return sqrt(sum);
}

static double modulus(const struct gs_call *call, const union gs_scalar *x)
{
    return call->dtype == GS_F32 || call->dtype == GS_C32 ? hypot(x->f32[0], x->f32[1])
                                                          : hypot(x->f64[0], x->f64[1]);
}

/* Private copy of an output, packed, with the old contents where they count. */
static bool make_output(struct gs_verify *verify, const struct gs_call *call, int i)
{
    const struct gs_operand *x = &call->operand[i];
    size_t size = gs_element_bytes(call->dtype), column = (size_t)x->rows * size;
    char *copy = malloc(column * (size_t)x->cols);
    if (copy == NULL)
        return false;
    if (x->role & GS_IN) {
        for (int64_t j = 0; j < x->cols; j++)
            memcpy(copy + (size_t)j * column,
                   (const char *)x->host + (size_t)j * (size_t)x->ld * size, column);
        verify->largest_output = largest(call, x);
    } else {
        memset(copy, 0xff, column * (size_t)x->cols); /* NaN: an unwritten element shows */
    }
    verify->output[i] = copy;
    verify->shadow.operand[i].host = copy;
    verify->shadow.operand[i].ld = x->rows;
    return true;
}

static void discard(struct gs_attempt *attempt)
{
    for (int i = 0; i < GS_MAX_OPERANDS; i++)
        free(attempt->verify->output[i]);
    free(attempt->verify);
    attempt->verify = NULL;
}

void gs_verify_begin(struct gs_attempt *attempt)
{
    const struct gs_call *call = &attempt->call;
    struct gs_run run = {.reason = GS_MEM_HOST};
    struct gs_verify *verify = calloc(1, sizeof *verify);
    attempt->verify = verify;
    if (verify == NULL) {
        attempt->verdict = gs_verdict_fallen_back(GS_MEM_HOST);
        return;
    }
    verify->shadow = *call;
    bool ready = true;
    for (int i = 0; i < call->operand_count && ready; i++)
        if (call->operand[i].role & GS_OUT)
            ready = make_output(verify, call, i);
    if (ready && gs_device_enter()) {
        gs_cuda_backend.run(&verify->shadow, &run);
        gs_device_leave();
    }
    attempt->copy_in_s = run.copy_in;
    attempt->compute_s = run.compute;
    attempt->copy_out_s = run.copy_out;
    attempt->kept_s = run.kept;
    attempt->detail = run.detail;
    if (run.reason == GS_NO_REASON)
        return;
    attempt->verdict = gs_verdict_fallen_back(run.reason);
    discard(attempt);
}

/* |x - y| / bound; infinite where only one side is NaN, or where NaN or infinite inputs leave no
 * bound and the sides differ. */
static double ratio(double x, double y, double bound)
{
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    double r = fabs(x - y) / bound;
    return isnan(r) ? (double)INFINITY : r;
}

/* Whether a complex element holds a NaN or an infinity. Which of its parts shows that varies among
 * CPU libraries already: (inf + i) (1 + i) has a NaN or two infinities. */
static bool is_spoilt(const struct gs_call *call, const struct gs_operand *x, int64_t i, int64_t j)
{
    return gs_is_complex(call->dtype) && !(isfinite(element(call, x, i, j, 0)) &&
                                           isfinite(element(call, x, i, j, 1)));
}

/* Largest difference over the bound; NaN when there is no memory to tell. For a product each side is within
 * (k + 2) eps (|alpha| |a_i| |b_j| + |beta| |c|), the norms being those of row i of op(A) and
 * column j of op(B) (Higham, Accuracy and Stability of Numerical Algorithms, 3.5, with
 * Cauchy-Schwarz for |A||B|); complex arithmetic adds a factor below 4. */
static double compare_product(const struct gs_call *call, const struct gs_verify *verify)
{
    const struct gs_operand *cpu = &call->operand[2], *gpu = &verify->shadow.operand[2];
    bool single = call->dtype == GS_F32 || call->dtype == GS_C32;
    double unit = (single ? FLT_EPSILON : DBL_EPSILON) * (double)(call->k + 2) *
                  (gs_is_complex(call->dtype) ? 4 : 1);
    double alpha = modulus(call, &call->alpha), worst = 0;
    double rest = modulus(call, &call->beta) * verify->largest_output + (single ? FLT_MIN : DBL_MIN);
    double *a_norm = malloc((size_t)call->m * sizeof *a_norm);
    if (a_norm == NULL)
        return NAN;
    for (int64_t i = 0; i < call->m; i++)
        a_norm[i] = norm(call, &call->operand[0], i, call->transa == 'N');
    for (int64_t j = 0; j < call->n; j++) {
        double b_norm = norm(call, &call->operand[1], j, call->transb != 'N');
        for (int64_t i = 0; i < call->m; i++) {
            double bound = 2 * unit * (alpha * a_norm[i] * b_norm + rest);
            if (is_spoilt(call, cpu, i, j) && is_spoilt(call, gpu, i, j))
                continue;
            for (int part = 0; part < parts(call); part++)
                worst = fmax(worst, ratio(element(call, cpu, i, j, part),
                                          element(call, gpu, i, j, part), bound));
        }
    }
    free(a_norm);
    return worst;
}

void gs_verify_end(struct gs_attempt *attempt)
{
    double difference = compare_product(&attempt->call, attempt->verify);
    attempt->difference = (float)difference;
    if (difference > 1)
        attempt->verdict = gs_verdict_fallen_back(GS_VERIFY_MISMATCH);
    discard(attempt);
}
