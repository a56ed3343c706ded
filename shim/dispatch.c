/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of one call: guard (in the stub) -> decide -> run -> record.
 */
#include "dispatch.h"

#include <fenv.h>
#include <math.h>

#include "originals.h"
#include "policy/breaker.h"
#include "policy/quiet.h"
#include "policy/start.h"
#include "process.h"
#include "recorder.h"
#include "verify.h"

double gs_floor_work[GS_ROUTINE_COUNT];

static const struct gs_backend *const backend = &gs_cuda_backend;

/* Everything the verdict rests on, read once. */
static void ask(struct gs_question *question, const struct gs_attempt *attempt)
{
    const struct gs_call *call = &attempt->call;
    const struct gs_settings *settings = &gs_process.settings;
    const struct gs_device_facts *facts = gs_device_facts();
    int detail;
    *question = (struct gs_question){
        .call = call,
        .mode = (enum gs_mode)settings->mode,
        .margin = settings->min_speedup,
        .routine_selected = gs_process.routine_selected[gs_call_routine(call)],
        .width_proven = call->site->proven,
        .unsupported = backend->objection(call),
        .device = gs_device_state(),
        .refusal = gs_device_refusal(&detail),
        .breaker = gs_breaker_check(attempt->entry_ns),
        .memory_needed = backend->memory_needed(call),
        .memory_by_user = settings->mem_limit.fraction == 0,
        .startup_repaid = gs_start_is_repaid(gs_process_machine()->startup),
        .predicted = attempt->predicted,
    };
    if (question->device == GS_READY) {
        question->memory_allowed = facts->memory_allowed;
        question->queue_full = settings->mode == GS_MODE_AUTO && backend->is_busy();
    }
}

static bool needs_device(const struct gs_verdict *verdict)
{
    return verdict->gpu || verdict->reason == GS_VERIFY_KEEPS_CPU;
}

/* The verdict, and the start-up it may ask for: waited for in force and verify, in auto behind the
 * caller's back. */
static void decide(struct gs_attempt *attempt)
{
    struct gs_question question;
    attempt->predicted = gs_predict(gs_process_machine(), &attempt->call);
    ask(&question, attempt);
    attempt->verdict = gs_decide(&question);
    if (attempt->verdict.reason == GS_GRAN_STARTUP)
        gs_device_look(&gs_process.device_options); /* is there a driver at all? */
    if (attempt->verdict.reason == GS_GRAN_STARTUP || attempt->verdict.would == GS_GRAN_STARTUP)
        gs_start_missed(attempt->predicted.cpu - attempt->predicted.gpu);
    if (attempt->verdict.wants_start) {
        uint64_t before = gs_now_ns();
        gs_process_start_device(attempt->call.site, question.mode != GS_MODE_AUTO);
        attempt->entry_ns += gs_now_ns() - before; /* start-up is reported apart from the calls */
    }
    if (gs_device_state() != question.device) {
        gs_process_note_device();
        ask(&question, attempt);
        attempt->verdict = gs_decide(&question);
    }
    if (needs_device(&attempt->verdict) && gs_device_state() != GS_READY) {
        /* Waited for, and not there: its memory is taken by somebody else. */
        attempt->verdict = gs_verdict_fallen_back(GS_MEM_ALLOC_FAILED);
        gs_breaker_note(GS_MEM_ALLOC_FAILED, attempt->entry_ns, 0);
    }
}

void gs_attempt_take(struct gs_attempt *attempt, const struct gs_run *run)
{
    attempt->copy_in_s = run->copy_in;
    attempt->compute_s = run->compute;
    attempt->copy_out_s = run->copy_out;
    attempt->kept_s = run->kept;
    attempt->detail = run->detail;
}

static void run_on_device(struct gs_attempt *attempt)
{
    struct gs_run run = {.reason = GS_SHUTTING_DOWN};
    if (gs_device_enter()) {
        backend->run(&attempt->call, &run);
        gs_device_leave();
    }
    gs_attempt_take(attempt, &run);
    if (run.reason == GS_NO_REASON) {
        gs_breaker_success();
        return;
    }
    attempt->verdict = gs_verdict_fallen_back(run.reason);
    gs_breaker_note(run.reason, gs_now_ns(), gs_process.settings.error_limit);
}

static void finish_on_gpu(struct gs_attempt *attempt)
{
    uint64_t now_ns = gs_now_ns();
    struct gs_gpu_times times = {
        .copy_in = attempt->copy_in_s,
        .compute = attempt->compute_s,
        .copy_out = attempt->copy_out_s,
        .total = (double)(now_ns - attempt->entry_ns) * 1e-9,
    };
    gs_learn_gpu(gs_process_machine(), &attempt->call, &times);
    gs_record_call(attempt, now_ns, true, 0);
}

bool gs_dispatch(struct gs_frame *frame, struct gs_attempt *attempt, const struct gs_site *site)
{
    struct gs_quiet quiet;
    fexcept_t flags; /* raised by our arithmetic, they would look like the program's */
    gs_quiet_begin(&quiet);
    fegetexceptflag(&flags, FE_ALL_EXCEPT);
    attempt->entry_ns = gs_now_ns();
    attempt->call.site = site;
    attempt->detail = 0;
    attempt->verify = NULL;
    attempt->difference = NAN;
    attempt->copy_in_s = attempt->compute_s = attempt->copy_out_s = attempt->kept_s = 0;
    attempt->tracked = gs_process_ready();
    if (attempt->tracked) {
        gs_fold_own();
        decide(attempt);
        fesetexceptflag(&flags, FE_ALL_EXCEPT);
        if (attempt->verdict.gpu)
            run_on_device(attempt);
        else if (attempt->verdict.reason == GS_VERIFY_KEEPS_CPU)
            gs_verify_begin(attempt);
    }
    bool done = attempt->tracked && attempt->verdict.gpu;
    if (done) {
        fegetexceptflag(&flags, FE_ALL_EXCEPT);
        finish_on_gpu(attempt);
        fesetexceptflag(&flags, FE_ALL_EXCEPT);
        gs_frame_close(frame);
    }
    gs_quiet_end(&quiet);
    attempt->original_ns = gs_now_ns();
    return done;
}

void gs_dispatch_done(struct gs_attempt *attempt)
{
    struct gs_quiet quiet;
    fexcept_t flags;
    uint64_t now_ns = gs_now_ns();
    gs_quiet_begin(&quiet);
    fegetexceptflag(&flags, FE_ALL_EXCEPT);
    double seconds = (double)(now_ns - attempt->original_ns) * 1e-9;
    if (attempt->tracked && gs_process_owns_audit()) {
        if (attempt->call.objection == GS_NO_REASON) {
            gs_learn_cpu(gs_process_machine(), &attempt->call, seconds);
            gs_process_update_floor(attempt->call.operation, attempt->call.dtype);
        }
        if (attempt->verify != NULL)
            gs_verify_end(attempt);
        gs_record_call(attempt, now_ns, false, seconds);
    }
    fesetexceptflag(&flags, FE_ALL_EXCEPT);
    gs_quiet_end(&quiet);
}
