/* SPDX-License-Identifier: Apache-2.0
 *
 * Thread-local counters: claimed at a thread's first counted call, given back when it ends. The
 * list only grows and is changed by compare-and-swap, so that a fork in any state is harmless.
 */
#include "thread.h"

#include <pthread.h>
#include <stdlib.h>

#include "policy/audit.h"
#include "policy/reasons.h"
#include "process.h"

__thread struct gs_thread gs_thread __attribute__((tls_model("initial-exec")));

static struct gs_counters *_Atomic all_counters;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;
static bool thread_end_ready;

static const gs_reason reason_of_count[GS_COUNT_KINDS] = {
    [GS_COUNT_SMALL] = GS_SIZE_BELOW_FLOOR,
    [GS_COUNT_NESTED] = GS_ALGO_NESTED,
    [GS_COUNT_EMPTY] = GS_SIZE_EMPTY,
};

static void fold(struct gs_counters *counters)
{
    if (!gs_process_owns_audit())
        return; /* kept in the counters until there is an audit of this process */
    for (unsigned routine = 0; routine < GS_ROUTINE_COUNT; routine++)
        for (unsigned kind = 0; kind < GS_COUNT_KINDS; kind++) {
            uint64_t now = atomic_load(&counters->count[routine][kind]);
            if (now == atomic_load(&counters->folded[routine][kind]))
                continue;
            /* Two folders may meet: each adds what it moved forward, so that the sum is exact. */
            uint64_t before = atomic_exchange(&counters->folded[routine][kind], now);
            if (now != before)
                gs_audit_count((uint16_t)routine, 0, (uint16_t)reason_of_count[kind], 0,
                               now - before, 0, 0, 0, 0);
        }
}

static void on_thread_end(void *value)
{
    struct gs_counters *counters = value;
    fold(counters);
    gs_thread.counters = NULL;
    atomic_store(&counters->owned, 0);
}

static void make_thread_end(void)
{
    thread_end_ready = pthread_key_create(&thread_end, on_thread_end) == 0;
}

static struct gs_counters *reuse(void)
{
    for (struct gs_counters *c = atomic_load(&all_counters); c != NULL; c = c->next) {
        int expected = 0;
        if (atomic_compare_exchange_strong(&c->owned, &expected, 1))
            return c;
    }
    return NULL;
}

struct gs_counters *gs_counters_claim(void)
{
    pthread_once(&thread_end_once, make_thread_end);
    struct gs_counters *counters = reuse();
    if (counters == NULL) {
        counters = calloc(1, sizeof *counters);
        if (counters == NULL)
            return NULL;
        atomic_store(&counters->owned, 1);
        counters->next = atomic_load(&all_counters);
        while (!atomic_compare_exchange_weak(&all_counters, &counters->next, counters))
            ;
    }
    gs_thread.counters = counters;
    if (thread_end_ready)
        pthread_setspecific(thread_end, counters);
    return counters;
}

void gs_fold_own(void)
{
    if (gs_thread.counters != NULL)
        fold(gs_thread.counters);
}

void gs_fold_all(void)
{
    for (struct gs_counters *c = atomic_load(&all_counters); c != NULL; c = c->next)
        fold(c);
}

uint64_t gs_unfolded_calls(void)
{
    uint64_t sum = 0;
    for (struct gs_counters *c = atomic_load(&all_counters); c != NULL; c = c->next)
        for (unsigned routine = 0; routine < GS_ROUTINE_COUNT; routine++)
            for (unsigned kind = 0; kind < GS_COUNT_KINDS; kind++)
                sum += atomic_load(&c->count[routine][kind]) -
                       atomic_load(&c->folded[routine][kind]);
    return sum;
}

void gs_counters_after_fork(void)
{
    for (struct gs_counters *c = atomic_load(&all_counters); c != NULL; c = c->next) {
        for (unsigned routine = 0; routine < GS_ROUTINE_COUNT; routine++)
            for (unsigned kind = 0; kind < GS_COUNT_KINDS; kind++)
                atomic_store(&c->folded[routine][kind],
                             atomic_load(&c->count[routine][kind]));
        atomic_store(&c->owned, c == gs_thread.counters);
    }
}
