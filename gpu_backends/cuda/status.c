/* SPDX-License-Identifier: Apache-2.0
 *
 * From the status of a CUDA library to a reason.
 */
#include "gpu_backends/cuda/cuda.h"

/* Statuses after which every later call of the context fails too (CUDA driver API manual,
 * CUresult: "this leaves the process in an inconsistent state"), and a context that is gone. */
static bool is_sticky(CUresult result)
{
    return result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_INVALID_CONTEXT ||
           result == CUDA_ERROR_ECC_UNCORRECTABLE || result == CUDA_ERROR_ILLEGAL_ADDRESS ||
           (result >= CUDA_ERROR_LAUNCH_TIMEOUT && result <= CUDA_ERROR_LAUNCH_FAILED);
}

static bool note(struct gs_run *run, gs_reason reason, int detail)
{
    if (run->reason == GS_NO_REASON || reason == GS_STICKY) {
        run->reason = reason;
        run->detail = detail;
    }
    return false;
}

bool gs_cu_ok(struct gs_run *run, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return true;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return note(run, GS_MEM_ALLOC_FAILED, result);
    return note(run, is_sticky(result) ? GS_STICKY : GS_STATUS, result);
}

bool gs_cublas_ok(struct gs_run *run, cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    return note(run, status == CUBLAS_STATUS_ALLOC_FAILED ? GS_MEM_ALLOC_FAILED : GS_STATUS,
                status);
}
