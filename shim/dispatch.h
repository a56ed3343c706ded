/* SPDX-License-Identifier: Apache-2.0
 *
 * From a described call to where it runs: decide, run, record. The stubs call these; the file to
 * read first is dispatch.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "call.h"
#include "gpu_backends/backend.h"
#include "policy/decide.h"
#include "thread.h"

struct gs_verify;

/* One decided call on its way, on the stub's stack. */
struct gs_attempt {
    struct gs_call call;
    struct gs_verdict verdict;
    struct gs_prediction predicted;
    bool tracked;                 /* false: passed on without a record (not ready, exiting) */
    int detail;
    struct gs_verify *verify;     /* the GPU's result, waiting for the CPU's; or NULL */
    uint64_t entry_ns, original_ns;
    double copy_in_s, compute_s, copy_out_s, kept_s;
    float difference;
};

/* False: inert (GPUSHIM_MODE=off, setuid). */
extern bool gs_active;

/* Work (multiply-adds) up to which a routine's calls are counted and passed on. */
extern double gs_floor_work[GS_ROUTINE_COUNT];

/* Decides and, if that is the verdict, runs the call on the GPU. True: done, frame closed, the
 * stub returns. False: the stub calls the original with the caller's own arguments, then
 * gs_leave. errno is kept. */
bool gs_dispatch(struct gs_frame *frame, struct gs_attempt *attempt, const struct gs_site *site)
    __attribute__((noinline));

/* Takes over what a run on the device measured. */
void gs_attempt_take(struct gs_attempt *attempt, const struct gs_run *run);

/* After the original: measures, compares (verify), records. */
void gs_dispatch_done(struct gs_attempt *attempt) __attribute__((noinline));
