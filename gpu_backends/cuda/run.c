/* SPDX-License-Identifier: Apache-2.0
 *
 * One call on the device, from operands in host memory to outputs in host memory:
 *
 *   copy in ─► compute ─► copy back ─► wait
 *                 └─ meanwhile: the kept copies of in-out operands are filled
 *
 * The copy back is queued only when every kept copy is whole. Whatever fails, the stream is
 * brought to rest before the caller goes on, so that no late copy writes into its arrays.
 */
#include <string.h>
#include <time.h>

#include "gpu_backends/cuda/cuda.h"
#include "gpu_backends/kept.h"

static gs_compute *const compute_of[GS_OP_COUNT] = {
    [GS_OP_GEMM] = gs_cublas_gemm,   [GS_OP_GEMM3M] = gs_cublas_gemm,
    [GS_OP_SYMM] = gs_cublas_symm,   [GS_OP_HEMM] = gs_cublas_hemm,
    [GS_OP_SYRK] = gs_cublas_syrk,   [GS_OP_HERK] = gs_cublas_herk,
    [GS_OP_SYR2K] = gs_cublas_syr2k, [GS_OP_HER2K] = gs_cublas_her2k,
    [GS_OP_TRMM] = gs_cublas_trmm,   [GS_OP_TRSM] = gs_cublas_trsm,
    [GS_OP_GEMMT] = gs_cublas_gemmt, [GS_OP_GEMMTR] = gs_cublas_gemmt,
    [GS_OP_GEMM_BATCH] = gs_cublas_gemm,
    [GS_OP_GEMM_BATCH_STRIDED] = gs_cublas_gemm,
};

/* What one run holds; released in one place. */
struct work {
    struct gs_lane *lane;
    const struct gs_call *call;
    struct gs_run *run;
    struct gs_device_range range[GS_MAX_OPERANDS];
    struct gs_kept kept[GS_MAX_OPERANDS];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool mark(struct work *w, CUevent event)
{
    return gs_cu_ok(w->run, gs_cuda.cuEventRecord(event, w->lane->stream));
}

/* Kept buffers first: without host memory the device need not start. */
static bool take_kept(struct work *w)
{
    for (int i = 0; i < w->call->operand_count; i++) {
        const struct gs_operand *operand = &w->call->operand[i];
        if (operand->role == GS_INOUT &&
            !gs_kept_take(&w->kept[i], w->call->dtype, operand)) {
            w->run->reason = GS_MEM_HOST;
            return false;
        }
    }
    return true;
}

static bool copy_in(struct work *w)
{
    for (int i = 0; i < w->call->operand_count; i++)
        if (!gs_operand_to_device(w->lane, w->call->dtype, &w->call->operand[i], &w->range[i],
                                  w->run))
            return false;
    return true;
}

static void fill_kept(struct work *w)
{
    double begin = now();
    for (int i = 0; i < w->call->operand_count; i++)
        if (w->kept[i].bytes != NULL)
            gs_kept_fill(&w->kept[i], w->call->dtype, &w->call->operand[i]);
    w->run->kept = now() - begin;
}

static bool copy_out(struct work *w)
{
    for (int i = 0; i < w->call->operand_count; i++)
        if ((w->call->operand[i].role & GS_OUT) &&
            !gs_operand_to_host(w->lane, w->call->dtype, &w->call->operand[i], &w->range[i],
                                w->run))
            return false;
    return true;
}

static bool queue_all(struct work *w)
{
    struct gs_lane *lane = w->lane;
    if (!mark(w, lane->started) || !copy_in(w) || !mark(w, lane->copied_in) ||
        !compute_of[w->call->operation](lane, w->call, w->range, w->run) ||
        !mark(w, lane->computed))
        return false;
    fill_kept(w);
    return copy_out(w) && mark(w, lane->copied_out);
}

/* Waits until nothing is under way on the stream. A wait that fails is tried once more: it may
 * have reported an earlier failure. False when rest cannot be proved. */
static bool bring_to_rest(struct work *w)
{
    for (int attempt = 0; attempt < 2; attempt++)
        if (gs_cu_ok(w->run, gs_cuda.cuStreamSynchronize(w->lane->stream)))
            return true;
    return false;
}

static double elapsed(struct gs_run *run, CUevent from, CUevent to)
{
    float milliseconds = 0;
    return gs_cu_ok(run, gs_cuda.cuEventElapsedTime(&milliseconds, from, to))
               ? milliseconds * 1e-3
               : 0;
}

/* The result has arrived: a failure to read the clocks costs the times, not the result. */
static void read_times(struct work *w)
{
    struct gs_run clocks = {.reason = GS_NO_REASON};
    w->run->copy_in = elapsed(&clocks, w->lane->started, w->lane->copied_in);
    w->run->compute = elapsed(&clocks, w->lane->copied_in, w->lane->computed);
    w->run->copy_out = elapsed(&clocks, w->lane->computed, w->lane->copied_out);
}

static void release(struct work *w, bool at_rest)
{
    for (int i = 0; i < w->call->operand_count; i++) {
        const struct gs_operand *operand = &w->call->operand[i];
        if (w->run->reason != GS_NO_REASON)
            gs_kept_restore(&w->kept[i], w->call->dtype, operand);
        else if (operand->role & GS_OUT)
            gs_triangle_finish(w->call->dtype, operand, &w->range[i]);
        gs_kept_give(&w->kept[i]);
        gs_range_free(w->lane, &w->range[i], at_rest);
    }
    if (w->run->reason == GS_MEM_ALLOC_FAILED)
        gs_cuda_trim();
    if (at_rest)
        gs_lane_give(w->lane);
    else
        gs_lane_abandon(w->lane);
}

void gs_cuda_run(const struct gs_call *call, struct gs_run *run)
{
    struct work w = {.call = call, .run = run};
    memset(run, 0, sizeof *run);
    w.lane = gs_lane_take(run);
    if (w.lane == NULL)
        return;
    if (take_kept(&w))
        queue_all(&w);
    bool at_rest = bring_to_rest(&w);
    if (at_rest && run->reason == GS_NO_REASON)
        read_times(&w);
    if (!at_rest && run->reason != GS_STICKY)
        run->reason = GS_STICKY; /* copies of ours may still be queued there: use it no more */
    release(&w, at_rest);
}
