/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a call runs, and the one reason for it. Pure: everything it rests on is in the question.
 */
#pragma once

#include "policy/cost_model.h"
#include "policy/reasons.h"
#include "policy/settings.h"
#include "shim/call.h"

struct gs_question {
    const struct gs_call *call;
    enum gs_mode mode;
    double margin;                /* GPUSHIM_MIN_SPEEDUP */
    bool routine_selected;        /* GPUSHIM_ROUTINES */
    bool width_proven;            /* the CPU library's integer width was found */
    gs_reason unsupported;        /* what the backend has against the call: U301 U302 U304 P704 */
    enum gs_device_state device;
    gs_reason refusal;            /* L8xx when device is GS_REFUSED */
    gs_reason breaker;            /* E906, or M401 while backing off from a full device; or 0 */
    double memory_needed;         /* bytes on the device */
    double memory_allowed;        /* bytes; 0: not known yet */
    bool memory_by_user;          /* the limit is the user's: M403 instead of M401 */
    bool queue_full;              /* every stream is in use by other threads */
    bool startup_repaid;          /* the savings missed so far are worth a start-up */
    struct gs_prediction predicted;
};

/* Made by gs_decide and gs_verdict_fallen_back alone, so that none is without a reason. */
struct gs_verdict {
    bool gpu;
    gs_reason reason;
    gs_reason would;              /* observe, verify: what auto would have said; else 0 */
    bool would_gpu;
    bool wants_start;             /* the device should be started for this call (in auto: behind
                                     the caller's back) */
};

/* The first rule that objects names the reason, in this order: U307 (an illegal call is the CPU
 * library's to report); P702; S103 U303; U310; what the backend says (U301 U302 U304 P704); U305;
 * E906 or the back-off; L8xx; M401 M403; then the economic ones by counterfactual (T201 if the
 * call would win without its copies, else S102 if it would without fixed costs, else A604 if it
 * would at FP32 rate, else A601), then L807 G504 G503. force skips the economic ones. */
struct gs_verdict gs_decide(const struct gs_question *question);

/* The GPU was tried and gave up: the CPU runs, for this reason. */
struct gs_verdict gs_verdict_fallen_back(gs_reason reason);

/* Whether an output of the call shares memory with another operand: by address range, but for
 * separate rows of one array with the same leading dimension. */
bool gs_call_is_aliased(const struct gs_call *call);
