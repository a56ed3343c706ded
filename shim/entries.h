/* SPDX-License-Identifier: Apache-2.0
 *
 * The exported names, and what each of them is.
 */
#pragma once

#include "call.h"

enum gs_spelling {
#undef GS_EACH_SPELLING
#define GS_EACH_SPELLING "expand/spelling_enum.inc"
#include "spellings_f77.inc"
#include "spellings_cblas.inc"
#undef GS_EACH_SPELLING
#define GS_EACH_SPELLING "dtypes.inc"
    GS_SPELLING_COUNT
};

enum gs_entry {
#define GS_TEMPLATE "expand/entry_enum.inc"
#include "spellings_f77.inc"
#include "spellings_cblas.inc"
#undef GS_TEMPLATE
    GS_ENTRY_COUNT
};

struct gs_spelling_row {
    const char *tag;          /* "F77_SCIPY_LP64" */
    int interface;            /* GS_F77 or GS_CBLAS */
    const char *isamax;       /* isamax in this spelling: called to find the integer width */
    int presumed_bytes;       /* integer width the name suggests, where it cannot be proved */
};

struct gs_entry_row {
    const char *name;         /* "scipy_dgemm_" */
    uint16_t routine;
    uint8_t spelling;
};

extern const struct gs_spelling_row gs_spellings[GS_SPELLING_COUNT];
extern const struct gs_entry_row gs_entries[GS_ENTRY_COUNT];

/* "dgemm"; NULL for a dtype in which the operation does not exist. */
extern const char *const gs_routine_names[GS_ROUTINE_COUNT];
