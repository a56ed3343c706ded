/* SPDX-License-Identifier: Apache-2.0
 *
 * A BLAS that computes nothing and keeps what it was called with. It exports every name of the
 * table, in an LP64 and in an ILP64 build (RECORDER_BYTES), so that whatever a program passes can
 * be compared with what arrives behind the preload.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shim/paste.h"

#define RECORDER_EXPORT __attribute__((visibility("default")))

#if RECORDER_BYTES == 4
typedef int32_t recorder_int;
#elif RECORDER_BYTES == 8
typedef int64_t recorder_int;
#else
#error "RECORDER_BYTES is 4 or 8"
#endif

enum { RECORDER_SLOTS = 24 };

/* One call as it arrived. */
struct recorder_call {
    const char *name;              /* "scipy_cblas_dgemm64_"; NULL: none since recorder_forget */
    unsigned calls;
    unsigned slots, values;
    uint64_t slot[RECORDER_SLOTS]; /* pointers, integers and hidden lengths, in argument order */
    uint64_t value[2];             /* bits of the floating-point arguments passed by value */
    int64_t group_size;            /* gemm_batch: the first of the array */
};

RECORDER_EXPORT extern struct recorder_call recorder_last;
RECORDER_EXPORT void recorder_forget(void);

/* The file that expands an operation: record/gemm.inc, call/gemm.inc. An operation without one
 * does not compile. */
#define ABI_FILE_(folder, name) GS_STRING(folder/name.inc)
#define ABI_FILE(folder, name) ABI_FILE_(folder, name)
