/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled, never linked: where NVIDIA's headers are installed, each row of api.def and
 * constants.def and each struct of cuda_structs.h is held against them.
 */
#include <cublas_v2.h>
#include <cuda.h>

/* cuda.h of CUDA 13 renames this to _v2, which has the same prototype; both are exported. */
#undef cuEventElapsedTime
#define cuEventElapsedTime cuEventElapsedTime_v2

#define GS_CUDA_FN(library, need, result, name, parameters)                               \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters), \
                   #name ": prototype differs from NVIDIA's");
#include "api.def"
#undef GS_CUDA_FN

#define GS_CONSTANT(type, name, value) \
    _Static_assert((int)(name) == (value), #name ": value differs from NVIDIA's");
#include "constants.def"
#undef GS_CONSTANT

/* Our structs under other names, beside NVIDIA's. */
#define CUmemLocation gs_CUmemLocation
#define CUmemPoolProps gs_CUmemPoolProps
#define CUDA_MEMCPY2D gs_CUDA_MEMCPY2D
#include "cuda_structs.h"
#undef CUmemLocation
#undef CUmemPoolProps
#undef CUDA_MEMCPY2D

#define GS_SAME_PLACE(type, member)                                        \
    _Static_assert(offsetof(type, member) == offsetof(gs_##type, member),  \
                   #type "." #member ": offset differs from NVIDIA's");
#define GS_SAME_SIZE(type) \
    _Static_assert(sizeof(type) == sizeof(gs_##type), #type ": size differs from NVIDIA's");

GS_SAME_SIZE(CUmemLocation)
GS_SAME_SIZE(CUmemPoolProps)
GS_SAME_PLACE(CUmemPoolProps, allocType)
GS_SAME_PLACE(CUmemPoolProps, location)
GS_SAME_PLACE(CUmemPoolProps, reserved)
GS_SAME_SIZE(CUDA_MEMCPY2D)
GS_SAME_PLACE(CUDA_MEMCPY2D, srcMemoryType)
GS_SAME_PLACE(CUDA_MEMCPY2D, srcHost)
GS_SAME_PLACE(CUDA_MEMCPY2D, srcDevice)
GS_SAME_PLACE(CUDA_MEMCPY2D, srcPitch)
GS_SAME_PLACE(CUDA_MEMCPY2D, dstMemoryType)
GS_SAME_PLACE(CUDA_MEMCPY2D, dstHost)
GS_SAME_PLACE(CUDA_MEMCPY2D, dstDevice)
GS_SAME_PLACE(CUDA_MEMCPY2D, dstPitch)
GS_SAME_PLACE(CUDA_MEMCPY2D, WidthInBytes)
GS_SAME_PLACE(CUDA_MEMCPY2D, Height)
