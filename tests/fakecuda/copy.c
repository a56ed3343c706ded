/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda: copies. What comes from the host is taken at the call, as the driver stages it; what
 * goes to the host arrives when the stream is waited for. Both orders are the worst that the
 * manual allows for ordinary host memory.
 */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

/* A rectangle of bytes on one side of a copy. */
struct side {
    bool on_device;
    uintptr_t address;
    size_t pitch;
};

struct copy {
    struct work work;
    struct side from, to;
    size_t width, height;
    char staged[]; /* the source, if it was on the host: rows without gaps */
};

/* Bytes from the first to behind the last; SIZE_MAX where that does not fit. */
static size_t extent(const struct side *side, size_t width, size_t height)
{
    size_t bytes;
    if (__builtin_mul_overflow(side->pitch, height - 1, &bytes) ||
        __builtin_add_overflow(bytes, width, &bytes))
        return SIZE_MAX;
    return bytes;
}

static void copy_bytes(char *to, const struct side *to_side, const char *from,
                       const struct side *from_side, size_t width, size_t bytes)
{
    for (size_t row = 0; bytes > 0; row++) {
        size_t part = bytes < width ? bytes : width;
        memcpy(to + row * to_side->pitch, from + row * from_side->pitch, part);
        bytes -= part;
    }
}

static void spoil_half(const struct side *side, size_t width, size_t height)
{
    size_t bytes = width * height / 2;
    for (size_t row = 0; bytes > 0; row++) {
        size_t part = bytes < width ? bytes : width;
        memset((char *)side->address + row * side->pitch, FAKE_POISON, part);
        bytes -= part;
    }
}

static void *place(const struct copy *copy, const struct side *side)
{
    if (!side->on_device)
        return (void *)side->address;
    return fakecuda_memory(copy->work.context, side->address,
                           extent(side, copy->width, copy->height), copy->work.order);
}

static CUresult run_copy(struct work *work, enum how how)
{
    struct copy *copy = (struct copy *)work;
    size_t bytes = copy->width * copy->height;
    if (how == RUN_AFTER_ERROR) {
        if (!copy->to.on_device)
            spoil_half(&copy->to, copy->width, copy->height);
        return CUDA_SUCCESS;
    }
    char *to = place(copy, &copy->to);
    const char *from = copy->from.on_device ? place(copy, &copy->from) : copy->staged;
    if (!to || !from) {
        if (!copy->to.on_device)
            spoil_half(&copy->to, copy->width, copy->height);
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    copy_bytes(to, &copy->to, from, &copy->from, copy->width, how == RUN_HALF ? bytes / 2 : bytes);
    return CUDA_SUCCESS;
}

static bool known(const struct side *side, size_t width, size_t height)
{
    return side->on_device ? memory_known(side->address, extent(side, width, height))
                           : side->address != 0;
}

static CUresult start_copy(struct call *call, const struct side *to, const struct side *from,
                           size_t width, size_t height, CUstream handle)
{
    CUstream stream = fakecuda_stream(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    if (to->pitch < width || from->pitch < width || !known(to, width, height) ||
        !known(from, width, height))
        return CUDA_ERROR_INVALID_VALUE;
    size_t staged = from->on_device ? 0 : width * height;
    struct copy *copy = malloc(sizeof *copy + staged);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = (struct copy){ .from = *from, .to = *to, .width = width, .height = height };
    copy->work.run = run_copy;
    if (!from->on_device) {
        copy->from.pitch = width;
        copy_bytes(copy->staged, &copy->from, (const char *)from->address, from, width, staged);
    }
    fakecuda_queue(call, stream, &copy->work);
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr device, const void *host, size_t bytes,
                                          CUstream stream)
{
    struct call call;
    struct side to = { true, (uintptr_t)device, bytes }, from = { false, (uintptr_t)host, bytes };
    if (!fakecuda_enter(&call, ENTRY_cuMemcpyHtoDAsync_v2, NEEDS_CONTEXT | TAKES_STREAM))
        return call.status;
    return fakecuda_leave(&call, start_copy(&call, &to, &from, bytes, 1, stream));
}

/* An injected failure leaves half of what it was to write on the host spoilt. */
FAKE_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *host, CUdeviceptr device, size_t bytes,
                                          CUstream stream)
{
    struct call call;
    struct side to = { false, (uintptr_t)host, bytes }, from = { true, (uintptr_t)device, bytes };
    if (!fakecuda_enter(&call, ENTRY_cuMemcpyDtoHAsync_v2, NEEDS_CONTEXT | TAKES_STREAM)) {
        if (call.injected && host)
            spoil_half(&to, bytes, 1);
        return call.status;
    }
    return fakecuda_leave(&call, start_copy(&call, &to, &from, bytes, 1, stream));
}

static bool read_side(struct side *side, CUmemorytype type, const void *host, CUdeviceptr device,
                      size_t x, size_t y, size_t pitch, size_t width)
{
    bool on_device = type == CU_MEMORYTYPE_DEVICE;
    size_t skip;
    if ((!on_device && type != CU_MEMORYTYPE_HOST) || pitch > FAKE_PITCH_LIMIT ||
        width > pitch || x > pitch - width || __builtin_mul_overflow(y, pitch, &skip))
        return false;
    uintptr_t base = on_device ? (uintptr_t)device : (uintptr_t)host;
    *side = (struct side){ on_device, base ? base + skip + x : 0, pitch };
    return true;
}

/* The pitch must hold the offset in the row, too, as the manual says (the driver lets it pass). */
static bool read_sides(const CUDA_MEMCPY2D *copy, struct side *to, struct side *from)
{
    return read_side(from, copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                     copy->srcY, copy->srcPitch, copy->WidthInBytes) &&
           read_side(to, copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes,
                     copy->dstY, copy->dstPitch, copy->WidthInBytes) &&
           (to->on_device || from->on_device);
}

FAKE_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    struct call call;
    struct side to, from;
    bool empty = copy && (copy->WidthInBytes == 0 || copy->Height == 0);
    bool good = copy && !empty && read_sides(copy, &to, &from);
    if (!fakecuda_enter(&call, ENTRY_cuMemcpy2DAsync_v2, NEEDS_CONTEXT | TAKES_STREAM)) {
        if (call.injected && good && !to.on_device && to.address)
            spoil_half(&to, copy->WidthInBytes, copy->Height);
        return call.status;
    }
    CUresult status = empty ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (good)
        status = start_copy(&call, &to, &from, copy->WidthInBytes, copy->Height, stream);
    return fakecuda_leave(&call, status);
}
