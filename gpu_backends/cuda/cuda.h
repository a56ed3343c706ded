/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the CUDA backend: the pointer table, the device's context, lanes, memory and copies.
 */
#pragma once

#include "cuda_types.h"
#include "gpu_backends/backend.h"

/* Pointers to the entry points of api.def, filled by the loader; OPTIONAL ones may be NULL. */
struct gs_cuda_api {
#define GS_CUDA_FN(library, need, result, name, parameters) result(*name) parameters;
#include "api.def"
#undef GS_CUDA_FN
};
extern struct gs_cuda_api gs_cuda;

/* Opens libcuda and resolves its rows. L801 or L805. path as GPUSHIM_CUDA_PATH. */
gs_reason gs_cuda_load_driver(const char *path);

/* Opens cuBLAS and resolves its rows. Looked for in: path if it is not "auto" (alone); what is
 * mapped already; NVIDIA's wheels beside module (…/site-packages/nvidia/…/lib); CONDA_PREFIX; the
 * system loader; CUDA_HOME; /usr/local/cuda. The newest of CUDA 13 and 12 that the
 * driver supports. L803 (only newer ones found), L804 or L805. Adds
 * the path to libraries. */
gs_reason gs_cuda_load_cublas(const char *path, const char *module, char *libraries, size_t size);

/* Path of the file that holds an address, appended to libraries with a newline. */
void gs_cuda_note_library(const void *address, char *libraries, size_t size);

/* A stream with everything a call needs beside it; used by one thread at a time. */
struct gs_lane {
    CUstream stream;
    cublasHandle_t cublas;
    cublasMath_t math;            /* mode the handle is in; -1: not set yet */
    CUevent started, copied_in, computed, copied_out;
    bool ready, in_use;
};

/* The one device. */
struct gs_cuda_device {
    CUdevice device;
    CUcontext context;
    CUmemoryPool pool;
    bool allow_tf32;              /* the user's GPUSHIM_PRECISION */
    bool emulation_asked;         /* vendor variables ask for FP64 emulation */
    int max_pitch;
};
extern struct gs_cuda_device gs_cuda_device;

/* Starts context, pool and the first lane; fills facts. */
gs_reason gs_cuda_open(const struct gs_device_options *options, struct gs_device_facts *facts,
                       int *detail, bool (*stop)(void));

/* Takes a free lane, waiting for one; makes it if it is new. NULL with run->reason set when that
 * fails. The context is current in the calling thread until the lane is given back. */
struct gs_lane *gs_lane_take(struct gs_run *run);
void gs_lane_give(struct gs_lane *lane);
bool gs_lane_all_busy(void);

/* A lane whose stream could not be brought to rest is never used again. */
void gs_lane_abandon(struct gs_lane *lane);

/* Whether result is success; otherwise notes the reason in run unless it has one: M402 when
 * memory is short, E902 when the context is lost, else E901. */
bool gs_cu_ok(struct gs_run *run, CUresult result);
bool gs_cublas_ok(struct gs_run *run, cublasStatus_t status);

/* A matrix on the device, column-major with leading dimension rows. Of a triangular operand the
 * other triangle's contents are unspecified. */
struct gs_device_range {
    CUdeviceptr address;
    int64_t ld;
    void *staging;                /* diagonal blocks of a triangle on the host, or NULL */
};

/* The one door from host operands to device memory: a range that holds the operand's elements
 * (if it is read), ordered on the lane's stream. False with run->reason set. */
bool gs_operand_to_device(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                          struct gs_device_range *range, struct gs_run *run);

/* Queues the copy of exactly the operand's elements back to the host. A triangle is whole only
 * after gs_triangle_finish. */
bool gs_operand_to_host(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                        struct gs_device_range *range, struct gs_run *run);

/* Copies of rows x cols elements at row, col of an operand. */
bool gs_copy_block_in(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                      const struct gs_device_range *range, int64_t row, int64_t col,
                      int64_t rows, int64_t cols, struct gs_run *run);
bool gs_copy_block_out(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                       const struct gs_device_range *range, int64_t row, int64_t col,
                       int64_t rows, int64_t cols, struct gs_run *run);

/* The same for one triangle: rectangles go directly, diagonal blocks through staging, so that
 * neither link nor host sees an element of the other triangle. */
bool gs_triangle_to_device(struct gs_lane *lane, gs_dtype dtype,
                           const struct gs_operand *operand, struct gs_device_range *range,
                           struct gs_run *run);
bool gs_triangle_to_host(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                         struct gs_device_range *range, struct gs_run *run);

/* Writes the diagonal blocks that have arrived in staging to the operand; nothing if it has
 * none. The stream is at rest. */
void gs_triangle_finish(gs_dtype dtype, const struct gs_operand *operand,
                        const struct gs_device_range *range);

/* Gives a range back, in stream order; its staging only when the stream is at rest. */
void gs_range_free(struct gs_lane *lane, struct gs_device_range *range, bool at_rest);

/* Gives the pool's idle memory back to the device. */
void gs_cuda_trim(void);

/* Measures the link with pageable memory; needs a lane. */
bool gs_cuda_measure_link(struct gs_lane *lane, struct gs_device_facts *facts, struct gs_run *run);

/* Queues the computation of a call on ranges in operand order; one per operation. */
typedef bool gs_compute(struct gs_lane *lane, const struct gs_call *call,
                        const struct gs_device_range *range, struct gs_run *run);
gs_compute gs_cublas_gemm, gs_cublas_symm, gs_cublas_hemm, gs_cublas_syrk, gs_cublas_herk,
    gs_cublas_syr2k, gs_cublas_her2k, gs_cublas_trmm, gs_cublas_trsm, gs_cublas_gemmt;

/* Runs one product of each type, so that the first call does not pay for loading kernels.
 * Failures are ignored: the call itself will meet them. */
void gs_cublas_warm_up(struct gs_lane *lane);

/* Why cuBLAS could not compute a call: U304 where a size is over its 32-bit interface and the
 * 64-bit one is missing. */
gs_reason gs_cublas_objection(const struct gs_call *call);

/* The whole run of one call (backend.h). */
void gs_cuda_run(const struct gs_call *call, struct gs_run *run);
