/* SPDX-License-Identifier: Apache-2.0
 *
 * When to leave the device alone: for good after a number of errors, for a while when its memory
 * is full.
 */
#pragma once

#include <stdint.h>

#include "policy/reasons.h"

/* E906 when open, M401 while backing off from a full device, else GS_NO_REASON. */
gs_reason gs_breaker_check(uint64_t now_ns);

/* Notes a failed run. E902 opens the breaker at once, E901 E903 after limit errors (limit 0:
 * never); M402 backs off, 0.1 s at first, doubling up to 5 s, and does not count; others are
 * ignored. */
void gs_breaker_note(gs_reason reason, uint64_t now_ns, int64_t limit);

/* A run that succeeded ends the back-off's doubling. Errors stay counted. */
void gs_breaker_success(void);

/* Closed again (tests; a forked child). */
void gs_breaker_reset(void);
