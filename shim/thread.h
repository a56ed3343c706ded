/* SPDX-License-Identifier: Apache-2.0
 *
 * What each thread keeps: the guard against nested calls, and counters of the calls that were
 * too small to look at.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "call.h"

/* Calls that are counted, not timed: S101, A602, S103. */
enum gs_count { GS_COUNT_SMALL, GS_COUNT_NESTED, GS_COUNT_EMPTY, GS_COUNT_KINDS };

/* Written by the owning thread, read by whoever folds; never freed, reused by later threads. */
struct gs_counters {
    _Atomic uint64_t count[GS_ROUTINE_COUNT][GS_COUNT_KINDS];
    _Atomic uint64_t folded[GS_ROUTINE_COUNT][GS_COUNT_KINDS];
    _Atomic int owned;
    struct gs_counters *next;
};

/* The frame of a call being handled, on the caller's stack. */
struct gs_frame {
    const struct gs_frame *self;
    uint64_t serial;
    bool nested;
};

struct gs_thread {
    const struct gs_frame *guard; /* frame of the call being handled; may be stale, see below */
    uint64_t serial;              /* of the guard's frame */
    struct gs_counters *counters; /* NULL until the first counted call */
};

extern __thread struct gs_thread gs_thread __attribute__((tls_model("initial-exec")));

/* A call is nested when a CPU library makes it and the guard's frame is above it on the stack and
 * still the one that was opened. A non-local exit (R's xerbla longjmps, a C++ exception) skips
 * gs_frame_close. Such a guard is recognised by its place or by its overwritten contents, or at
 * the latest when the program itself calls: a large array that nobody filled may lie over the old
 * frame and show it whole. */
static inline void gs_frame_open(struct gs_frame *frame, bool from_library)
{
    struct gs_thread *thread = &gs_thread;
    const struct gs_frame *guard = thread->guard;
    frame->nested = from_library && guard != NULL && (uintptr_t)guard > (uintptr_t)frame &&
                    guard->self == guard && guard->serial == thread->serial;
    if (frame->nested)
        return;
    frame->self = frame;
    frame->serial = ++thread->serial;
    thread->guard = frame;
}

static inline void gs_frame_close(struct gs_frame *frame)
{
    if (frame->nested)
        return;
    frame->self = NULL;
    gs_thread.guard = NULL;
}

/* Gives this thread counters, from those of ended threads if there are any. Returns NULL when
 * there is no memory: the call is then not counted. */
struct gs_counters *gs_counters_claim(void) __attribute__((cold, noinline));

static inline void gs_count_small(unsigned routine, enum gs_count kind)
{
    struct gs_counters *counters = gs_thread.counters;
    if (__builtin_expect(counters == NULL, 0)) {
        counters = gs_counters_claim();
        if (counters == NULL)
            return;
    }
    /* One writer: a plain increment, not a locked one. */
    _Atomic uint64_t *count = &counters->count[routine][kind];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Moves what counters have gathered since the last fold into the audit: those of this thread, or
 * of all threads. */
void gs_fold_own(void);
void gs_fold_all(void);

/* Sum of the counts of all threads that have not been folded yet. */
uint64_t gs_unfolded_calls(void);

/* In a forked child: forget what the parent's threads had counted. */
void gs_counters_after_fork(void);
