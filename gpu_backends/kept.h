/* SPDX-License-Identifier: Apache-2.0
 *
 * Host copies of outputs that are also inputs, kept until the device's result has arrived whole:
 * a copy back that fails half-way would otherwise have destroyed what the CPU needs.
 */
#pragma once

#include "shim/call.h"

/* A buffer from the pool of kept copies: page-aligned, already touched when it is reused. */
struct gs_kept {
    void *bytes;
    size_t size;
    bool filled;
};

/* Buffer for operand's elements; false when memory is short (M404). Nothing is copied yet. */
bool gs_kept_take(struct gs_kept *kept, gs_dtype dtype, const struct gs_operand *operand);

/* Copies the operand's elements into the buffer, packed. */
void gs_kept_fill(struct gs_kept *kept, gs_dtype dtype, const struct gs_operand *operand);

/* Writes the elements back where they were; nothing if the buffer was not filled. */
void gs_kept_restore(const struct gs_kept *kept, gs_dtype dtype,
                     const struct gs_operand *operand);

/* Returns the buffer to the pool, which holds at most GS_KEPT_POOL_BYTES. */
void gs_kept_give(struct gs_kept *kept);

#define GS_KEPT_POOL_BYTES ((size_t)256 << 20)
