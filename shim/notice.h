/* SPDX-License-Identifier: Apache-2.0
 *
 * "Preloaded, but nothing intercepted": a static or renamed BLAS, RTLD_DEEPBIND, or a program
 * that asks libraries for their functions itself goes past any preload, silently.
 */
#pragma once

#include <stdint.h>

/* At the exit of a process without decided calls. Writes one line to stderr if no call was seen
 * at all, a BLAS is mapped, and GPUSHIM_VERBOSE is 1 or more (as under gpushim run). */
void gs_notice_nothing_intercepted(uint64_t counted_calls);
