/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/breaker.h"

#include <stdatomic.h>
#include <stdbool.h>

#define FIRST_BACK_OFF_NS UINT64_C(100000000)
#define LONGEST_BACK_OFF_NS UINT64_C(5000000000)

static _Atomic bool open;
static _Atomic int64_t errors;
static _Atomic uint64_t back_off_until_ns, back_off_ns;

gs_reason gs_breaker_check(uint64_t now_ns)
{
    if (atomic_load_explicit(&open, memory_order_relaxed))
        return GS_BREAKER_OPEN;
    return now_ns < atomic_load_explicit(&back_off_until_ns, memory_order_relaxed)
               ? GS_MEM_WOULD_NOT_FIT
               : GS_NO_REASON;
}

static void back_off(uint64_t now_ns)
{
    uint64_t pause = atomic_load(&back_off_ns);
    pause = pause == 0 ? FIRST_BACK_OFF_NS : 2 * pause;
    if (pause > LONGEST_BACK_OFF_NS)
        pause = LONGEST_BACK_OFF_NS;
    atomic_store(&back_off_ns, pause);
    atomic_store(&back_off_until_ns, now_ns + pause);
}

void gs_breaker_note(gs_reason reason, uint64_t now_ns, int64_t limit)
{
    if (reason == GS_MEM_ALLOC_FAILED)
        back_off(now_ns);
    if (reason != GS_STATUS && reason != GS_STICKY && reason != GS_TIMEOUT)
        return;
    int64_t count = atomic_fetch_add(&errors, 1) + 1;
    if (limit > 0 && (reason == GS_STICKY || count >= limit))
        atomic_store(&open, true);
}

void gs_breaker_success(void)
{
    if (atomic_load_explicit(&back_off_ns, memory_order_relaxed) != 0)
        atomic_store(&back_off_ns, 0);
}

void gs_breaker_reset(void)
{
    atomic_store(&open, false);
    atomic_store(&errors, 0);
    atomic_store(&back_off_ns, 0);
    atomic_store(&back_off_until_ns, 0);
}
