/* SPDX-License-Identifier: Apache-2.0
 *
 * BLAS operations on ranges of device memory. Each queues on the lane's stream and returns.
 */
#include <limits.h>

#include "gpu_backends/cuda/cuda.h"

static cublasOperation_t operation(char trans)
{
    return trans == 'N' ? CUBLAS_OP_N : trans == 'T' ? CUBLAS_OP_T : CUBLAS_OP_C;
}

/* Whether a size needs the 64-bit interface. The device's copy of a matrix has ld = rows. */
static bool is_wide(const struct gs_call *call)
{
    for (int i = 0; i < call->operand_count; i++)
        if (call->operand[i].rows > INT_MAX || call->operand[i].cols > INT_MAX)
            return true;
    return false;
}

gs_reason gs_cublas_objection(const struct gs_call *call)
{
    return is_wide(call) && gs_cuda.cublasDgemm_v2_64 == NULL ? GS_DIM_LIMIT : GS_NO_REASON;
}

/* One body for the four types and the two integer widths. */
#define GS_GEMM(name, type, integer)                                                         \
    gs_cuda.name(lane->cublas, operation(call->transa), operation(call->transb),             \
                 (integer)call->m, (integer)call->n, (integer)call->k,                       \
                 (const type *)&call->alpha, (const type *)range[0].address,                 \
                 (integer)range[0].ld, (const type *)range[1].address, (integer)range[1].ld, \
                 (const type *)&call->beta, (type *)range[2].address, (integer)range[2].ld)

static cublasStatus_t gemm_narrow(struct gs_lane *lane, const struct gs_call *call,
                                  const struct gs_device_range *range)
{
    switch (call->dtype) {
    case GS_F32: return GS_GEMM(cublasSgemm_v2, float, int);
    case GS_F64: return GS_GEMM(cublasDgemm_v2, double, int);
    case GS_C32: return GS_GEMM(cublasCgemm_v2, cuComplex, int);
    default: return GS_GEMM(cublasZgemm_v2, cuDoubleComplex, int);
    }
}

static cublasStatus_t gemm_wide(struct gs_lane *lane, const struct gs_call *call,
                                const struct gs_device_range *range)
{
    switch (call->dtype) {
    case GS_F32: return GS_GEMM(cublasSgemm_v2_64, float, int64_t);
    case GS_F64: return GS_GEMM(cublasDgemm_v2_64, double, int64_t);
    case GS_C32: return GS_GEMM(cublasCgemm_v2_64, cuComplex, int64_t);
    default: return GS_GEMM(cublasZgemm_v2_64, cuDoubleComplex, int64_t);
    }
}

/* The mode in which a type's products keep their precision whatever vendor variables say.
 * PEDANTIC holds for FP32, where NVIDIA_TF32_OVERRIDE=1 turns the default mode into TF32 (cuBLAS
 * 13.1, H200: error 2.5e-2 instead of 2.2e-5 at n = 512); it costs nothing there, but a quarter of
 * the rate of FP64, which only the emulation variables could change. */
static cublasMath_t math_of(gs_dtype dtype)
{
    if (dtype == GS_F32 || dtype == GS_C32)
        return gs_cuda_device.allow_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_PEDANTIC_MATH;
    return gs_cuda_device.emulation_asked ? CUBLAS_PEDANTIC_MATH : CUBLAS_DEFAULT_MATH;
}

static bool set_math(struct gs_lane *lane, gs_dtype dtype, struct gs_run *run)
{
    cublasMath_t math = math_of(dtype);
    if (lane->math == math)
        return true;
    lane->math = -1;
    if (!gs_cublas_ok(run, gs_cuda.cublasSetMathMode(lane->cublas, math)))
        return false;
    lane->math = math;
    return true;
}

bool gs_cublas_gemm(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) &&
           gs_cublas_ok(run, is_wide(call) ? gemm_wide(lane, call, range)
                                           : gemm_narrow(lane, call, range));
}

void gs_cublas_warm_up(struct gs_lane *lane)
{
    enum { N = 512 };
    struct gs_run run = {.reason = GS_NO_REASON};
    struct gs_device_range range[3] = {{.ld = N}, {.ld = N}, {.ld = N}};
    CUdeviceptr matrix = 0;
    if (gs_cuda.cuMemAllocFromPoolAsync(&matrix, N * N * sizeof(cuDoubleComplex),
                                        gs_cuda_device.pool, lane->stream) != CUDA_SUCCESS)
        return;
    for (int i = 0; i < 3; i++) /* what is computed, and from what, does not matter */
        range[i].address = matrix;
    for (int dtype = 0; dtype < GS_DTYPE_COUNT; dtype++) {
        struct gs_call call = {.operation = GS_OP_GEMM, .dtype = (gs_dtype)dtype,
                               .transa = 'N', .transb = 'N', .m = N, .n = N, .k = N};
        gs_cublas_gemm(lane, &call, range, &run);
    }
    gs_cuda.cuMemFreeAsync(matrix, lane->stream);
    gs_cuda.cuStreamSynchronize(lane->stream);
}
