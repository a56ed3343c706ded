/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: questions to the driver.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

void ask_before_init(const char *group)
{
    load(cuda_path, cublas_path);
    int n = -1;
    const char *text = NULL;
    size_t a, b;
    CUcontext ctx = NULL;
    Q(p_cuDriverGetVersion(&n));
    Q(p_cuDriverGetVersion(NULL));
    Q(p_cuGetErrorName(700, &text));
    Q(p_cuGetErrorName(12345, &text));
    Q(text == NULL);
    Q(p_cuDeviceGetCount(&n));
    Q(p_cuDeviceGet(&n, 0));
    Q(p_cuDevicePrimaryCtxRetain(&ctx, 0));
    Q(p_cuCtxPushCurrent_v2(ctx));
    Q(p_cuCtxPopCurrent_v2(&ctx));
    Q(p_cuMemGetInfo_v2(&a, &b));
    Q(p_cuStreamCreate(&stream, 1));
    Q(p_cuMemPoolTrimTo(NULL, 0));
    Q(p_cuInit(1));
    Q(p_cuInit(0));
    Q(p_cuInit(0));
    Q(p_cuDeviceGetCount(NULL));
    Q(p_cuDeviceGet(&n, 99));
    Q(p_cuDeviceGet(&n, -1));
    Q(p_cuDeviceGet(NULL, 0));
    Q(p_cuDeviceGetAttribute(&n, 16, 99));
    Q(p_cuDeviceGetAttribute(&n, 9999, 0));
    Q(p_cuDeviceGetAttribute(NULL, 16, 0));
    char name[4] = "";
    Q(p_cuDeviceGetName(name, 4, 0));
    Q(strlen(name));
    Q(p_cuDevicePrimaryCtxRetain(NULL, 0));
    Q(p_cuDevicePrimaryCtxRetain(&ctx, 99));
    static const int attributes[] = { 11, 13, 16, 36, 37, 75, 76, 87, 115 };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        Q(p_cuDeviceGetAttribute(&n, attributes[i], 0));
        Q(n);
    }
}

void ask_no_context(const char *group)
{
    load(cuda_path, cublas_path);
    size_t a, b;
    CUcontext ctx;
    CUevent event;
    CUmemPoolProps props = { .allocType = 1, .location = { 1, 0 } };
    CUdeviceptr d = 0;
    CUDA_MEMCPY2D copy = { .srcMemoryType = 1 };
    float ms;
    Q(p_cuInit(0));
    Q(p_cuMemGetInfo_v2(&a, &b));
    Q(p_cuCtxPopCurrent_v2(&ctx));
    Q(p_cuCtxPopCurrent_v2(NULL));
    Q(p_cuCtxPushCurrent_v2(NULL));
    Q(p_cuCtxPopCurrent_v2(NULL));
    Q(p_cuStreamCreate(&stream, 1));
    Q(p_cuEventCreate(&event, 0));
    Q(p_cuMemPoolCreate(&pool, &props));
    Q(p_cuMemAllocFromPoolAsync(&d, 100, pool, NULL));
    Q(p_cuStreamSynchronize(NULL));
    Q(p_cuMemFreeAsync(0, NULL));
    Q(p_cuMemcpyHtoDAsync_v2(4096, &a, 8, NULL));
    Q(p_cuMemcpyHtoDAsync_v2(4096, &a, 0, NULL));
    Q(p_cuMemcpy2DAsync_v2(&copy, NULL));
    Q(p_cuEventElapsedTime(&ms, NULL, NULL));
    Q(p_cublasCreate_v2(&handle));
    Q(p_cuCtxPopCurrent_v2(&ctx));
}

static void *ask_in_thread(void *argument)
{
    const char *group = argument;
    CUdeviceptr d = 0;
    CUevent event;
    double x = 0;
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuMemAllocFromPoolAsync(&d, 100, pool, stream));
    Q(p_cuMemcpyHtoDAsync_v2(d, &x, 8, stream));
    Q(p_cuMemFreeAsync(d, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuEventCreate(&event, 0));
    Q(p_cuMemPoolTrimTo(pool, 0));
    Q(p_cublasSetStream_v2(handle, stream));
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, &one, NULL, 1, NULL, 1, &zero, NULL, 1));
    cublasHandle_t other;
    Q(p_cublasCreate_v2(&other));
    return NULL;
}

void ask_other_thread(const char *group)
{
    start(cuda_path, cublas_path);
    pthread_t thread;
    pthread_create(&thread, NULL, ask_in_thread, (void *)group);
    pthread_join(thread, NULL);
    Q(p_cuStreamSynchronize(stream));
}

void ask_copies(const char *group)
{
    start(cuda_path, cublas_path);
    static char host[1 << 16];
    CUdeviceptr d = room(1000), other = 0;
    Q(d % 512);
    Q(p_cuMemcpyHtoDAsync_v2(d, host, 1000, stream));
    Q(p_cuMemcpyHtoDAsync_v2(d, host, 1001, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuMemcpyHtoDAsync_v2(d, host, 60000, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuMemcpyDtoHAsync_v2(host, d + 999, 2, stream));
    Q(p_cuMemcpyDtoHAsync_v2(NULL, d, 2, stream));
    Q(p_cuMemcpyDtoHAsync_v2(NULL, d, 0, stream));
    Q(p_cuMemcpyHtoDAsync_v2(0, host, 8, stream));
    Q(p_cuMemcpyHtoDAsync_v2(0, host, 0, stream));
    Q(p_cuMemcpyHtoDAsync_v2(4096, host, 8, stream));
    Q(p_cuMemcpyHtoDAsync_v2(d - (1ull << 40), host, 8, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuMemAllocFromPoolAsync(&other, 0, pool, stream));
    Q(other == 0);
    Q(p_cuMemAllocFromPoolAsync(NULL, 8, pool, stream));
    Q(p_cuMemAllocFromPoolAsync(&other, 1ull << 50, pool, stream));
    Q(p_cuMemFreeAsync(0, stream));
    Q(p_cuMemFreeAsync(d + 8, stream));
    Q(p_cuMemFreeAsync(4096, stream));
    Q(p_cuMemFreeAsync(d, stream));
    Q(p_cuMemFreeAsync(d, stream));
    Q(p_cuMemcpyHtoDAsync_v2(d, host, 8, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuMemcpyHtoDAsync_v2(d, host, 8, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuStreamSynchronize(NULL));
}

static int copy_2d(size_t width, size_t height, size_t source_pitch, size_t pitch, CUdeviceptr d,
                   size_t x)
{
    static char host[1 << 16];
    CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host,
        .srcPitch = source_pitch, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = d,
        .dstXInBytes = x, .dstPitch = pitch, .WidthInBytes = width, .Height = height };
    return p_cuMemcpy2DAsync_v2(&copy, stream);
}

void ask_2d(const char *group)
{
    start(cuda_path, cublas_path);
    CUdeviceptr d = room(1000);
    CUDA_MEMCPY2D copy = { .srcMemoryType = 7, .dstMemoryType = 7, .WidthInBytes = 8,
                           .Height = 1 };
    Q(copy_2d(100, 10, 100, 100, d, 0));
    Q(copy_2d(100, 10, 99, 100, d, 0));
    Q(copy_2d(100, 10, 100, 99, d, 0));
    Q(copy_2d(100, 1, 50, 50, d, 0));
    Q(copy_2d(100, 1, 0, 0, d, 0));
    Q(copy_2d(100, 2, 0, 100, d, 0));
    Q(copy_2d(100, 1, 2147483648u, 100, d, 0));
    Q(copy_2d(100, 1, 2147483647u, 100, d, 0));
    Q(copy_2d(100, 1, 100, 2147483648u, d, 0));
    Q(copy_2d(100, 1, 100, 2147483647u, d, 0));
    Q(copy_2d(0, 2, 2147483648u, 100, d, 0));
    Q(copy_2d(0, 10, 100, 100, d, 0));
    Q(copy_2d(100, 0, 100, 100, d, 0));
    Q(copy_2d(0, 0, 0, 0, 0, 0));
    Q(copy_2d(0, 10, 2147483648u, 1, d, 0));
    Q(copy_2d(100, 2, 200, 100, d, 8));
    Q(copy_2d(92, 10, 100, 100, d, 8));
    Q(copy_2d(100, 20, 100, 100, d, 0));
    Q(p_cuStreamSynchronize(stream));
    Q(copy_2d(100, 10, 100, 8000, d, 0));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuMemcpy2DAsync_v2(NULL, stream));
    Q(p_cuMemcpy2DAsync_v2(&copy, stream));
    Q(copy_2d(8, 1, 8, 8, 4096, 0));
    Q(p_cuStreamSynchronize(stream));
}

void ask_events(const char *group)
{
    start(cuda_path, cublas_path);
    CUevent begin, end, untimed;
    float ms = -1;
    size_t bytes = 256u << 20;
    char *host = malloc(bytes);
    memset(host, 0, bytes);
    CUdeviceptr d = room(bytes);
    Q(p_cuEventCreate(&begin, 0));
    Q(p_cuEventCreate(&end, 0));
    Q(p_cuEventCreate(&untimed, 2));
    Q(p_cuEventCreate(&untimed, 99));
    Q(p_cuEventCreate(NULL, 0));
    Q(p_cuEventElapsedTime(&ms, begin, end));
    Q(p_cuEventElapsedTime(NULL, begin, end));
    Q(p_cuEventRecord(begin, stream));
    Q(p_cuEventElapsedTime(&ms, begin, end));
    p_cublasDgemm_v2(handle, 0, 0, 5000, 5000, 5000, &one, (double *)d, 5000, (double *)d, 5000,
                     &zero, (double *)d, 5000);
    Q(p_cuEventRecord(end, stream));
    Q(p_cuEventElapsedTime(&ms, begin, end));
    Q(p_cuEventElapsedTime(&ms, end, begin));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuEventElapsedTime(&ms, begin, end));
    Q(ms > 0);
    Q(p_cuEventElapsedTime(&ms, end, begin));
    Q(ms < 0);
    Q(p_cuEventRecord(untimed, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuEventElapsedTime(&ms, begin, untimed));
    Q(p_cuEventRecord(NULL, stream));
    Q(p_cuEventElapsedTime(&ms, NULL, end));
    Q(p_cuEventDestroy_v2(end));
    Q(p_cuEventDestroy_v2(NULL));
    Q(p_cuStreamCreate(NULL, 1));
    CUstream other;
    Q(p_cuStreamCreate(&other, 99));
    Q(p_cuStreamDestroy_v2(NULL));
    Q(p_cuEventRecord(begin, NULL));
}

void ask_pool(const char *group)
{
    start(cuda_path, cublas_path);
    size_t total, start_free, now;
    uint64_t threshold = UINT64_MAX;
    int on = 1;
    CUmemoryPool other = NULL;
    CUmemPoolProps props = { .allocType = 1, .location = { 1, 0 } };
#define HELD() (p_cuMemGetInfo_v2(&now, &total), (int)((start_free - now) >> 20))
    p_cuMemGetInfo_v2(&start_free, &total);
    CUdeviceptr d = room(64u << 20);
    Q(HELD());
    Q(p_cuMemFreeAsync(d, stream));
    Q(p_cuStreamSynchronize(stream));
    Q(HELD());
    Q(p_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    d = room(64u << 20);
    Q(p_cuMemFreeAsync(d, stream));
    Q(p_cuMemPoolTrimTo(pool, 0));
    Q(HELD());
    Q(p_cuStreamSynchronize(stream));
    Q(HELD());
    Q(p_cuMemPoolTrimTo(pool, 0));
    Q(HELD());
    Q(p_cuMemPoolSetAttribute(pool, 1, &on));
    Q(p_cuMemPoolSetAttribute(pool, 5, &threshold));
    Q(p_cuMemPoolSetAttribute(pool, 99, &threshold));
    Q(p_cuMemPoolSetAttribute(NULL, 4, &threshold));
    Q(p_cuMemPoolTrimTo(NULL, 0));
    Q(p_cuMemPoolCreate(NULL, &props));
    Q(p_cuMemPoolCreate(&other, NULL));
    props.allocType = 9;
    Q(p_cuMemPoolCreate(&other, &props));
    props.allocType = 1, props.location.id = 99;
    Q(p_cuMemPoolCreate(&other, &props));
    props.location.id = 0, props.location.type = 77;
    Q(p_cuMemPoolCreate(&other, &props));
    props.location.type = 1, props.reserved[5] = 1;
    Q(p_cuMemPoolCreate(&other, &props));
    props.reserved[5] = 0, props.maxSize = 64u << 20;
    Q(p_cuMemPoolCreate(&other, &props));
    Q(p_cuMemAllocFromPoolAsync(&d, 65u << 20, other, stream));
    Q(p_cuMemAllocFromPoolAsync(&d, 8, NULL, stream));
}

/* How late a copy to ordinary memory is: 1 if it is there when the call returns. */
void ask_late_copy(const char *group)
{
    start(cuda_path, cublas_path);
    size_t n = 4000, bytes = n * n * 8;
    double *host = calloc(n * n, 8);
    CUdeviceptr d = room(bytes);
    p_cuMemcpyHtoDAsync_v2(d, host, bytes, stream);
    for (size_t i = 0; i < n * n; i++)
        host[i] = 5;
    for (int i = 0; i < 20; i++)
        p_cublasDgemm_v2(handle, 0, 0, (int)n, (int)n, (int)n, &zero, (double *)d, (int)n,
                         (double *)d, (int)n, &one, (double *)d, (int)n);
    Q(p_cuMemcpyDtoHAsync_v2(host, d, bytes, stream));
    Q(host[0] == 0);
    Q(host[n * n - 1] == 0);
    Q(p_cuStreamSynchronize(stream));
    Q(host[n * n - 1] == 0);
    Q(host[0] == 0);
    for (size_t small = 64; small <= 1 << 20; small *= 128) {
        host[0] = host[small / 8 - 1] = 7;
        for (int i = 0; i < 20; i++)
            p_cublasDgemm_v2(handle, 0, 0, 1000, 1000, 1000, &one, (double *)d, (int)n,
                             (double *)d, (int)n, &zero, (double *)d, (int)n);
        p_cuMemcpyDtoHAsync_v2(host, d, small, stream);
        Q(host[small / 8 - 1] == 0);
        p_cuStreamSynchronize(stream);
    }
}
