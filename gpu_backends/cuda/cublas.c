/* SPDX-License-Identifier: Apache-2.0
 *
 * BLAS operations on ranges of device memory. Each queues on the lane's stream and returns.
 */
#include <limits.h>

#include "gpu_backends/cuda/cuda.h"

/* For real types the conjugate transpose is the transpose, and rank-k updates of cuBLAS take no
 * other. */
static cublasOperation_t operation(char trans, gs_dtype dtype)
{
    if (trans == 'N')
        return CUBLAS_OP_N;
    return trans == 'T' || !gs_is_complex(dtype) ? CUBLAS_OP_T : CUBLAS_OP_C;
}

static cublasSideMode_t side_mode(const struct gs_call *call)
{
    return call->side == 'L' ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}

static cublasFillMode_t fill_mode(const struct gs_call *call)
{
    return call->uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

static cublasDiagType_t diag_type(const struct gs_call *call)
{
    return call->diag == 'U' ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
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

/* Calls a routine in the call's type and integer width: arguments(name, type, real, integer) is
 * the call itself. S and D stand for C and Z where a routine exists only in complex types. */
#define GS_IN_WIDTH(suffix, integer, s, d, c, z, arguments)                          \
    (call->dtype == GS_F32   ? arguments(cublas##s##suffix, float, float, integer)   \
     : call->dtype == GS_F64 ? arguments(cublas##d##suffix, double, double, integer) \
     : call->dtype == GS_C32 ? arguments(cublas##c##suffix, cuComplex, float, integer) \
                             : arguments(cublas##z##suffix, cuDoubleComplex, double, integer))
#define GS_IN_COMPLEX(suffix, integer, c, z, arguments)                             \
    (call->dtype == GS_C32 ? arguments(cublas##c##suffix, cuComplex, float, integer) \
                           : arguments(cublas##z##suffix, cuDoubleComplex, double, integer))
#define GS_CUBLAS(routine, arguments)                                                       \
    (is_wide(call) ? GS_IN_WIDTH(_v2_64, int64_t, S##routine, D##routine, C##routine,       \
                                 Z##routine, arguments)                                     \
                   : GS_IN_WIDTH(_v2, int, S##routine, D##routine, C##routine, Z##routine,  \
                                 arguments))
#define GS_CUBLAS_COMPLEX(routine, arguments)                                    \
    (is_wide(call) ? GS_IN_COMPLEX(_v2_64, int64_t, C##routine, Z##routine, arguments) \
                   : GS_IN_COMPLEX(_v2, int, C##routine, Z##routine, arguments))

/* Operand i as the pointer and leading dimension of an argument list. */
#define GS_MATRIX(i, type, integer) (type *)range[i].address, (integer)range[i].ld
#define GS_ALPHA(type) (const type *)&call->alpha
#define GS_BETA(type) (const type *)&call->beta

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

#define GS_GEMM(name, type, real, integer)                                             \
    gs_cuda.name(lane->cublas, operation(call->transa, call->dtype),                   \
                 operation(call->transb, call->dtype), (integer)call->m, (integer)call->n, \
                 (integer)call->k, GS_ALPHA(type), GS_MATRIX(0, type, integer),        \
                 GS_MATRIX(1, type, integer), GS_BETA(type), GS_MATRIX(2, type, integer))

bool gs_cublas_gemm(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) && gs_cublas_ok(run, GS_CUBLAS(gemm, GS_GEMM));
}

#define GS_SYMM(name, type, real, integer)                                                 \
    gs_cuda.name(lane->cublas, side_mode(call), fill_mode(call), (integer)call->m,         \
                 (integer)call->n, GS_ALPHA(type), GS_MATRIX(0, type, integer),            \
                 GS_MATRIX(1, type, integer), GS_BETA(type), GS_MATRIX(2, type, integer))

bool gs_cublas_symm(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) && gs_cublas_ok(run, GS_CUBLAS(symm, GS_SYMM));
}

bool gs_cublas_hemm(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) &&
           gs_cublas_ok(run, GS_CUBLAS_COMPLEX(hemm, GS_SYMM));
}

#define GS_RANK_K(name, type, scalar, integer)                                            \
    gs_cuda.name(lane->cublas, fill_mode(call), operation(call->transa, call->dtype),     \
                 (integer)call->n, (integer)call->k, GS_ALPHA(scalar),                    \
                 GS_MATRIX(0, type, integer), GS_BETA(scalar), GS_MATRIX(1, type, integer))
#define GS_SYRK(name, type, real, integer) GS_RANK_K(name, type, type, integer)
#define GS_HERK(name, type, real, integer) GS_RANK_K(name, type, real, integer)

bool gs_cublas_syrk(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) && gs_cublas_ok(run, GS_CUBLAS(syrk, GS_SYRK));
}

bool gs_cublas_herk(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) &&
           gs_cublas_ok(run, GS_CUBLAS_COMPLEX(herk, GS_HERK));
}

#define GS_RANK_2K(name, type, scalar, integer)                                           \
    gs_cuda.name(lane->cublas, fill_mode(call), operation(call->transa, call->dtype),     \
                 (integer)call->n, (integer)call->k, GS_ALPHA(type),                      \
                 GS_MATRIX(0, type, integer), GS_MATRIX(1, type, integer), GS_BETA(scalar), \
                 GS_MATRIX(2, type, integer))
#define GS_SYR2K(name, type, real, integer) GS_RANK_2K(name, type, type, integer)
#define GS_HER2K(name, type, real, integer) GS_RANK_2K(name, type, real, integer)

bool gs_cublas_syr2k(struct gs_lane *lane, const struct gs_call *call,
                     const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) && gs_cublas_ok(run, GS_CUBLAS(syr2k, GS_SYR2K));
}

bool gs_cublas_her2k(struct gs_lane *lane, const struct gs_call *call,
                     const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) &&
           gs_cublas_ok(run, GS_CUBLAS_COMPLEX(her2k, GS_HER2K));
}

/* cuBLAS writes the product to a third matrix, which may be B itself. */
#define GS_TRMM(name, type, real, integer)                                                 \
    gs_cuda.name(lane->cublas, side_mode(call), fill_mode(call),                           \
                 operation(call->transa, call->dtype), diag_type(call), (integer)call->m,  \
                 (integer)call->n, GS_ALPHA(type), GS_MATRIX(0, type, integer),            \
                 GS_MATRIX(1, type, integer), GS_MATRIX(1, type, integer))

bool gs_cublas_trmm(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) && gs_cublas_ok(run, GS_CUBLAS(trmm, GS_TRMM));
}

#define GS_TRSM(name, type, real, integer)                                                 \
    gs_cuda.name(lane->cublas, side_mode(call), fill_mode(call),                           \
                 operation(call->transa, call->dtype), diag_type(call), (integer)call->m,  \
                 (integer)call->n, GS_ALPHA(type), GS_MATRIX(0, type, integer),            \
                 GS_MATRIX(1, type, integer))

bool gs_cublas_trsm(struct gs_lane *lane, const struct gs_call *call,
                    const struct gs_device_range *range, struct gs_run *run)
{
    return set_math(lane, call->dtype, run) && gs_cublas_ok(run, GS_CUBLAS(trsm, GS_TRSM));
}

/* Address of element (row, col) of op(X). */
static CUdeviceptr op_element(const struct gs_call *call, const struct gs_device_range *x,
                              char trans, int64_t row, int64_t col)
{
    int64_t at = trans == 'N' ? row + col * x->ld : col + row * x->ld;
    return x->address + (size_t)at * gs_element_bytes(call->dtype);
}

/* One triangle of a product, which cuBLAS lacks: products of block columns, each from the top of
 * its diagonal block down (or from the top to its end). What they write of the other triangle
 * inside the diagonal blocks stays on the device. */
bool gs_cublas_gemmt(struct gs_lane *lane, const struct gs_call *call,
                     const struct gs_device_range *range, struct gs_run *run)
{
    const int64_t block = 512, n = call->n;
    for (int64_t j = 0; j < n; j += block) {
        int64_t width = n - j < block ? n - j : block;
        int64_t first = call->uplo == 'L' ? j : 0, end = call->uplo == 'L' ? n : j + width;
        struct gs_call part = *call;
        struct gs_device_range ranges[3] = {range[0], range[1], range[2]};
        part.operation = GS_OP_GEMM;
        part.m = end - first;
        part.n = width;
        ranges[0].address = op_element(call, &range[0], call->transa, first, 0);
        ranges[1].address = op_element(call, &range[1], call->transb, 0, j);
        ranges[2].address = op_element(call, &range[2], 'N', first, j);
        if (!gs_cublas_gemm(lane, &part, ranges, run))
            return false;
    }
    return true;
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
        if (dtype == GS_F32 || dtype == GS_C32) /* with alpha = 0 there is nothing to load */
            call.alpha.f32[0] = 1;
        else
            call.alpha.f64[0] = 1;
        gs_cublas_gemm(lane, &call, range, &run);
    }
    gs_cuda.cuMemFreeAsync(matrix, lane->stream);
    gs_cuda.cuStreamSynchronize(lane->stream);
}
