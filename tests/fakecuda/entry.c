/* SPDX-License-Identifier: Apache-2.0
 *
 * What every entry point does first and last: the lock, the counters, injected failures, the life
 * of the process (before cuInit, after fork, at exit) and the state of the context.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

/* How each library says what the doubles have to say in general. */
static const struct {
    int not_initialized, invalid_context, ended, broken, injected;
} words[] = {
#define CUDA 0
    [CUDA] = { CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_DEINITIALIZED,
               0 /* the error that broke it */, CUDA_ERROR_UNKNOWN },
#define CUBLAS 1
    [CUBLAS] = { CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED,
                 CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_EXECUTION_FAILED,
                 CUBLAS_STATUS_EXECUTION_FAILED },
};

static const struct {
    const char *name;
    int library;
} entries[ENTRY_COUNT] = {
#define GS_CUDA_FN(library, need, result, name, parameters) { #name, library },
#include "../../gpu_backends/cuda/api.def"
#undef GS_CUDA_FN
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong calls, failures;
static unsigned long calls_of[ENTRY_COUNT];
static atomic_int starter; /* process that called cuInit */
static int owner;          /* process that the counters belong to */
static bool started, ended, loaded;

void lock_all(void)
{
    pthread_mutex_lock(&lock);
}

void unlock_all(void)
{
    pthread_mutex_unlock(&lock);
}

unsigned long fakecuda_calls(void)
{
    return atomic_load(&calls);
}

unsigned long fakecuda_failures(void)
{
    return atomic_load(&failures);
}

const char *entry_name(enum entry entry)
{
    return entries[entry].name;
}

unsigned long entry_calls(enum entry entry)
{
    return calls_of[entry];
}

/* "cublasDgemm_v2_64" is also "cublasDgemm_64", as in the headers. */
static bool same_name(const char *full, const char *name, size_t length)
{
    const char *version = strstr(full, "_v2");
    size_t head = version ? (size_t)(version - full) : 0;
    if (strlen(full) == length && memcmp(full, name, length) == 0)
        return true;
    return version && strlen(full) == length + 3 && memcmp(full, name, head) == 0 &&
           memcmp(version + 3, name + head, length - head) == 0;
}

int entry_find(const char *name, size_t length)
{
    for (int i = 0; i < ENTRY_COUNT; i++)
        if (same_name(entries[i].name, name, length))
            return i;
    return -1;
}

bool driver_started(void)
{
    return started;
}

static void end_driver(void)
{
    lock_all();
    ended = true;
    unlock_all();
}

/* As the real driver, ours is gone for exit handlers that were registered before cuInit. */
void driver_start(void)
{
    if (!started)
        atexit(end_driver);
    started = true;
    atomic_store(&starter, (int)getpid());
}

__attribute__((constructor)) static void at_load(void)
{
    pthread_atfork(lock_all, unlock_all, unlock_all);
    owner = (int)getpid();
}

/* Only the process that made the calls writes: a child's copy of the books is not its own. */
__attribute__((destructor)) static void at_unload(void)
{
    if (owner != (int)getpid())
        return;
    lock_all();
    if (!loaded)
        settings_load();
    counts_write();
    unlock_all();
}

/* First call of a process; a child forked before cuInit counts anew. */
static void adopt_process(int pid)
{
    if (owner != pid) {
        atomic_store(&calls, 0);
        atomic_store(&failures, 0);
        memset(calls_of, 0, sizeof calls_of);
        owner = pid;
        loaded = false;
    }
    if (!loaded)
        settings_load();
    loaded = true;
}

static int failure_of(enum entry entry, bool late)
{
    if (settings()->fail.status > 0)
        return settings()->fail.status;
    if (late)
        return CUDA_ERROR_UNKNOWN;
    if (strstr(entries[entry].name, "MemAlloc"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return words[entries[entry].library].injected;
}

/* Whether FAKECUDA_FAIL_AT names this call; fills in the call if so. True: it fails at once. */
static bool inject(struct call *call, unsigned needs)
{
    const struct settings *set = settings();
    unsigned long nth = set->fail.entry < 0 ? atomic_load(&calls) : calls_of[call->entry];
    if (!set->fail.set || (set->fail.entry >= 0 && set->fail.entry != (int)call->entry) ||
        nth < set->fail.nth || (nth > set->fail.nth && !set->fail.onwards))
        return false;
    bool late = set->fail.late && (needs & TAKES_STREAM);
    int status = failure_of(call->entry, late);
    atomic_fetch_add(&failures, 1);
    if (late) {
        call->late_status = status;
        return false;
    }
    call->status = status;
    call->injected = true;
    CUcontext context = fakecuda_context();
    if (context && entries[call->entry].library == CUDA && status_is_sticky(status))
        context->broken = status;
    return true;
}

/* The general reasons why a call cannot go on; 0: none. */
static int obstacle(const struct call *call, unsigned needs)
{
    int library = entries[call->entry].library;
    CUcontext context = fakecuda_context();
    if (ended)
        return words[library].ended;
    if ((needs & NEEDS_INIT) && !started)
        return words[library].not_initialized;
    if ((needs & NEEDS_CONTEXT) != NEEDS_CONTEXT)
        return 0;
    if (!context)
        return words[library].invalid_context;
    if (context->broken && !(needs & (RELEASES | SURVIVES)))
        return words[library].broken ? words[library].broken : context->broken;
    return 0;
}

bool fakecuda_enter(struct call *call, enum entry entry, unsigned needs)
{
    int pid = (int)getpid(), parent = atomic_load(&starter);
    *call = (struct call){ .entry = entry, .needs = needs };
    if (parent && parent != pid) {
        call->status = words[entries[entry].library].not_initialized;
        return false;
    }
    lock_all();
    adopt_process(pid);
    atomic_fetch_add(&calls, 1);
    calls_of[entry]++;
    if (!inject(call, needs)) {
        call->status = obstacle(call, needs);
        if (!call->status)
            return true;
    }
    unlock_all();
    return false;
}

/* A late failure that found no queued work is reported here: the call had its effect. */
int fakecuda_leave(struct call *call, int status)
{
    if (!status && call->late_status)
        status = failure_of(call->entry, false);
    if (!status && (call->needs & RELEASES))
        status = obstacle(call, NEEDS_CONTEXT);
    unlock_all();
    return status;
}
