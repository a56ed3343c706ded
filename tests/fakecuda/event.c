/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda: events. Their times are those of the device's clock when the executor reached them.
 */
#include <stdlib.h>

#include "fake.h"

struct record {
    struct work work;
    CUevent event;
};

static CUresult create(CUevent *result, unsigned flags)
{
    if (!result || flags > 3) /* 1: CU_EVENT_BLOCKING_SYNC */
        return CUDA_ERROR_INVALID_VALUE;
    CUevent event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->flags = flags;
    fakecuda_object_add(&event->object, OBJECT_EVENT, fakecuda_context());
    *result = event;
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuEventCreate, NEEDS_CONTEXT))
        return call.status;
    return fakecuda_leave(&call, create(event, flags));
}

/* A later record of the same event replaces this one. */
static CUresult run_record(struct work *work, enum how how)
{
    CUevent event = ((struct record *)work)->event;
    (void)how;
    event->pending--;
    if (event->recorded == work->order) {
        event->done = true;
        event->time_ns = device_now(work->context);
        event->stream = NULL;
    }
    if (event->destroyed && !event->pending)
        free(event);
    return CUDA_SUCCESS;
}

static CUresult record(struct call *call, CUevent event, CUstream handle)
{
    CUstream stream = fakecuda_stream(handle);
    if (!stream || !fakecuda_object_is(event, OBJECT_EVENT) ||
        event->object.context != stream->object.context)
        return CUDA_ERROR_INVALID_HANDLE;
    struct record *job = calloc(1, sizeof *job);
    if (!job)
        return CUDA_ERROR_OUT_OF_MEMORY;
    job->work.run = run_record;
    job->event = event;
    fakecuda_queue(call, stream, &job->work);
    event->pending++;
    event->done = false;
    event->recorded = job->work.order;
    event->stream = stream;
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuEventRecord, NEEDS_CONTEXT | TAKES_STREAM))
        return call.status;
    return fakecuda_leave(&call, record(&call, event, stream));
}

static bool is_timed(CUevent event)
{
    return fakecuda_object_is(event, OBJECT_EVENT) && event->recorded &&
           !(event->flags & CU_EVENT_DISABLE_TIMING);
}

static bool is_ready(CUevent event)
{
    return event->done && event->time_ns <= now_ns();
}

/* An answer "not ready" lets the device get on, or a program that polls would do so for ever. */
static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
    if (!is_timed(start) || !is_timed(end))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_ready(start) || !is_ready(end)) {
        CUevent waiting = start->done ? end : start;
        if (!waiting->done)
            stream_step(waiting->stream);
        return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = (float)((double)(end->time_ns - start->time_ns) * 1e-6);
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuEventElapsedTime, NEEDS_CONTEXT))
        return call.status;
    return fakecuda_leave(&call, elapsed(milliseconds, start, end));
}

FAKE_EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuEventDestroy_v2, NEEDS_CONTEXT | RELEASES))
        return call.status;
    if (!fakecuda_object_is(event, OBJECT_EVENT))
        return fakecuda_leave(&call, CUDA_ERROR_INVALID_HANDLE);
    fakecuda_object_remove(&event->object);
    event->destroyed = true;
    if (!event->pending)
        free(event);
    return fakecuda_leave(&call, CUDA_SUCCESS);
}
