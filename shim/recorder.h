/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a finished call into the audit and, when asked, to stderr.
 */
#pragma once

#include "dispatch.h"

/* Records the attempt as it ended now_ns; on_gpu: the result in the caller's arrays is the
 * device's; cpu_s: measured time inside the original, 0 on the GPU. */
void gs_record_call(const struct gs_attempt *attempt, uint64_t now_ns, bool on_gpu, double cpu_s);

/* The one line at exit (GPUSHIM_VERBOSE >= 1), written to stderr. */
void gs_record_exit_line(void);
