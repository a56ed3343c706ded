/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of small rules; the first that objects wins.
 */
#include "policy/decide.h"

/* A rule returns its objection to the GPU, or GS_NO_REASON. */
typedef gs_reason rule(const struct gs_question *q);

static gs_reason routine_excluded(const struct gs_question *q)
{
    return q->routine_selected ? GS_NO_REASON : GS_ROUTINE_EXCLUDED;
}

/* U307 first: an illegal call is the CPU library's to report whatever its sizes are. */
static gs_reason bad_argument(const struct gs_question *q)
{
    return q->call->objection == GS_BAD_ARGUMENT ? GS_BAD_ARGUMENT : GS_NO_REASON;
}

static gs_reason empty_or_unmapped(const struct gs_question *q)
{
    return (gs_reason)q->call->objection;
}

static gs_reason width_not_proven(const struct gs_question *q)
{
    return q->width_proven ? GS_NO_REASON : GS_ABI;
}

static gs_reason backend_objects(const struct gs_question *q)
{
    return q->unsupported;
}

/* Blocks of rows of one array, as LAPACK updates them: with the same leading dimension and y a
 * whole number of elements behind x, row r of y's columns lies in rows r + shift mod ld of x's
 * array. */
static bool are_separate_rows(const struct gs_call *call, const struct gs_operand *x,
                              const struct gs_operand *y)
{
    int64_t element = (int64_t)gs_element_bytes(call->dtype);
    int64_t bytes = (int64_t)((uintptr_t)y->host - (uintptr_t)x->host);
    if (x->ld != y->ld || x->ld <= 0 || bytes % element != 0)
        return false;
    int64_t first = bytes / element % x->ld;
    first += first < 0 ? x->ld : 0;
    return x->rows <= first && y->rows <= x->ld - first;
}

static bool overlap(const struct gs_call *call, const struct gs_operand *x,
                    const struct gs_operand *y)
{
    if (are_separate_rows(call, x, y))
        return false;
    uint64_t element = gs_element_bytes(call->dtype);
    unsigned __int128 x_bytes = ((unsigned __int128)(x->cols - 1) * (uint64_t)x->ld +
                                 (uint64_t)x->rows) * element;
    unsigned __int128 y_bytes = ((unsigned __int128)(y->cols - 1) * (uint64_t)y->ld +
                                 (uint64_t)y->rows) * element;
    uintptr_t x0 = (uintptr_t)x->host, y0 = (uintptr_t)y->host;
    return x0 < y0 + y_bytes && y0 < x0 + x_bytes;
}

bool gs_call_is_aliased(const struct gs_call *call)
{
    for (int i = 0; i < call->operand_count; i++)
        for (int j = 0; j < call->operand_count; j++)
            if (i != j && (call->operand[i].role & GS_OUT) &&
                overlap(call, &call->operand[i], &call->operand[j]))
                return true;
    return false;
}

static gs_reason aliased(const struct gs_question *q)
{
    return gs_call_is_aliased(q->call) ? GS_ALIASED : GS_NO_REASON;
}

static gs_reason breaker(const struct gs_question *q)
{
    return q->breaker;
}

static gs_reason device_refused(const struct gs_question *q)
{
    return q->device == GS_REFUSED ? q->refusal : GS_NO_REASON;
}

static gs_reason memory(const struct gs_question *q)
{
    if (q->memory_allowed == 0 || q->memory_needed <= q->memory_allowed)
        return GS_NO_REASON;
    return q->memory_by_user ? GS_MEM_USER_LIMIT : GS_MEM_WOULD_NOT_FIT;
}

/* By counterfactual, so that the code is a statement about the prediction. */
static gs_reason economic(const struct gs_question *q)
{
    const struct gs_prediction *p = &q->predicted;
    if (p->cpu >= q->margin * p->gpu)
        return GS_NO_REASON;
    if (p->cpu >= q->margin * (p->gpu - p->copy_in - p->copy_out))
        return GS_TRANSFER_DOMINATES;
    if (p->cpu >= q->margin * (p->gpu - p->fixed))
        return GS_SIZE_BELOW_CROSSOVER;
    if (p->cpu >= q->margin * (p->gpu - p->compute + p->compute_as_f32))
        return GS_ALGO_FP64_RATE;
    /* Neither alone: small work under copies and launches, or a device slower than the CPU. */
    return p->cpu >= q->margin * p->compute ? GS_SIZE_BELOW_CROSSOVER : GS_ALGO_CPU_FASTER;
}

static gs_reason not_started(const struct gs_question *q)
{
    if (q->device == GS_STARTING)
        return GS_NOT_READY;
    if (q->device != GS_COLD || (q->mode == GS_MODE_OBSERVE && q->startup_repaid))
        return GS_NO_REASON; /* observe never starts a device: by now auto would have */
    return GS_GRAN_STARTUP;
}

static gs_reason contention(const struct gs_question *q)
{
    return q->queue_full ? GS_GRAN_CONTENTION : GS_NO_REASON;
}

static rule *const cannot_rules[] = {bad_argument,     routine_excluded, empty_or_unmapped,
                                     width_not_proven, backend_objects,  aliased,
                                     breaker,          device_refused,   memory};
static rule *const economic_rules[] = {economic, not_started, contention};

static gs_reason first_objection(rule *const *rules, size_t count, const struct gs_question *q)
{
    for (size_t i = 0; i < count; i++) {
        gs_reason reason = rules[i](q);
        if (reason != GS_NO_REASON)
            return reason;
    }
    return GS_NO_REASON;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct gs_verdict on_cpu(gs_reason reason)
{
    return (struct gs_verdict){.gpu = false, .reason = reason};
}

static struct gs_verdict on_gpu(gs_reason reason)
{
    return (struct gs_verdict){.gpu = true, .reason = reason};
}

struct gs_verdict gs_verdict_fallen_back(gs_reason reason)
{
    return on_cpu(reason);
}

static struct gs_verdict as_auto(const struct gs_question *q)
{
    gs_reason reason = first_objection(economic_rules, COUNT(economic_rules), q);
    if (reason == GS_NO_REASON)
        return on_gpu(GS_PREDICTED_FASTER);
    struct gs_verdict verdict = on_cpu(reason);
    verdict.wants_start = reason == GS_GRAN_STARTUP && q->startup_repaid;
    return verdict;
}

struct gs_verdict gs_decide(const struct gs_question *q)
{
    struct gs_verdict verdict;
    gs_reason cannot = first_objection(cannot_rules, COUNT(cannot_rules), q);
    struct gs_verdict automatic =
        cannot == GS_NO_REASON ? as_auto(q) : on_cpu(cannot);

    switch (q->mode) {
    case GS_MODE_FORCE:
        if (cannot != GS_NO_REASON)
            return automatic;
        verdict = on_gpu(GS_FORCED);
        verdict.wants_start = q->device != GS_READY;
        return verdict;
    case GS_MODE_OBSERVE:
        verdict = on_cpu(GS_OBSERVE);
        break;
    case GS_MODE_VERIFY:
        /* What cannot run on the device is not verified, and says so. */
        if (cannot != GS_NO_REASON)
            return automatic;
        verdict = on_cpu(GS_VERIFY_KEEPS_CPU);
        verdict.wants_start = q->device != GS_READY;
        break;
    case GS_MODE_OFF:
        return on_cpu(GS_OFF);
    default:
        return automatic;
    }
    verdict.would = automatic.reason;
    verdict.would_gpu = automatic.gpu;
    return verdict;
}
