/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/quiet.h"

#include <errno.h>
#include <pthread.h>

void gs_quiet_begin(struct gs_quiet *quiet)
{
    sigset_t all;
    quiet->saved_errno = errno;
    sigfillset(&all);
    /* A crash of the program's own must reach the program's own handler. */
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &all, &quiet->signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel);
}

void gs_quiet_end(const struct gs_quiet *quiet)
{
    int cancel;
    pthread_setcancelstate(quiet->cancel, &cancel);
    pthread_sigmask(SIG_SETMASK, &quiet->signals, NULL);
    errno = quiet->saved_errno;
}
