/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUSHIM_MODE=verify: the CPU writes the caller's arrays, the GPU works on private copies of the
 * outputs, the difference is recorded.
 */
#pragma once

#include "dispatch.h"

/* Runs the call on the GPU with private outputs, before the CPU original. On failure the
 * attempt's verdict says why and nothing is compared. */
void gs_verify_begin(struct gs_attempt *attempt);

/* Compares after the CPU original: attempt->difference is the largest |gpu - cpu| over the sum of
 * the two results' rounding bounds (compare.h); above 1, or with a NaN on one side only, the verdict becomes
 * E905. */
void gs_verify_end(struct gs_attempt *attempt);
