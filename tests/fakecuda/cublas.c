/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas: handles and their settings.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_cublas.h"

bool handle_is_good(cublasHandle_t handle)
{
    return fakecuda_object_is(handle, OBJECT_HANDLE) &&
           handle->object.context == fakecuda_context();
}

static cublasStatus_t create(cublasHandle_t *result)
{
    if (!result)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (fakecuda_context()->broken)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    const char *override = getenv("NVIDIA_TF32_OVERRIDE");
    cublasHandle_t handle = calloc(1, sizeof *handle);
    if (!handle)
        return CUBLAS_STATUS_ALLOC_FAILED;
    handle->tf32_forced = override && strcmp(override, "1") == 0;
    handle->tf32_forbidden = override && strcmp(override, "0") == 0;
    fakecuda_object_add(&handle->object, OBJECT_HANDLE, fakecuda_context());
    *result = handle;
    return CUBLAS_STATUS_SUCCESS;
}

FAKE_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cublasCreate_v2, NEEDS_CONTEXT | SURVIVES))
        return call.status;
    return fakecuda_leave(&call, create(handle));
}

FAKE_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cublasDestroy_v2, NEEDS_CONTEXT | SURVIVES))
        return call.status;
    if (!handle_is_good(handle))
        return fakecuda_leave(&call, CUBLAS_STATUS_NOT_INITIALIZED);
    fakecuda_object_remove(&handle->object);
    free(handle);
    return fakecuda_leave(&call, CUBLAS_STATUS_SUCCESS);
}

FAKE_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cublasGetVersion_v2, NEEDS_CONTEXT | SURVIVES))
        return call.status;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (!handle_is_good(handle))
        status = CUBLAS_STATUS_NOT_INITIALIZED;
    else if (!version)
        status = CUBLAS_STATUS_INVALID_VALUE;
    else
        *version = 130100;
    return fakecuda_leave(&call, status);
}

FAKE_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cublasSetStream_v2, NEEDS_CONTEXT | SURVIVES))
        return call.status;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (!handle_is_good(handle))
        status = CUBLAS_STATUS_NOT_INITIALIZED;
    else if (!fakecuda_stream(stream))
        status = CUBLAS_STATUS_INVALID_VALUE;
    else
        handle->stream = stream;
    return fakecuda_leave(&call, status);
}

/* Modes are a number below 16 and the flag 16; cuBLAS 13.1 takes every combination. */
FAKE_EXPORT cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cublasSetMathMode, NEEDS_CONTEXT | SURVIVES))
        return call.status;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (!handle_is_good(handle))
        status = CUBLAS_STATUS_NOT_INITIALIZED;
    else if (mode < 0 || mode > 31)
        status = CUBLAS_STATUS_INVALID_VALUE;
    else
        handle->mode = mode;
    return fakecuda_leave(&call, status);
}
