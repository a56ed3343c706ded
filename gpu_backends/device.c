/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's life: cold, starting, ready, refused; the background start-up; fork and exit.
 * State changes are compare-and-swap on one word, so that a child forked in any state can tell
 * which it was and nobody waits on a lock that a vanished thread holds.
 */
#include "gpu_backends/backend.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A device whose memory is taken by somebody else is asked again, but not at every call. */
#define RETRY_SECONDS 2.0

static const struct gs_backend *const backend = &gs_cuda_backend;

static _Atomic int state = GS_COLD;
static _Atomic int refusal, refusal_detail;
static _Atomic bool looked, exiting;
static _Atomic uint64_t retry_ns; /* no start-up before this: the last one found no memory */
static _Atomic int runs_under_way;
static _Atomic pid_t owner; /* process whose start-up and runs these are; a child waits for none */
static _Atomic bool waited; /* of several exit handlers the first one waits */
static struct gs_device_facts facts;
static struct gs_device_options start_options;

static void sleep_milliseconds(long milliseconds)
{
    struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum gs_device_state gs_device_state(void)
{
    return (enum gs_device_state)atomic_load(&state);
}

gs_reason gs_device_refusal(int *detail)
{
    *detail = atomic_load(&refusal_detail);
    return (gs_reason)atomic_load(&refusal);
}

const struct gs_device_facts *gs_device_facts(void)
{
    return &facts;
}

void gs_device_refuse(gs_reason reason, int detail)
{
    atomic_store(&refusal, (int)reason);
    atomic_store(&refusal_detail, detail);
    atomic_store(&state, GS_REFUSED);
}

void gs_device_look(const struct gs_device_options *options)
{
    if (atomic_exchange(&looked, true))
        return;
    gs_reason reason = backend->look(options);
    if (reason != GS_NO_REASON && atomic_load(&state) == GS_COLD)
        gs_device_refuse(reason, 0);
}

static void at_exit(void)
{
    gs_device_exit(2);
}

/* Exit handlers run in reverse order of registration, and CUDA registers its own while it starts:
 * ours is registered again after each step, to run before them, so that the driver does not end
 * under a start-up. */
static bool stop_asked(void)
{
    atexit(at_exit);
    return atomic_load(&exiting);
}

static void start_now(void)
{
    int detail = 0;
    double begin = now();
    atexit(at_exit);
    gs_reason reason = backend->open(&start_options, &facts, &detail, stop_asked);
    facts.startup = now() - begin;
    atexit(at_exit);
    if (reason != GS_NO_REASON && atomic_load(&exiting))
        reason = GS_SHUTTING_DOWN;
    if (reason == GS_NO_REASON) {
        atomic_store(&state, GS_READY);
    } else if (reason == GS_MEM_ALLOC_FAILED) {
        atomic_store(&retry_ns, (uint64_t)((now() + RETRY_SECONDS) * 1e9));
        atomic_store(&state, GS_COLD);
    } else {
        gs_device_refuse(reason, detail);
    }
}

static void *start_thread(void *unused)
{
    (void)unused;
    start_now();
    return NULL;
}

/* Signals of the program are not for our thread: block all before it exists. */
static bool start_in_background(void)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, start_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

void gs_device_start(const struct gs_device_options *options, bool wait)
{
    int expected = GS_COLD;
    atomic_store(&owner, getpid());
    if (!atomic_load(&exiting) && now() * 1e9 >= (double)atomic_load(&retry_ns) &&
        atomic_compare_exchange_strong(&state, &expected, GS_STARTING)) {
        start_options = *options;
        start_options.warm_up = !wait; /* nobody waits for it in the background */
        if (wait)
            start_now();
        else if (!start_in_background())
            atomic_store(&state, GS_COLD); /* no thread to be had now: another call will ask */
    }
    while (wait && atomic_load(&state) == GS_STARTING)
        sleep_milliseconds(1);
}

void gs_device_after_fork(void)
{
    atomic_store(&runs_under_way, 0);
    if (atomic_load(&state) == GS_STARTING || atomic_load(&state) == GS_READY) {
        facts = (struct gs_device_facts){0}; /* the parent's */
        gs_device_refuse(GS_FORKED_CHILD, 0);
    }
}

bool gs_device_enter(void)
{
    atomic_fetch_add(&runs_under_way, 1);
    if (!atomic_load(&exiting))
        return true;
    gs_device_leave();
    return false;
}

void gs_device_leave(void)
{
    atomic_fetch_sub(&runs_under_way, 1);
}

void gs_device_exit(double seconds)
{
    double deadline = now() + seconds;
    bool ours = atomic_load(&owner) == getpid() && !atomic_exchange(&waited, true);
    atomic_store(&exiting, true);
    while (ours && (atomic_load(&state) == GS_STARTING || atomic_load(&runs_under_way) > 0) &&
           now() < deadline)
        sleep_milliseconds(1);
    if (atomic_load(&state) != GS_REFUSED)
        gs_device_refuse(GS_SHUTTING_DOWN, 0);
}
