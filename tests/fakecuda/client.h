/* SPDX-License-Identifier: Apache-2.0
 *
 * A small client of libcuda and libcublas, real or double, for the programs that test the doubles.
 * Every entry point of api.def is a pointer with p_ before its name.
 */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "../../gpu_backends/cuda/cuda_types.h"

#define GS_CUDA_FN(library, need, result, name, parameters) \
    __attribute__((unused)) static result(*p_##name) parameters;
#include "../../gpu_backends/cuda/api.def"
#undef GS_CUDA_FN

static CUcontext context;
static CUstream stream;
static CUmemoryPool pool;
static cublasHandle_t handle;
__attribute__((unused)) static const double one = 1, zero;

static void load(const char *cuda_path, const char *cublas_path)
{
    void *CUDA = dlopen(cuda_path, RTLD_NOW | RTLD_GLOBAL);
    void *CUBLAS = dlopen(cublas_path, RTLD_NOW);
    if (!CUDA || !CUBLAS) {
        fprintf(stderr, "cannot load: %s\n", dlerror());
        _exit(1);
    }
#define GS_CUDA_FN(library, need, result, name, parameters) \
    p_##name = (result(*) parameters)dlsym(library, #name);
#include "../../gpu_backends/cuda/api.def"
#undef GS_CUDA_FN
}

static void start(const char *cuda_path, const char *cublas_path)
{
    load(cuda_path, cublas_path);
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    int failed = p_cuInit(0) || p_cuDevicePrimaryCtxRetain(&context, 0) ||
                 p_cuCtxPushCurrent_v2(context) || p_cuStreamCreate(&stream, 1) ||
                 p_cuMemPoolCreate(&pool, &props) || p_cublasCreate_v2(&handle) ||
                 p_cublasSetStream_v2(handle, stream);
    if (failed) {
        fprintf(stderr, "cannot start\n");
        _exit(1);
    }
}

static CUdeviceptr room(size_t bytes)
{
    CUdeviceptr pointer = 0;
    p_cuMemAllocFromPoolAsync(&pointer, bytes, pool, stream);
    p_cuStreamSynchronize(stream);
    return pointer;
}
