/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between host operands and device ranges: the one door through which matrices move.
 * Exactly rows elements of each of cols columns are touched on the host, never the gaps and never
 * past the last column; on the device the matrix is packed.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu_backends/cuda/cuda.h"

static size_t packed_bytes(gs_dtype dtype, const struct gs_operand *operand)
{
    return (size_t)operand->rows * (size_t)operand->cols * gs_element_bytes(dtype);
}

/* Whether the operand's elements lie in one piece. */
static bool is_contiguous(const struct gs_operand *operand)
{
    return operand->ld == operand->rows || operand->cols == 1;
}

static CUdeviceptr device_address(gs_dtype dtype, const struct gs_device_range *range,
                                  int64_t row, int64_t col)
{
    return range->address + (size_t)(row + col * range->ld) * gs_element_bytes(dtype);
}

static char *host_address(gs_dtype dtype, const struct gs_operand *operand, int64_t row,
                          int64_t col)
{
    return (char *)operand->host +
           ((size_t)row + (size_t)col * (size_t)operand->ld) * gs_element_bytes(dtype);
}

bool gs_copy_block_in(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                      const struct gs_device_range *range, int64_t row, int64_t col,
                      int64_t rows, int64_t cols, struct gs_run *run)
{
    size_t element = gs_element_bytes(dtype);
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = host_address(dtype, operand, row, col),
        .srcPitch = (size_t)operand->ld * element,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = device_address(dtype, range, row, col),
        .dstPitch = (size_t)range->ld * element,
        .WidthInBytes = (size_t)rows * element,
        .Height = (size_t)cols,
    };
    return rows == 0 || cols == 0 || gs_cu_ok(run, gs_cuda.cuMemcpy2DAsync_v2(&copy, lane->stream));
}

bool gs_copy_block_out(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                       const struct gs_device_range *range, int64_t row, int64_t col,
                       int64_t rows, int64_t cols, struct gs_run *run)
{
    size_t element = gs_element_bytes(dtype);
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = device_address(dtype, range, row, col),
        .srcPitch = (size_t)range->ld * element,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = host_address(dtype, operand, row, col),
        .dstPitch = (size_t)operand->ld * element,
        .WidthInBytes = (size_t)rows * element,
        .Height = (size_t)cols,
    };
    return rows == 0 || cols == 0 || gs_cu_ok(run, gs_cuda.cuMemcpy2DAsync_v2(&copy, lane->stream));
}

static bool copy_in(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                    struct gs_device_range *range, struct gs_run *run)
{
    if (operand->part != GS_FULL)
        return gs_triangle_to_device(lane, dtype, operand, range, run);
    if (is_contiguous(operand))
        return gs_cu_ok(run,
                        gs_cuda.cuMemcpyHtoDAsync_v2(range->address, operand->host,
                                                     packed_bytes(dtype, operand), lane->stream));
    return gs_copy_block_in(lane, dtype, operand, range, 0, 0, operand->rows, operand->cols, run);
}

bool gs_operand_to_device(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                          struct gs_device_range *range, struct gs_run *run)
{
    if (!gs_cu_ok(run, gs_cuda.cuMemAllocFromPoolAsync(&range->address,
                                                       packed_bytes(dtype, operand),
                                                       gs_cuda_device.pool, lane->stream))) {
        range->address = 0;
        return false;
    }
    range->ld = operand->rows;
    return !(operand->role & GS_IN) || copy_in(lane, dtype, operand, range, run);
}

bool gs_operand_to_host(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                        struct gs_device_range *range, struct gs_run *run)
{
    if (operand->part != GS_FULL)
        return gs_triangle_to_host(lane, dtype, operand, range, run);
    if (is_contiguous(operand))
        return gs_cu_ok(run,
                        gs_cuda.cuMemcpyDtoHAsync_v2(operand->host, range->address,
                                                     packed_bytes(dtype, operand), lane->stream));
    return gs_copy_block_out(lane, dtype, operand, range, 0, 0, operand->rows, operand->cols, run);
}

void gs_range_free(struct gs_lane *lane, struct gs_device_range *range, bool at_rest)
{
    if (range->address != 0)
        gs_cuda.cuMemFreeAsync(range->address, lane->stream);
    if (at_rest)
        free(range->staging);
    range->staging = NULL;
}

void gs_cuda_trim(void)
{
    gs_cuda.cuMemPoolTrimTo(gs_cuda_device.pool, 0);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { PROBE_ROUNDS = 3 };

/* Best of a few copies of bytes each way, s. */
static bool time_copies(struct gs_lane *lane, void *host, CUdeviceptr device, size_t bytes,
                        double *in, double *out, struct gs_run *run)
{
    *in = *out = 1e9;
    for (int i = 0; i < PROBE_ROUNDS; i++) {
        double t0 = now();
        if (!gs_cu_ok(run, gs_cuda.cuMemcpyHtoDAsync_v2(device, host, bytes, lane->stream)) ||
            !gs_cu_ok(run, gs_cuda.cuStreamSynchronize(lane->stream)))
            return false;
        double t1 = now();
        if (!gs_cu_ok(run, gs_cuda.cuMemcpyDtoHAsync_v2(host, device, bytes, lane->stream)) ||
            !gs_cu_ok(run, gs_cuda.cuStreamSynchronize(lane->stream)))
            return false;
        double t2 = now();
        *in = t1 - t0 < *in ? t1 - t0 : *in;
        *out = t2 - t1 < *out ? t2 - t1 : *out;
    }
    return true;
}

static double bandwidth(double bytes, double seconds, double first_byte)
{
    double moving = seconds > 2 * first_byte ? seconds - first_byte : seconds / 2;
    return bytes / moving;
}

bool gs_cuda_measure_link(struct gs_lane *lane, struct gs_device_facts *facts, struct gs_run *run)
{
    const size_t small = 4096, large = (size_t)16 << 20;
    double small_in, small_out, large_in, large_out;
    CUdeviceptr device = 0;
    void *host = malloc(large);
    if (host == NULL) {
        run->reason = GS_MEM_HOST;
        return false;
    }
    memset(host, 1, large); /* an untouched page would be timed with its fault */
    bool ok =
        gs_cu_ok(run, gs_cuda.cuMemAllocFromPoolAsync(&device, large, gs_cuda_device.pool,
                                                      lane->stream)) &&
        time_copies(lane, host, device, small, &small_in, &small_out, run) &&
        time_copies(lane, host, device, large, &large_in, &large_out, run);
    if (device != 0)
        gs_cuda.cuMemFreeAsync(device, lane->stream);
    if (!ok)
        gs_cuda.cuStreamSynchronize(lane->stream); /* nothing may still write into host */
    free(host);
    if (!ok)
        return false;
    facts->h2d_first_byte = small_in;
    facts->d2h_first_byte = small_out;
    facts->h2d_bandwidth = bandwidth((double)large, large_in, small_in);
    facts->d2h_bandwidth = bandwidth((double)large, large_out, small_out);
    return true;
}
