/* SPDX-License-Identifier: Apache-2.0
 *
 * The process-wide state behind the dispatch, and its life: first eligible call, fork, exit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu_backends/backend.h"
#include "policy/cost_model.h"
#include "policy/settings.h"

struct gs_process {
    struct gs_settings settings;
    struct gs_device_options device_options;
    bool routine_selected[GS_ROUTINE_COUNT];
};

/* Valid once gs_process_ready has returned true. */
extern struct gs_process gs_process;

/* What is known of CPU and device: the built-in estimates, and from a start-up on its findings. */
const struct gs_machine *gs_process_machine(void);

/* Makes the process ready at its first eligible call: settings, audit file, estimates; again in a
 * forked child, however it was forked. False: exit has begun, or there is no memory; pass on. */
bool gs_process_ready(void);

/* Whether the audit is open and belongs to this process, not to the parent it was forked from. */
bool gs_process_owns_audit(void);

/* Starts the device for a call of this site: waits for it, or leaves it to the background. */
void gs_process_start_device(const struct gs_site *site, bool wait);

/* Sets the floor of a routine from what is now known of the CPU's rate. */
void gs_process_update_floor(gs_operation operation, gs_dtype dtype);

/* The start-up's findings go into the estimates and the audit header, once the device is ready or
 * refused. Cheap when there is nothing new. */
void gs_process_note_device(void);

uint64_t gs_now_ns(void);
