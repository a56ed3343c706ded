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

bool gs_cublas_gemm(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return gs_cublas_ok(run, is_wide(call) ? gemm_wide(lane, call, range)
                                           : gemm_narrow(lane, call, range));
}
