/* SPDX-License-Identifier: Apache-2.0
 *
 * A stretch of our own code in somebody else's thread: signals but those of a crash wait, the
 * thread cannot be cancelled, and errno is as it was afterwards. Otherwise a cancelled thread, or a
 * handler that calls BLAS or exits, would leave a state half made or meet a lock of its own thread.
 */
#pragma once

#include <signal.h>

struct gs_quiet {
    sigset_t signals;
    int cancel;
    int saved_errno;
};

/* May be nested. Two system calls each. */
void gs_quiet_begin(struct gs_quiet *quiet);
void gs_quiet_end(const struct gs_quiet *quiet);
