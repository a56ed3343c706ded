/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicted CPU and GPU time of a call. Each term is an analytic estimate (flop over a rate that
 * depends on the shape, bytes over a link) times a correction that is learned from the calls this
 * process has timed: first for calls of the same routine and shape class, else for the data type.
 *
 * Source of the shape terms: a product of m x n x k is computed in tiles, so that the device's
 * time grows with ceil(m/128) * ceil(n/128) tiles over its multiprocessors (cuBLAS, "tile and wave
 * quantization" in NVIDIA's matrix multiplication guide), and either side is bounded below by the
 * bytes it must move through its memory (Williams et al., "Roofline", CACM 52(4), 2009).
 */
#pragma once

#include "shim/call.h"

/* What is known of the CPU and the device. Rates in real flop/s, bandwidths in bytes/s, times in
 * seconds. The device part holds priors (gs_machine_init) until the device has been started. */
struct gs_machine {
    int cpu_threads;
    double cpu_flops[GS_DTYPE_COUNT];    /* large products, all threads */
    double cpu_bandwidth;
    double device_flops[GS_DTYPE_COUNT];
    double device_bandwidth;
    int multiprocessors;
    double h2d_bandwidth, d2h_bandwidth; /* pageable host memory */
    double h2d_first_byte, d2h_first_byte;
    double launch;                       /* fixed cost of a call: streams, launches, one wait */
    double startup;                      /* device start-up, predicted until measured */
};

struct gs_prediction {
    double cpu;                          /* s */
    double gpu;                          /* s: sum of the four below */
    double fixed, copy_in, compute, copy_out;
    double compute_as_f32;               /* compute, were FP64 as fast as FP32: for A604 */
};

/* Measured times of one call that ran on the device, s. */
struct gs_gpu_times {
    double copy_in, compute, copy_out, total;
};

/* Built-in estimates for a machine with this many CPU threads and an unknown device. */
void gs_machine_init(struct gs_machine *machine, int cpu_threads);

/* Pure but for the learned corrections, which it reads. */
struct gs_prediction gs_predict(const struct gs_machine *machine, const struct gs_call *call);

/* Corrects the estimates by a measured call. Wait-free; concurrent calls may lose an update. */
void gs_learn_cpu(const struct gs_machine *machine, const struct gs_call *call, double seconds);
void gs_learn_gpu(const struct gs_machine *machine, const struct gs_call *call,
                  const struct gs_gpu_times *times);

/* Forgets what was learned (tests; a forked child keeps it: same machine). */
void gs_learn_reset(void);

/* Work (multiply-adds) under which the CPU is predicted to need less than min_time seconds. */
double gs_floor_for(const struct gs_machine *machine, gs_dtype dtype, double min_time);
