/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/start.h"

#include <stdatomic.h>
#include <stdint.h>

static _Atomic uint64_t missed_ns;

void gs_start_missed(double seconds)
{
    if (seconds > 0)
        atomic_fetch_add_explicit(&missed_ns, (uint64_t)(seconds * 1e9), memory_order_relaxed);
}

bool gs_start_is_repaid(double startup)
{
    return (double)atomic_load_explicit(&missed_ns, memory_order_relaxed) * 1e-9 >= startup;
}

void gs_start_reset(void)
{
    atomic_store(&missed_ns, 0);
}
