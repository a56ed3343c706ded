/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend's function table.
 */
#include <limits.h>
#include <string.h>

#include "gpu_backends/cuda/cuda.h"

static gs_reason look(const struct gs_device_options *options)
{
    return strcmp(options->device, "none") == 0 ? GS_NO_DEVICE
                                                : gs_cuda_load_driver(options->cuda_path);
}

/* Whether what the start-up finds out may be read: it is written by another thread until then. */
static bool is_open(void)
{
    return gs_device_state() == GS_READY;
}

/* Strict 2-D copies need a pitch that the driver takes; before start-up, its documented limit. */
static bool pitch_fits(const struct gs_call *call)
{
    double limit = is_open() ? gs_cuda_device.max_pitch : INT_MAX;
    for (int i = 0; i < call->operand_count; i++) {
        const struct gs_operand *operand = &call->operand[i];
        bool strided = operand->ld != operand->rows && operand->cols > 1;
        if (strided && (double)operand->ld * (double)gs_element_bytes(call->dtype) > limit)
            return false;
    }
    return true;
}

static gs_reason objection(const struct gs_call *call)
{
    if (!pitch_fits(call))
        return GS_DIM_LIMIT;
    /* Which libraries there are is known once the device has been started. */
    return is_open() ? gs_cublas_objection(call) : GS_NO_REASON;
}

static double memory_needed(const struct gs_call *call)
{
    double elements = 0; /* a triangle takes the place of the whole matrix there */
    for (int i = 0; i < call->operand_count; i++)
        elements += (double)call->operand[i].rows * (double)call->operand[i].cols;
    return elements * (double)gs_element_bytes(call->dtype);
}

const struct gs_backend gs_cuda_backend = {
    .name = "cuda",
    .look = look,
    .open = gs_cuda_open,
    .objection = objection,
    .memory_needed = memory_needed,
    .run = gs_cuda_run,
    .is_busy = gs_lane_all_busy,
};
