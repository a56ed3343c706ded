/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda: streams and the one executor behind them. Work waits in its stream until somebody
 * synchronises with it, which is later than on any device; order is kept within a stream, and
 * between the default stream and the blocking ones, but nowhere else.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fake.h"

static unsigned long last_order;

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

void sleep_until(int64_t ns)
{
    struct timespec until = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* The clock of a device is ahead of the host's by the time it is simulated to be busy. */
int64_t device_now(CUcontext context)
{
    int64_t now = now_ns();
    if (context->clock_ns < now)
        context->clock_ns = now;
    return context->clock_ns;
}

void fakecuda_spend(CUcontext context, double flops)
{
    if (settings()->speed > 0)
        context->clock_ns = device_now(context) + (int64_t)(flops / settings()->speed * 1e9);
}

/* Errors that end a context, by the comments in cuda.h. */
bool status_is_sticky(int status)
{
    return status == CUDA_ERROR_ECC_UNCORRECTABLE || status == CUDA_ERROR_ILLEGAL_ADDRESS ||
           status == CUDA_ERROR_LAUNCH_TIMEOUT || status == CUDA_ERROR_ASSERT ||
           (status >= CUDA_ERROR_HARDWARE_STACK_ERROR && status <= CUDA_ERROR_LAUNCH_FAILED);
}

CUstream fakecuda_stream(CUstream handle)
{
    CUcontext context = fakecuda_context();
    if (handle == NULL || handle == (CUstream)1) /* 1: CU_STREAM_LEGACY */
        return &context->default_stream;
    if (!fakecuda_object_is(handle, OBJECT_STREAM) || handle->object.context != context)
        return NULL;
    return handle;
}

void fakecuda_queue(struct call *call, CUstream stream, struct work *work)
{
    work->next = NULL;
    work->order = ++last_order;
    work->context = stream->object.context;
    work->late_status = call->late_status;
    call->late_status = 0;
    if (stream->last)
        stream->last->next = work;
    else
        stream->first = work;
    stream->last = work;
}

static void note_error(CUstream stream, int status)
{
    if (!stream->error)
        stream->error = status;
    if (status_is_sticky(status) && !stream->object.context->broken)
        stream->object.context->broken = status;
}

static void run_first(CUstream stream)
{
    struct work *work = stream->first;
    enum how how = RUN_WHOLE;
    if (stream->error || stream->object.context->broken)
        how = RUN_AFTER_ERROR;
    else if (work->late_status)
        how = RUN_HALF;
    stream->first = work->next;
    if (!stream->first)
        stream->last = NULL;
    int status = work->run(work, how);
    if (work->late_status)
        status = work->late_status;
    if (status)
        note_error(stream, status);
    stream->end_ns = device_now(stream->object.context);
    free(work);
}

static void run_until(CUstream stream, unsigned long order);

/* What the device would have to finish before work of this order in this stream. */
static void run_what_precedes(CUstream stream, unsigned long order)
{
    CUcontext context = stream->object.context;
    if (!stream->blocking)
        return;
    if (stream != &context->default_stream) {
        run_until(&context->default_stream, order - 1);
        return;
    }
    for (struct object *at = objects_first(); at; at = at->next) {
        CUstream other = (CUstream)at;
        if (at->kind == OBJECT_STREAM && at->context == context && other->blocking)
            run_until(other, order - 1);
    }
    for (CUstream other = context->destroyed; other; other = other->next_destroyed)
        if (other->blocking)
            run_until(other, order - 1);
}

static void run_until(CUstream stream, unsigned long order)
{
    while (stream->first && stream->first->order <= order) {
        run_what_precedes(stream, stream->first->order);
        run_first(stream);
    }
}

/* Somebody asks whether the stream is done: it gets on by one. False: it has nothing to do. */
bool stream_step(CUstream stream)
{
    if (!stream->first)
        return false;
    run_what_precedes(stream, stream->first->order);
    run_first(stream);
    return true;
}

/* Destroyed streams finish their work some time; nothing tells when, so: at the next wait. */
static void finish_destroyed(CUcontext context)
{
    while (context->destroyed) {
        CUstream stream = context->destroyed;
        run_until(stream, last_order);
        context->destroyed = stream->next_destroyed;
        free(stream);
    }
}

static CUresult create(CUstream *result, unsigned flags)
{
    if (!result || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = calloc(1, sizeof *stream);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->blocking = flags != CU_STREAM_NON_BLOCKING;
    fakecuda_object_add(&stream->object, OBJECT_STREAM, fakecuda_context());
    *result = stream;
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuStreamCreate, NEEDS_CONTEXT))
        return call.status;
    return fakecuda_leave(&call, create(stream, flags));
}

static CUresult synchronize(CUstream stream)
{
    CUcontext context = stream->object.context;
    finish_destroyed(context);
    run_until(stream, last_order);
    pools_release(context->device);
    CUresult status = context->broken ? context->broken : stream->error;
    stream->error = CUDA_SUCCESS;
    return status;
}

FAKE_EXPORT CUresult cuStreamSynchronize(CUstream handle)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuStreamSynchronize, NEEDS_CONTEXT | TAKES_STREAM))
        return call.status;
    CUstream stream = fakecuda_stream(handle);
    CUresult status = stream ? synchronize(stream) : CUDA_ERROR_INVALID_HANDLE;
    int64_t end_ns = stream ? stream->end_ns : 0;
    status = fakecuda_leave(&call, status);
    if (end_ns > now_ns())
        sleep_until(end_ns);
    return status;
}

FAKE_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuStreamDestroy_v2, NEEDS_CONTEXT | TAKES_STREAM | RELEASES))
        return call.status;
    if (!stream || fakecuda_stream(stream) != stream)
        return fakecuda_leave(&call, CUDA_ERROR_INVALID_HANDLE);
    fakecuda_object_remove(&stream->object);
    stream->destroyed = true;
    stream->next_destroyed = stream->object.context->destroyed;
    stream->object.context->destroyed = stream;
    return fakecuda_leave(&call, CUDA_SUCCESS);
}
