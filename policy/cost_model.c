/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/cost_model.h"

#include <stdatomic.h>
#include <string.h>

enum { TILE = 128, WORK_CLASSES = 64, SHAPE_CLASSES = 4 };

/* Per core, f64: an AVX2 core at 3 GHz has 48 Gflop/s, of which a library gets two thirds. */
#define PRIOR_CORE_FLOPS 30e9
#define PRIOR_CPU_BANDWIDTH 20e9

/* The device before it is known: a middling card behind an ordinary link. Optimistic here costs
 * one start-up in the background, pessimistic the whole benefit. */
#define PRIOR_DEVICE_FLOPS 8e12
#define PRIOR_DEVICE_BANDWIDTH 500e9
#define PRIOR_LINK 8e9
#define PRIOR_FIRST_BYTE 10e-6
#define PRIOR_LAUNCH 25e-6
#define PRIOR_STARTUP 0.6

/* Learned ratio of measured to estimated time. 0: nothing measured yet. */
typedef _Atomic double correction;

struct side {
    correction cell[GS_OP_COUNT][GS_DTYPE_COUNT][WORK_CLASSES][SHAPE_CLASSES];
    correction dtype[GS_DTYPE_COUNT];
    _Atomic uint8_t samples[GS_OP_COUNT][GS_DTYPE_COUNT][WORK_CLASSES][SHAPE_CLASSES];
};

static struct side cpu_side, compute_side;
static correction copy_in_side[WORK_CLASSES], copy_out_side[WORK_CLASSES];

static int log2_class(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    return exponent < 0 ? 0 : exponent >= WORK_CLASSES ? WORK_CLASSES - 1 : exponent;
}

static double smallest_side(const struct gs_call *call)
{
    int64_t side = call->m < call->n ? call->m : call->n;
    if (call->k > 0 && call->k < side)
        side = call->k;
    return (double)(side > 1 ? side : 1);
}

/* Thin, narrow, middling, thick: a library's efficiency depends on the smallest dimension. */
static int shape_class(const struct gs_call *call)
{
    double side = smallest_side(call);
    return side < 16 ? 0 : side < 64 ? 1 : side < 256 ? 2 : 3;
}

static correction *cell_of(struct side *side, const struct gs_call *call)
{
    return &side->cell[call->operation][call->dtype][log2_class(call->work)][shape_class(call)];
}

/* The correction of the nearest measured work class, at most two (a factor of four) away; else
 * that of the data type, of which little is believed: small calls, with their threads to wake and
 * pages to touch, say little about large ones. */
static double corrected(struct side *side, const struct gs_call *call, double estimate)
{
    const double least = 0.5, most = 1.5;
    int class = log2_class(call->work);
    correction *cells = cell_of(side, call) - class * SHAPE_CLASSES;
    for (int distance = 0; distance <= 2; distance++)
        for (int sign = -1; sign <= 1; sign += 2) {
            int near = class + sign * distance;
            double ratio = near < 0 || near >= WORK_CLASSES
                               ? 0
                               : atomic_load_explicit(&cells[near * SHAPE_CLASSES],
                                                      memory_order_relaxed);
            if (ratio != 0)
                return ratio * estimate;
        }
    double ratio = atomic_load_explicit(&side->dtype[call->dtype], memory_order_relaxed);
    if (ratio == 0)
        return estimate;
    return estimate * (ratio < least ? least : ratio > most ? most : ratio);
}

/* Quick to believe that something is fast, slow to believe that it is slow: a first call that
 * loads kernels, or one that was interrupted, takes many times its usual time, none takes less. */
static void learn(correction *ratio, double measured)
{
    const double first_limit = 2, step_limit = 4, up = 0.2, down = 0.7;
    double old = atomic_load_explicit(ratio, memory_order_relaxed);
    double limit = old == 0 ? first_limit : step_limit * old;
    double limited = measured > limit ? limit : measured < 1e-3 ? 1e-3 : measured;
    double new = old == 0 ? limited : old + (limited > old ? up : down) * (limited - old);
    atomic_store_explicit(ratio, new, memory_order_relaxed);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void gs_machine_init(struct gs_machine *machine, int cpu_threads)
{
    static const double relative[GS_DTYPE_COUNT] = {
        [GS_F32] = 2, [GS_F64] = 1, [GS_C32] = 2, [GS_C64] = 1};
    memset(machine, 0, sizeof *machine);
    machine->cpu_threads = cpu_threads;
    machine->cpu_bandwidth = PRIOR_CPU_BANDWIDTH;
    for (int t = 0; t < GS_DTYPE_COUNT; t++) {
        machine->cpu_flops[t] = PRIOR_CORE_FLOPS * cpu_threads * relative[t];
        machine->device_flops[t] = PRIOR_DEVICE_FLOPS * relative[t] / 2;
    }
    machine->device_bandwidth = PRIOR_DEVICE_BANDWIDTH;
    machine->multiprocessors = 60;
    machine->h2d_bandwidth = machine->d2h_bandwidth = PRIOR_LINK;
    machine->h2d_first_byte = machine->d2h_first_byte = PRIOR_FIRST_BYTE;
    machine->launch = PRIOR_LAUNCH;
    machine->startup = PRIOR_STARTUP;
}

static double cpu_estimate(const struct gs_machine *machine, const struct gs_call *call)
{
    /* Kernels work on blocks of about 8 in each direction: thin products waste part of them. */
    double side = smallest_side(call);
    double efficiency = side / (side + 8);
    double flops = machine->cpu_flops[call->dtype] * efficiency;
    double bytes = gs_call_bytes(call, GS_IN) + gs_call_bytes(call, GS_OUT);
    return larger(gs_call_flop(call) / flops, bytes / machine->cpu_bandwidth) + 1e-6;
}

static double tiles(int64_t x)
{
    return (double)((x + TILE - 1) / TILE);
}

static double device_estimate(const struct gs_machine *machine, const struct gs_call *call,
                              double flops)
{
    double waves = tiles(call->m) * tiles(call->n) / machine->multiprocessors;
    double whole_waves = waves <= 1 ? 1 : (double)(int64_t)(waves + 0.999);
    double used = waves / whole_waves; /* share of the multiprocessors that have a tile */
    if (used < 0.25)
        used = 0.25; /* the inner dimension is split where there are few tiles */
    double bytes = gs_call_bytes(call, GS_IN) + gs_call_bytes(call, GS_OUT);
    return larger(gs_call_flop(call) / (flops * used), bytes / machine->device_bandwidth);
}

static double copy_estimate(double bytes, int copies, double first_byte, double bandwidth)
{
    return copies * first_byte + bytes / bandwidth;
}

static double corrected_copy(const correction *side, double bytes, double estimate)
{
    double ratio = atomic_load_explicit(&side[log2_class(bytes)], memory_order_relaxed);
    return ratio == 0 ? estimate : ratio * estimate;
}

static int operands_with(const struct gs_call *call, enum gs_role role)
{
    int count = 0;
    for (int i = 0; i < call->operand_count; i++)
        count += (call->operand[i].role & role) != 0;
    return count;
}

static double copy_in_estimate(const struct gs_machine *machine, const struct gs_call *call)
{
    return copy_estimate(gs_call_bytes(call, GS_IN), operands_with(call, GS_IN),
                         machine->h2d_first_byte, machine->h2d_bandwidth);
}

static double copy_out_estimate(const struct gs_machine *machine, const struct gs_call *call)
{
    return copy_estimate(gs_call_bytes(call, GS_OUT), operands_with(call, GS_OUT),
                         machine->d2h_first_byte, machine->d2h_bandwidth);
}

/* A few timed calls are needed to believe that the CPU is slower than its estimate at this size:
 * the first ones wake threads and touch pages, and once the device has taken over there are no
 * more. */
static double corrected_cpu(const struct gs_call *call, double estimate)
{
    const uint8_t enough = 3;
    uint8_t samples = atomic_load_explicit(
        &cpu_side.samples[call->operation][call->dtype][log2_class(call->work)][shape_class(call)],
        memory_order_relaxed);
    double time = corrected(&cpu_side, call, estimate);
    return samples < enough && time > estimate ? estimate : time;
}

struct gs_prediction gs_predict(const struct gs_machine *machine, const struct gs_call *call)
{
    struct gs_prediction p;
    double in = gs_call_bytes(call, GS_IN), out = gs_call_bytes(call, GS_OUT);
    gs_dtype single = gs_is_complex(call->dtype) ? GS_C32 : GS_F32;
    double flops = machine->device_flops[call->dtype];
    p.cpu = corrected_cpu(call, cpu_estimate(machine, call));
    p.fixed = machine->launch;
    p.copy_in = corrected_copy(copy_in_side, in, copy_in_estimate(machine, call));
    p.compute = corrected(&compute_side, call, device_estimate(machine, call, flops));
    p.compute_as_f32 = p.compute * flops / machine->device_flops[single];
    p.copy_out = corrected_copy(copy_out_side, out, copy_out_estimate(machine, call));
    p.gpu = p.fixed + p.copy_in + p.compute + p.copy_out;
    return p;
}

static void learn_side(struct side *side, const struct gs_call *call, double measured,
                       double estimate)
{
    if (!(measured > 0) || !(estimate > 0))
        return;
    learn(cell_of(side, call), measured / estimate);
    learn(&side->dtype[call->dtype], measured / estimate);
}

void gs_learn_cpu(const struct gs_machine *machine, const struct gs_call *call, double seconds)
{
    _Atomic uint8_t *samples =
        &cpu_side.samples[call->operation][call->dtype][log2_class(call->work)][shape_class(call)];
    uint8_t seen = atomic_load_explicit(samples, memory_order_relaxed);
    learn_side(&cpu_side, call, seconds, cpu_estimate(machine, call));
    if (seen < UINT8_MAX)
        atomic_store_explicit(samples, (uint8_t)(seen + 1), memory_order_relaxed);
}

void gs_learn_gpu(const struct gs_machine *machine, const struct gs_call *call,
                  const struct gs_gpu_times *times)
{
    double in = gs_call_bytes(call, GS_IN), out = gs_call_bytes(call, GS_OUT);
    learn_side(&compute_side, call, times->compute,
               device_estimate(machine, call, machine->device_flops[call->dtype]));
    if (times->copy_in > 0)
        learn(&copy_in_side[log2_class(in)], times->copy_in / copy_in_estimate(machine, call));
    if (times->copy_out > 0)
        learn(&copy_out_side[log2_class(out)],
              times->copy_out / copy_out_estimate(machine, call));
}

void gs_learn_reset(void)
{
    memset(&cpu_side, 0, sizeof cpu_side);
    memset(&compute_side, 0, sizeof compute_side);
    memset(copy_in_side, 0, sizeof copy_in_side);
    memset(copy_out_side, 0, sizeof copy_out_side);
}

double gs_floor_for(const struct gs_machine *machine, gs_dtype dtype, double min_time)
{
    double ratio = atomic_load_explicit(&cpu_side.dtype[dtype], memory_order_relaxed);
    double flops = machine->cpu_flops[dtype] / (ratio == 0 ? 1 : ratio);
    return min_time * flops / (gs_is_complex(dtype) ? 8 : 2);
}
