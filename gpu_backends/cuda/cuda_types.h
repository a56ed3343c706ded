/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the CUDA interface that is used, under NVIDIA's names, so that the library builds
 * without the CUDA toolkit. Enumerations are int here, as in the vendor's ABI; struct members
 * that are not set keep their place. check_headers.c holds all of it against NVIDIA's headers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice, CUdevice_attribute, CUmemorytype;
typedef int CUmemAllocationType, CUmemAllocationHandleType, CUmemLocationType, CUmemPool_attribute;
typedef int cublasStatus_t, cublasOperation_t, cublasMath_t;
typedef int cublasFillMode_t, cublasSideMode_t, cublasDiagType_t;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream, *cudaStream_t;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct cublasContext *cublasHandle_t;
typedef struct { float x, y; } cuComplex;
typedef struct { double x, y; } cuDoubleComplex;

enum {
#define GS_CONSTANT(type, name, value) name = value,
#include "constants.def"
#undef GS_CONSTANT
};

#include "cuda_structs.h"
