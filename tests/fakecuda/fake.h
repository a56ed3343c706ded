/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA doubles share. One library each stands in for libcuda (entry.c, settings.c,
 * counts.c, objects.c, driver.c, memory.c, pool.c, stream.c, event.c, copy.c) and libcublas
 * (cublas.c, level3.c, level3_run.c); a further one needs its own sources and the fakecuda_
 * functions below, which libcuda exports.
 *
 * Everything is under one lock: fakecuda_enter takes it, fakecuda_leave gives it back, and all
 * other functions here expect it to be held, if they do not say otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../gpu_backends/cuda/cuda_types.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

/* Constants that the doubles know and the library does not use. */
enum {
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_INVALID_PC = 718,
    CU_EVENT_DISABLE_TIMING = 2,
    FAKE_MAX_DEVICES = 16,
    FAKE_PITCH_LIMIT = 2147483647,
    FAKE_POISON = 0xFF, /* bytes that make a NaN of every floating-point type */
};

/* ---- entry points: the rows of api.def ---- */

#define GS_CUDA_FN(library, need, result, name, parameters) FAKE_EXPORT result name parameters;
#include "../../gpu_backends/cuda/api.def"
#undef GS_CUDA_FN

enum entry {
#define GS_CUDA_FN(library, need, result, name, parameters) ENTRY_##name,
#include "../../gpu_backends/cuda/api.def"
#undef GS_CUDA_FN
    ENTRY_COUNT
};

/* What a call must find before it may go on. */
enum needs {
    NEEDS_NOTHING = 0,
    NEEDS_INIT = 1,           /* cuInit succeeded */
    NEEDS_CONTEXT = 1 | 2,    /* and a context is current in this thread */
    TAKES_STREAM = 4,         /* a late failure can wait for a synchronisation */
    RELEASES = 8,             /* has its effect in a broken context, too, but reports it */
    SURVIVES = 16,            /* does not notice a broken context */
};

/* One call of one entry point, from fakecuda_enter to fakecuda_leave. */
struct call {
    enum entry entry;
    unsigned needs;
    int status;      /* what to return if fakecuda_enter says no; in the terms of its library */
    bool injected;   /* status is a failure that FAKECUDA_FAIL_AT asked for */
    int late_status; /* failure for fakecuda_queue, or else fakecuda_leave, to report; 0: none */
};

/* Counts the call and decides whether it may go on. True: the lock is held. False: it is not,
 * and call->status is to be returned. */
FAKE_EXPORT bool fakecuda_enter(struct call *call, enum entry entry, unsigned needs);
/* Gives the lock back; returns status, or the failure that is still to be reported. */
FAKE_EXPORT int fakecuda_leave(struct call *call, int status);

/* Calls made so far, refused ones included, and failures injected. No lock needed. */
FAKE_EXPORT unsigned long fakecuda_calls(void);
FAKE_EXPORT unsigned long fakecuda_failures(void);
const char *entry_name(enum entry entry);
unsigned long entry_calls(enum entry entry);
/* The entry point of that name, with or without the _v2 that headers hide; -1: none. */
int entry_find(const char *name, size_t length);

void lock_all(void);
void unlock_all(void);
bool driver_started(void);
void driver_start(void); /* called once cuInit succeeded */

/* ---- settings: the FAKECUDA_ variables, read at the first call ---- */

struct settings {
    int devices;
    size_t memory; /* bytes of each device */
    long start_ms;
    int init_status;
    double speed; /* flop/s; 0: no simulated time */
    char count_file[512];
    bool bad; /* some value could not be understood */
    struct {
        bool set, onwards, late;
        int entry; /* -1: any; ENTRY_COUNT: a name that does not exist */
        unsigned long nth;
        int status; /* -1: the default of the entry point */
    } fail;
};
const struct settings *settings(void);
void settings_load(void);
size_t parse_size(const char *text, bool *ok);

void counts_write(void);

/* ---- objects: everything a caller holds a handle of ---- */

enum object_kind { OBJECT_STREAM, OBJECT_EVENT, OBJECT_POOL, OBJECT_HANDLE, OBJECT_KINDS };

struct object {
    struct object *next;
    enum object_kind kind;
    CUcontext context;
};

FAKE_EXPORT void fakecuda_object_add(struct object *object, enum object_kind kind,
                                     CUcontext context);
FAKE_EXPORT void fakecuda_object_remove(struct object *object);
/* Whether the pointer, which may be anything, is a live object of that kind. */
FAKE_EXPORT bool fakecuda_object_is(const void *pointer, enum object_kind kind);
unsigned long objects_live(enum object_kind kind);
struct object *objects_first(void);

/* ---- streams and their work ---- */

enum how {
    RUN_WHOLE,
    RUN_HALF,        /* an injected failure: half of the destination is written */
    RUN_AFTER_ERROR, /* the stream failed before: only what keeps the books right, and damage */
};

/* Queued work: embedded first in a malloc'ed struct of its own kind, freed after it ran. */
struct work {
    struct work *next;
    unsigned long order; /* one sequence over all streams */
    CUcontext context;
    int late_status;
    CUresult (*run)(struct work *work, enum how how);
};

struct CUstream_st {
    struct object object;
    bool blocking;  /* ordered with the default stream */
    bool destroyed; /* its work is still to be done */
    int error;      /* first failure since the last synchronisation */
    int64_t end_ns; /* device time at which its finished work ended */
    struct work *first, *last;
    struct CUstream_st *next_destroyed;
};

struct CUctx_st {
    int device;
    bool live;
    int broken; /* an error after which nothing works in this context */
    int64_t clock_ns;
    struct CUstream_st default_stream;
    struct CUstream_st *destroyed;
};

struct CUevent_st {
    struct object object;
    unsigned flags;
    unsigned long recorded; /* order of the last record; 0: never */
    bool done, destroyed;
    unsigned pending; /* records still queued */
    int64_t time_ns;
    CUstream stream; /* of the last record, while that is pending */
};

/* The context current in this thread, or NULL. */
FAKE_EXPORT CUcontext fakecuda_context(void);
CUcontext context_of_device(int device); /* live or not */
int visible_devices(void);

/* The stream of that handle if it belongs to the current context, else NULL. */
FAKE_EXPORT CUstream fakecuda_stream(CUstream handle);
/* Appends work; a late failure of the call moves to it. */
FAKE_EXPORT void fakecuda_queue(struct call *call, CUstream stream, struct work *work);
/* Lets the device be busy for that many operations (FAKECUDA_SPEED). */
FAKE_EXPORT void fakecuda_spend(CUcontext context, double flops);
bool status_is_sticky(int status);
bool stream_step(CUstream stream);
int64_t now_ns(void);
int64_t device_now(CUcontext context);
void sleep_until(int64_t ns); /* without the lock */

/* ---- memory ---- */

struct CUmemPoolHandle_st {
    struct object object;
    int device;
    size_t used;     /* allocated and not freed, as seen by calls */
    size_t freeing;  /* freed by calls that the device has not reached */
    size_t reserved; /* held from the device */
    size_t limit;    /* 0: none */
    uint64_t threshold;
};

/* Where work of that order may read and write bytes of the device at address; NULL: nowhere. */
FAKE_EXPORT void *fakecuda_memory(CUcontext context, CUdeviceptr address, size_t bytes,
                                  unsigned long order);
/* Whether a call may name this range now. */
bool memory_known(CUdeviceptr address, size_t bytes);
unsigned long memory_live(size_t *bytes);
bool pool_take(CUmemoryPool pool, size_t bytes);
void pool_free_called(CUmemoryPool pool, size_t bytes);
void pool_free_done(CUmemoryPool pool, size_t bytes);
void pools_release(int device); /* what a synchronisation gives back */
