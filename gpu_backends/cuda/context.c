/* SPDX-License-Identifier: Apache-2.0
 *
 * Start-up of the device, in steps that name what is missing, and its lanes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_backends/cuda/cuda.h"

enum { LANES = 8 };

struct gs_cuda_device gs_cuda_device;

static struct gs_lane lanes[LANES];
static pthread_mutex_t lanes_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t lane_free = PTHREAD_COND_INITIALIZER;

static gs_reason reason_of_init(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return GS_NO_REASON;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
        return GS_NO_DEVICE;
    case CUDA_ERROR_STUB_LIBRARY:
        return GS_NO_DRIVER;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return GS_DRIVER_TOO_OLD;
    default:
        return GS_DEVICE_REFUSED;
    }
}

/* A driver older than 12.0 lacks entry points that cuBLAS 12 and 13 rely on. */
static gs_reason check_driver(int *detail)
{
    int version = 0;
    CUresult result = gs_cuda.cuInit(0);
    *detail = result;
    if (result != CUDA_SUCCESS)
        return reason_of_init(result);
    *detail = gs_cuda.cuDriverGetVersion(&version);
    if (*detail != CUDA_SUCCESS)
        return GS_DEVICE_REFUSED;
    *detail = version;
    return version < 12000 ? GS_DRIVER_TOO_OLD : GS_NO_REASON;
}

/* Names under which launchers tell a process its place on the node. */
static const char *const local_rank_names[] = {
    "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",   "MV2_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",            "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID",
    "JSM_NAMESPACE_LOCAL_RANK",   "LOCAL_RANK"};

/* Index for "auto": the local rank modulo the visible devices, else the first. */
static int automatic_index(int count)
{
    for (size_t i = 0; i < sizeof local_rank_names / sizeof local_rank_names[0]; i++) {
        const char *text = getenv(local_rank_names[i]);
        char *end = NULL;
        long rank = text != NULL ? strtol(text, &end, 10) : -1;
        if (rank >= 0 && end != text && *end == '\0')
            return (int)(rank % count);
    }
    return 0;
}

static gs_reason choose_device(const char *wanted, struct gs_device_facts *facts, int *detail)
{
    int count = 0;
    if (strcmp(wanted, "none") == 0)
        return GS_NO_DEVICE;
    *detail = gs_cuda.cuDeviceGetCount(&count);
    if (*detail != CUDA_SUCCESS)
        return reason_of_init(*detail);
    if (count == 0)
        return GS_NO_DEVICE;
    char *end = NULL;
    long index = strtol(wanted, &end, 10);
    if (end == wanted || *end != '\0')
        index = automatic_index(count);
    if (index < 0 || index >= count)
        return GS_NO_DEVICE;
    facts->ordinal = (int)index;
    *detail = gs_cuda.cuDeviceGet(&gs_cuda_device.device, (int)index);
    return reason_of_init(*detail);
}

static int attribute(CUdevice_attribute which, int otherwise)
{
    int value = 0;
    CUresult result = gs_cuda.cuDeviceGetAttribute(&value, which, gs_cuda_device.device);
    return result == CUDA_SUCCESS && value > 0 ? value : otherwise;
}

/* FP32 lanes of a multiprocessor by compute capability (CUDA C programming guide, "arithmetic
 * instructions"): 128 but for the data-centre parts before Hopper and Volta's generation. */
static int fp32_lanes(int major, int minor)
{
    return major == 7 || (major == 6 && minor == 0) || (major == 8 && minor == 0) ? 64 : 128;
}

/* Peak rates from the device's properties. The data-centre parts of compute capability 8.0, 9.0
 * and 10.0 compute FP64 products on tensor cores at twice the vector rate. */
static void rates_from_properties(struct gs_device_facts *facts)
{
    int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7);
    int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    double clock = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1500000) * 1e3;
    double ratio = attribute(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 32);
    double bus = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256) / 8.0;
    double memory_clock = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 5000000) * 1e3;
    facts->multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 40);
    double single = 2 * clock * facts->multiprocessors * fp32_lanes(major, minor);
    bool tensor_fp64 = minor == 0 && (major == 8 || major == 9 || major == 10);
    double wide = single / ratio * (tensor_fp64 ? 2 : 1);
    facts->flops[GS_F32] = facts->flops[GS_C32] = 0.8 * single;
    facts->flops[GS_F64] = facts->flops[GS_C64] = 0.8 * wide;
    facts->bandwidth = 0.8 * 2 * memory_clock * bus;
}

static bool make_pool(struct gs_run *run, double keep)
{
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gs_cuda_device.device},
    };
    uint64_t threshold = (uint64_t)keep;
    return (gs_cuda_device.pool != NULL ||
            gs_cu_ok(run, gs_cuda.cuMemPoolCreate(&gs_cuda_device.pool, &properties))) &&
           gs_cu_ok(run, gs_cuda.cuMemPoolSetAttribute(
                             gs_cuda_device.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

static bool limit_memory(const struct gs_device_options *options, struct gs_device_facts *facts,
                         struct gs_run *run)
{
    size_t free_bytes = 0, total = 0;
    if (!gs_cu_ok(run, gs_cuda.cuMemGetInfo_v2(&free_bytes, &total)))
        return false;
    facts->memory_allowed = options->memory_fraction > 0
                                ? options->memory_fraction * (double)free_bytes
                                : (double)options->memory_bytes;
    /* A quarter stays in the pool between calls: allocation from it costs microseconds. */
    return make_pool(run, facts->memory_allowed / 4);
}

static bool make_event(CUevent *event, struct gs_run *run)
{
    return *event != NULL || gs_cu_ok(run, gs_cuda.cuEventCreate(event, CU_EVENT_DEFAULT));
}

/* Without room for its workspace cuBLAS says "not initialised", as for a broken installation. */
static bool create_cublas(struct gs_lane *lane, struct gs_run *run)
{
    const size_t workspace = (size_t)128 << 20;
    size_t free_bytes = 0, total = 0;
    cublasStatus_t status = gs_cuda.cublasCreate_v2(&lane->cublas);
    if (status != CUBLAS_STATUS_SUCCESS)
        lane->cublas = NULL;
    if (status == CUBLAS_STATUS_NOT_INITIALIZED &&
        gs_cuda.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && free_bytes < workspace)
        status = CUBLAS_STATUS_ALLOC_FAILED;
    return gs_cublas_ok(run, status);
}

static bool set_up_cublas(struct gs_lane *lane, struct gs_run *run)
{
    if (lane->cublas == NULL && !create_cublas(lane, run))
        return false;
    lane->math = -1;
    return gs_cublas_ok(run, gs_cuda.cublasSetStream_v2(lane->cublas, lane->stream));
}

/* Keeps what was made when a later step fails: the next user goes on from there. */
static bool make_lane(struct gs_lane *lane, struct gs_run *run)
{
    if (lane->stream == NULL &&
        !gs_cu_ok(run, gs_cuda.cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING)))
        return false;
    lane->ready = make_event(&lane->started, run) && make_event(&lane->copied_in, run) &&
                  make_event(&lane->computed, run) && make_event(&lane->copied_out, run) &&
                  set_up_cublas(lane, run);
    return lane->ready;
}

static struct gs_lane *free_lane(void)
{
    for (int i = 0; i < LANES; i++)
        if (!lanes[i].in_use)
            return &lanes[i];
    return NULL;
}

bool gs_lane_all_busy(void)
{
    pthread_mutex_lock(&lanes_mutex);
    bool busy = free_lane() == NULL;
    pthread_mutex_unlock(&lanes_mutex);
    return busy;
}

static void set_free(struct gs_lane *lane)
{
    pthread_mutex_lock(&lanes_mutex);
    lane->in_use = false;
    pthread_cond_signal(&lane_free);
    pthread_mutex_unlock(&lanes_mutex);
}

struct gs_lane *gs_lane_take(struct gs_run *run)
{
    struct gs_lane *lane;
    pthread_mutex_lock(&lanes_mutex);
    while ((lane = free_lane()) == NULL)
        pthread_cond_wait(&lane_free, &lanes_mutex);
    lane->in_use = true;
    pthread_mutex_unlock(&lanes_mutex);

    if (gs_cu_ok(run, gs_cuda.cuCtxPushCurrent_v2(gs_cuda_device.context))) {
        if (lane->ready || make_lane(lane, run))
            return lane;
        CUcontext ours;
        gs_cuda.cuCtxPopCurrent_v2(&ours);
    }
    set_free(lane);
    return NULL;
}

void gs_lane_give(struct gs_lane *lane)
{
    CUcontext ours;
    gs_cuda.cuCtxPopCurrent_v2(&ours);
    set_free(lane);
}

void gs_lane_abandon(struct gs_lane *lane)
{
    CUcontext ours;
    (void)lane; /* stays in use */
    gs_cuda.cuCtxPopCurrent_v2(&ours);
}

/* What a failed step of the start-up means: a full device may have room later. */
static gs_reason refusal_of(const struct gs_run *run)
{
    return run->reason == GS_NO_REASON || run->reason == GS_MEM_ALLOC_FAILED ? run->reason
                                                                              : GS_DEVICE_REFUSED;
}

/* The context and what lives in it. */
static gs_reason open_context(const struct gs_device_options *options,
                              struct gs_device_facts *facts, int *detail)
{
    struct gs_run run = {.reason = GS_NO_REASON};
    if ((gs_cuda_device.context != NULL ||
         gs_cu_ok(&run, gs_cuda.cuDevicePrimaryCtxRetain(&gs_cuda_device.context,
                                                         gs_cuda_device.device))) &&
        gs_cu_ok(&run, gs_cuda.cuCtxPushCurrent_v2(gs_cuda_device.context))) {
        CUcontext ours;
        limit_memory(options, facts, &run);
        gs_cuda.cuCtxPopCurrent_v2(&ours);
    }
    *detail = run.detail;
    return refusal_of(&run);
}

static gs_reason open_first_lane(const struct gs_device_options *options,
                                 struct gs_device_facts *facts, int *detail)
{
    struct gs_run run = {.reason = GS_NO_REASON};
    struct gs_lane *lane = gs_lane_take(&run);
    if (lane != NULL) {
        gs_cuda_measure_link(lane, facts, &run);
        if (options->warm_up && run.reason == GS_NO_REASON)
            gs_cublas_warm_up(lane);
        gs_lane_give(lane);
    }
    *detail = run.detail;
    return refusal_of(&run);
}

/* Variables by which cuBLAS 13 replaces FP64 arithmetic by fixed-point emulation. */
static bool is_emulation_asked(void)
{
    return getenv("CUBLAS_EMULATE_DOUBLE_PRECISION") != NULL ||
           getenv("CUBLAS_EMULATION_STRATEGY") != NULL;
}

gs_reason gs_cuda_open(const struct gs_device_options *options, struct gs_device_facts *facts,
                       int *detail, bool (*stop)(void))
{
    gs_reason reason = gs_cuda_load_driver(options->cuda_path);
    if (reason == GS_NO_REASON)
        reason = gs_cuda_load_cublas(options->cuda_path, options->module, facts->libraries,
                                     sizeof facts->libraries);
    if (reason == GS_NO_REASON)
        reason = stop() ? GS_SHUTTING_DOWN : check_driver(detail);
    if (reason == GS_NO_REASON)
        reason = choose_device(options->device, facts, detail);
    if (reason != GS_NO_REASON)
        return reason;
    gs_cuda_note_library((const void *)gs_cuda.cuInit, facts->libraries, sizeof facts->libraries);
    gs_cuda.cuDeviceGetName(facts->name, sizeof facts->name, gs_cuda_device.device);
    rates_from_properties(facts);
    gs_cuda_device.allow_tf32 = options->allow_tf32;
    gs_cuda_device.emulation_asked = is_emulation_asked();
    gs_cuda_device.max_pitch = attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT32_MAX);
    reason = stop() ? GS_SHUTTING_DOWN : open_context(options, facts, detail);
    if (reason == GS_NO_REASON)
        reason = stop() ? GS_SHUTTING_DOWN : open_first_lane(options, facts, detail);
    return reason;
}
