/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: questions to cuBLAS, and to the driver after a gemm went wrong.
 */
#include <math.h>
#include <stdlib.h>

#include "compare.h"

static int gemm(int ta, int tb, int m, int n, int k, int lda, int ldb, int ldc)
{
    CUdeviceptr d = room(1 << 16);
    int status = p_cublasDgemm_v2(handle, ta, tb, m, n, k, &one, (double *)d, lda, (double *)d, ldb,
                                  &zero, (double *)d, ldc);
    p_cuMemFreeAsync(d, stream);
    return status;
}

void ask_gemm_arguments(const char *group)
{
    start(cuda_path, cublas_path);
    int n = 0;
    Q(p_cublasGetVersion_v2(handle, &n));
    Q(n);
    Q(p_cublasGetVersion_v2(handle, NULL));
    Q(p_cublasGetVersion_v2(NULL, &n));
    Q(p_cublasCreate_v2(NULL));
    Q(p_cublasDestroy_v2(NULL));
    Q(p_cublasSetStream_v2(NULL, stream));
    Q(p_cublasSetMathMode(NULL, 0));
    for (int mode = -1; mode < 34; mode++)
        ASK("SetMathMode", p_cublasSetMathMode(handle, mode) * 1000 + mode);
    Q(p_cublasSetMathMode(handle, 0));
    Q(p_cublasDgemm_v2(NULL, 0, 0, 1, 1, 1, &one, NULL, 1, NULL, 1, &zero, NULL, 1));
    Q(gemm(0, 0, 2, 3, 4, 2, 4, 2));
    Q(gemm(0, 0, 2, 3, 4, 1, 4, 2));
    Q(gemm(0, 0, 2, 3, 4, 2, 3, 2));
    Q(gemm(0, 0, 2, 3, 4, 2, 4, 1));
    Q(gemm(1, 2, 2, 3, 4, 4, 3, 2));
    Q(gemm(1, 0, 2, 3, 4, 3, 4, 2));
    Q(gemm(3, 0, 2, 3, 4, 4, 4, 2));
    Q(gemm(-1, 0, 2, 3, 4, 4, 4, 2));
    Q(gemm('N', 0, 2, 3, 4, 4, 4, 2));
    Q(gemm(0, 0, -2, 3, 4, 4, 4, 2));
    Q(gemm(0, 0, 2, -3, 4, 4, 4, 2));
    Q(gemm(0, 0, 2, 3, -4, 4, 4, 2));
    Q(gemm(0, 0, 0, 3, 4, 0, 4, 1));
    Q(gemm(0, 0, 0, 3, 4, 1, 4, 1));
    Q(gemm(0, 0, 2, 3, 0, 2, 1, 2));
    Q(gemm(0, 0, 2, 3, 0, 2, 0, 2));
    Q(p_cublasDgemm_v2(handle, 0, 0, 0, 0, 0, &one, NULL, 1, NULL, 1, &zero, NULL, 1));
    Q(p_cublasDgemm_v2(handle, 0, 0, 0, 0, 0, NULL, NULL, 1, NULL, 1, NULL, NULL, 1));
    CUdeviceptr d = room(64);
    double *p = (double *)d;
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, NULL, p, 1, p, 1, &zero, p, 1));
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, &one, p, 1, p, 1, NULL, p, 1));
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, &zero, NULL, 1, NULL, 1, &zero, p, 1));
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 0, &one, NULL, 1, NULL, 1, &one, p, 1));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, &one, p, 1, p, 1, &zero, NULL, 1));
    Q(p_cuStreamSynchronize(stream));
}

static double one_by_one(double alpha, double a, double b, double beta, double c, int k)
{
    double host[3] = { a, b, c };
    CUdeviceptr d = room(64);
    double *p = (double *)d;
    p_cuMemcpyHtoDAsync_v2(d, host, sizeof host, stream);
    p_cublasDgemm_v2(handle, 0, 0, 1, 1, k, &alpha, p, 1, p + 1, 1, &beta, p + 2, 1);
    p_cuMemcpyDtoHAsync_v2(host, d, sizeof host, stream);
    p_cuStreamSynchronize(stream);
    return host[2];
}

static float tf32_sample(int mode)
{
    float host[3] = { 1 + 0x1p-12f, 1, 0 }, alpha = 1, beta = 0, result;
    CUdeviceptr d = room(3 * 64 * 64 * 4);
    float *p = (float *)d, *block = calloc(64 * 64, 4);
    for (int i = 0; i < 64; i++)
        block[i * 65] = host[0];
    p_cuMemcpyHtoDAsync_v2(d, block, 64 * 64 * 4, stream);
    for (int i = 0; i < 64; i++)
        block[i * 65] = 1;
    p_cuMemcpyHtoDAsync_v2(d + 64 * 64 * 4, block, 64 * 64 * 4, stream);
    p_cublasSetMathMode(handle, mode);
    p_cublasSgemm_v2(handle, 0, 0, 64, 64, 64, &alpha, p, 64, p + 64 * 64, 64, &beta,
                     p + 2 * 64 * 64, 64);
    p_cuMemcpyDtoHAsync_v2(&result, d + 2 * 64 * 64 * 4, 4, stream);
    p_cuStreamSynchronize(stream);
    return result;
}

void ask_gemm_numbers(const char *group)
{
    start(cuda_path, cublas_path);
    Q(one_by_one(1, 2, 3, 0, NAN, 1));
    Q(isnan(one_by_one(0, NAN, 3, 1, 5, 1)));
    Q(isnan(one_by_one(0, NAN, 3, 0, 5, 1)));
    Q(one_by_one(1, 2, 3, 0, NAN, 0));
    Q(one_by_one(1, 2, 3, 4, 5, 0));
    Q(one_by_one(0, 2, 3, 4, 5, 1));
    Q(isnan(one_by_one(NAN, 2, 3, 0, 5, 1)));
    Q(isnan(one_by_one(NAN, 2, 3, 0, 5, 0)));
    Q(isnan(one_by_one(1, 2, 3, NAN, 5, 1)));
    Q(tf32_sample(0) == 1);
    Q(tf32_sample(3) == 1);
    Q(tf32_sample(2) == 1);
}

void ask_tf32_override(const char *group)
{
    setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
    start(cuda_path, cublas_path);
    Q(tf32_sample(0) == 1);
    Q(tf32_sample(2) == 1);
    Q(tf32_sample(16) == 1);
}

void ask_tf32_forbidden(const char *group)
{
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
    start(cuda_path, cublas_path);
    Q(tf32_sample(0) == 1);
    Q(tf32_sample(3) == 1);
}

void ask_broken_context(const char *group)
{
    start(cuda_path, cublas_path);
    size_t a, b;
    int n;
    const char *text;
    float ms;
    double x[4] = { 0 };
    CUcontext ctx;
    CUstream other;
    CUevent event;
    cublasHandle_t second;
    CUdeviceptr d = room(64), fresh;
    double *bad = (double *)4096, *p = (double *)d;
    p_cuEventCreate(&event, 0);
    p_cuEventRecord(event, stream);
    Q(p_cublasDgemm_v2(handle, 0, 0, 256, 256, 256, &one, bad, 256, bad, 256, &zero, bad, 256));
    Q(p_cuMemcpyDtoHAsync_v2(x, d, 8, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuMemGetInfo_v2(&a, &b));
    Q(p_cuMemAllocFromPoolAsync(&fresh, 64, pool, stream));
    Q(p_cuMemcpyHtoDAsync_v2(d, x, 8, stream));
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, &one, p, 1, p, 1, &zero, p, 1));
    Q(p_cublasSetStream_v2(handle, stream));
    Q(p_cublasSetMathMode(handle, 0));
    Q(p_cublasGetVersion_v2(handle, &n));
    Q(p_cublasCreate_v2(&second));
    Q(p_cuEventRecord(event, stream));
    Q(p_cuEventElapsedTime(&ms, event, event));
    Q(p_cuStreamCreate(&other, 1));
    Q(p_cuEventCreate(&event, 0));
    Q(p_cuMemPoolTrimTo(pool, 0));
    Q(p_cuMemFreeAsync(d, stream));
    Q(p_cuEventDestroy_v2(event));
    Q(p_cuStreamDestroy_v2(stream));
    Q(p_cublasDestroy_v2(handle));
    Q(p_cuInit(0));
    Q(p_cuDeviceGetCount(&n));
    Q(p_cuDeviceGetAttribute(&n, 16, 0));
    Q(p_cuGetErrorName(700, &text));
    Q(p_cuCtxPushCurrent_v2(context));
    Q(p_cuCtxPopCurrent_v2(&ctx));
    Q(p_cuDevicePrimaryCtxRetain(&ctx, 0));
    Q(p_cuCtxPopCurrent_v2(&ctx));
}

void ask_misaligned(const char *group)
{
    start(cuda_path, cublas_path);
    CUdeviceptr d = room(1 << 20);
    double *p = (double *)(d + 4);
    Q(p_cublasDgemm_v2(handle, 0, 0, 64, 64, 64, &one, p, 64, p, 64, &zero, p + 9000, 64));
    Q(p_cuStreamSynchronize(stream));
}

void ask_beyond_allocation(const char *group)
{
    start(cuda_path, cublas_path);
    CUdeviceptr d = room(1 << 10);
    double *p = (double *)d;
    Q(p_cublasDgemm_v2(handle, 0, 0, 64, 64, 64, &one, p, 64, p, 64, &zero, p, 64));
    Q(p_cuStreamSynchronize(stream));
}
