/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "gpu_backends/backend.h"

struct gs_verify {
    struct gs_call shadow;        /* the call with private outputs */
    void *output[GS_MAX_OPERANDS];
    double largest_output;        /* of the in-out operands before the call */
};

/* Private copy of an output, packed, with the old contents where they count: the other triangle is
 * somebody else's, who may be writing to it. */
static bool make_output(struct gs_verify *verify, const struct gs_call *call, int i)
{
    const struct gs_operand *x = &call->operand[i];
    size_t size = gs_element_bytes(call->dtype), column = (size_t)x->rows * size;
    char *copy = malloc(column * (size_t)x->cols);
    if (copy == NULL)
        return false;
    memset(copy, 0xff, column * (size_t)x->cols); /* NaN: an unwritten element shows */
    if (x->role & GS_IN) {
        for (int64_t j = 0; j < x->cols; j++) {
            size_t first = (size_t)gs_first_row(x, j), rows = (size_t)gs_end_row(x, j) - first;
            memcpy(copy + (size_t)j * column + first * size,
                   (const char *)x->host + ((size_t)j * (size_t)x->ld + first) * size, rows * size);
        }
        verify->largest_output = gs_largest(call, x);
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
    gs_attempt_take(attempt, &run);
    if (run.reason == GS_NO_REASON)
        return;
    attempt->verdict = gs_verdict_fallen_back(run.reason);
    discard(attempt);
}

void gs_verify_end(struct gs_attempt *attempt)
{
    double difference = gs_compare(&attempt->call, &attempt->verify->shadow,
                                   attempt->verify->largest_output);
    attempt->difference = (float)difference;
    if (difference > 1)
        attempt->verdict = gs_verdict_fallen_back(GS_VERIFY_MISMATCH);
    discard(attempt);
}
