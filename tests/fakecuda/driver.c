/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda: start-up, devices and contexts.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"

static struct CUctx_st contexts[FAKE_MAX_DEVICES];
static int visible[FAKE_MAX_DEVICES]; /* number of the device that a program sees as [i] */
static int visible_count;

static _Thread_local CUcontext current[32];
static _Thread_local int depth;

CUcontext fakecuda_context(void)
{
    return depth ? current[depth - 1] : NULL;
}

CUcontext context_of_device(int device)
{
    return &contexts[device];
}

int visible_devices(void)
{
    return visible_count;
}

static bool is_context(const void *pointer)
{
    for (int i = 0; i < FAKE_MAX_DEVICES; i++)
        if (pointer == &contexts[i])
            return contexts[i].live;
    return false;
}

/* CUDA_VISIBLE_DEVICES as the real driver reads it: numbers up to the first that is no device,
 * whatever follows a number is ignored, and a device named twice is an error. */
static CUresult find_devices(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    visible_count = 0;
    for (int i = 0; !list && i < settings()->devices; i++)
        visible[visible_count++] = i;
    while (list) {
        char *end;
        long number = strtol(list, &end, 10);
        if (end == list || number < 0 || number >= settings()->devices)
            break;
        for (int i = 0; i < visible_count; i++)
            if (visible[i] == number)
                return CUDA_ERROR_INVALID_DEVICE;
        visible[visible_count++] = (int)number;
        list = strchr(end, ',');
        if (list)
            list++;
    }
    return visible_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static CUresult start_driver(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (driver_started())
        return CUDA_SUCCESS;
    if (settings()->init_status)
        return settings()->init_status;
    CUresult status = find_devices();
    if (!status)
        driver_start();
    return status;
}

FAKE_EXPORT CUresult cuInit(unsigned flags)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuInit, NEEDS_NOTHING))
        return call.status;
    return fakecuda_leave(&call, start_driver(flags));
}

FAKE_EXPORT CUresult cuDriverGetVersion(int *version)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuDriverGetVersion, NEEDS_NOTHING))
        return call.status;
    if (version)
        *version = 13000;
    return fakecuda_leave(&call, version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* Only the constants of type CUresult give a row. */
static const char *error_name(CUresult error)
{
    static const struct {
        int error;
        const char *name;
    } names[] = {
#define NAME_OF_CUresult(name) { name, #name },
#define NAME_OF_CUdevice_attribute(name)
#define NAME_OF_unsigned(name)
#define NAME_OF_CUmemorytype(name)
#define NAME_OF_CUmemAllocationType(name)
#define NAME_OF_CUmemLocationType(name)
#define NAME_OF_CUmemPool_attribute(name)
#define NAME_OF_cublasStatus_t(name)
#define NAME_OF_cublasOperation_t(name)
#define NAME_OF_cublasFillMode_t(name)
#define NAME_OF_cublasSideMode_t(name)
#define NAME_OF_cublasDiagType_t(name)
#define NAME_OF_cublasMath_t(name)
#define GS_CONSTANT(type, name, value) NAME_OF_##type(name)
#include "../../gpu_backends/cuda/constants.def"
#undef GS_CONSTANT
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    return NULL;
}

FAKE_EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuGetErrorName, NEEDS_NOTHING))
        return call.status;
    if (name)
        *name = error_name(error);
    return fakecuda_leave(&call, name && *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

FAKE_EXPORT CUresult cuDeviceGetCount(int *count)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuDeviceGetCount, NEEDS_INIT))
        return call.status;
    if (count)
        *count = visible_count;
    return fakecuda_leave(&call, count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult check_device(const void *output, int device)
{
    if (!output)
        return CUDA_ERROR_INVALID_VALUE;
    return device >= 0 && device < visible_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

FAKE_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuDeviceGet, NEEDS_INIT))
        return call.status;
    CUresult status = check_device(device, ordinal);
    if (!status)
        *device = ordinal;
    return fakecuda_leave(&call, status);
}

FAKE_EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuDeviceGetName, NEEDS_INIT))
        return call.status;
    CUresult status = size > 0 ? check_device(name, device) : CUDA_ERROR_INVALID_VALUE;
    if (!status)
        snprintf(name, (size_t)size, "Fake CUDA device %d", visible[device]);
    return fakecuda_leave(&call, status);
}

/* An H200. */
static CUresult read_attribute(int *value, CUdevice_attribute attribute)
{
    static const struct {
        int attribute, value;
    } table[] = {
        { CU_DEVICE_ATTRIBUTE_MAX_PITCH, FAKE_PITCH_LIMIT },
        { CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000 },
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132 },
        { CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000 },
        { CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6016 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
        { CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2 },
        { CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].attribute == attribute) {
            *value = table[i].value;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

FAKE_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                          CUdevice device)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuDeviceGetAttribute, NEEDS_INIT))
        return call.status;
    CUresult status = check_device(value, device);
    if (!status)
        status = read_attribute(value, attribute);
    return fakecuda_leave(&call, status);
}

static void make_context(int device)
{
    CUcontext context = &contexts[device];
    if (context->live)
        return;
    context->device = device;
    context->live = true;
    context->default_stream.object.context = context;
    context->default_stream.object.kind = OBJECT_STREAM;
    context->default_stream.blocking = true;
}

/* The start of a real context takes this long; other threads may call meanwhile. */
static void wait_for_start(int device)
{
    long ms = contexts[device].live ? 0 : settings()->start_ms;
    if (ms == 0)
        return;
    unlock_all();
    sleep_until(now_ns() + ms * 1000000);
    lock_all();
}

FAKE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuDevicePrimaryCtxRetain, NEEDS_INIT))
        return call.status;
    CUresult status = check_device(context, device);
    if (!status) {
        wait_for_start(device);
        make_context(device);
        *context = &contexts[device];
    }
    return fakecuda_leave(&call, status);
}

FAKE_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuCtxPushCurrent_v2, NEEDS_INIT))
        return call.status;
    bool room = depth < (int)(sizeof current / sizeof *current);
    bool good = room && is_context(context);
    if (good)
        current[depth++] = context;
    return fakecuda_leave(&call, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

FAKE_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuCtxPopCurrent_v2, NEEDS_INIT))
        return call.status;
    bool good = depth > 0;
    if (good && context)
        *context = current[depth - 1];
    depth -= good;
    return fakecuda_leave(&call, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}
