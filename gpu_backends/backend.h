/* SPDX-License-Identifier: Apache-2.0
 *
 * What a GPU backend offers to the dispatch, and the device behind it: a state machine that is
 * cold, starting, ready or refused. Backends know devices, never an ABI name, never a policy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/reasons.h"
#include "shim/call.h"

struct gs_device_options {
    const char *cuda_path;        /* GPUSHIM_CUDA_PATH; "auto": the search order of loader.c */
    const char *device;           /* GPUSHIM_DEVICE: "auto", an index, "none" */
    double memory_fraction;       /* of the memory free at start-up; 0: memory_bytes counts */
    uint64_t memory_bytes;
    bool allow_tf32;              /* GPUSHIM_PRECISION=tf32 */
    bool warm_up;                 /* load the commonest kernels before ready; set by device.c */
    char module[512];             /* path of the module whose call starts the device: wheels of
                                     the CUDA libraries lie beside it */
};

/* What start-up found out. Bandwidths in bytes/s, times in s, rates in real flop/s. */
struct gs_device_facts {
    char name[128];
    char libraries[1024];         /* paths, newline-separated */
    int ordinal;
    int multiprocessors;
    double flops[GS_DTYPE_COUNT];
    double bandwidth;             /* device memory */
    double h2d_bandwidth, d2h_bandwidth, h2d_first_byte, d2h_first_byte;
    double memory_allowed;        /* bytes this process may use */
    double startup;               /* s this start-up took */
};

/* One run on the device. reason is GS_NO_REASON when the outputs are in the caller's arrays;
 * else M402 M404 E901 E902, detail holds the vendor's status, every array is as the CPU original
 * may find it (inputs and in-out operands untouched, outputs unspecified), and nothing of ours is
 * still moving. Times in s. */
struct gs_run {
    gs_reason reason;
    int detail;
    double copy_in, compute, copy_out, kept;
};

struct gs_backend {
    const char *name;
    /* Whether it is worth starting at all: L801 without a driver. Creates no context. */
    gs_reason (*look)(const struct gs_device_options *options);
    /* Starts the device; GS_NO_REASON, M402 (may be tried again) or L8xx with the vendor's status
     * in detail. facts is filled as far as known. stop is polled between steps: true ends the
     * start-up with L808. */
    gs_reason (*open)(const struct gs_device_options *options, struct gs_device_facts *facts,
                      int *detail, bool (*stop)(void));
    /* U301 U302 U304 P704, or GS_NO_REASON. Callable before open. */
    gs_reason (*objection)(const struct gs_call *call);
    /* Bytes of device memory the call needs at once. */
    double (*memory_needed)(const struct gs_call *call);
    /* Runs the call, whose operands are in host memory, to the end. Thread-safe; waits while
     * every stream is in use. */
    void (*run)(const struct gs_call *call, struct gs_run *run);
    /* Whether run would have to wait for another thread. */
    bool (*is_busy)(void);
};

extern const struct gs_backend gs_cuda_backend;

/* The state machine over the backend (device.c). All thread-safe. */

enum gs_device_state gs_device_state(void);

/* L8xx of a refused device, else 0; detail receives the vendor's status. */
gs_reason gs_device_refusal(int *detail);

/* Facts of a ready device. Never NULL; zeros before that. */
const struct gs_device_facts *gs_device_facts(void);

/* Looks for a driver, once; may refuse the device (L801). */
void gs_device_look(const struct gs_device_options *options);

/* Starts the device, unless an attempt within the last seconds found no memory for it: the device
 * is cold again after such an attempt. With wait, in the calling thread, and returns when it is
 * ready or refused (also when another thread was faster); without, in a thread of ours that
 * blocks all signals. */
void gs_device_start(const struct gs_device_options *options, bool wait);

/* Puts the device out of use for good, with this reason. */
void gs_device_refuse(gs_reason reason, int detail);

/* In a forked child: L806 if the device was ready or starting in the parent, else as new. */
void gs_device_after_fork(void);

/* At exit, before the driver's own exit handlers: no new runs or start-ups (L808); waits until a
 * start-up has stopped and runs of other threads are over, at most seconds. */
void gs_device_exit(double seconds);

/* A run is under way: false when the device may not be used (exit began). */
bool gs_device_enter(void);
void gs_device_leave(void);
