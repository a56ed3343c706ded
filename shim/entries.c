/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of entries.h, and the entry stubs themselves: signatures/ expanded over spellings,
 * data types and operations.
 */
#include "entries.h"

#include "stub.h"

const struct gs_spelling_row gs_spellings[GS_SPELLING_COUNT] = {
#undef GS_EACH_SPELLING
#define GS_EACH_SPELLING "expand/spelling_row.inc"
#include "spellings_f77.inc"
#include "spellings_cblas.inc"
#undef GS_EACH_SPELLING
#define GS_EACH_SPELLING "dtypes.inc"
};

const struct gs_entry_row gs_entries[GS_ENTRY_COUNT] = {
#define GS_TEMPLATE "expand/entry_row.inc"
#include "spellings_f77.inc"
#include "spellings_cblas.inc"
#undef GS_TEMPLATE
};

const char *const gs_routine_names[GS_ROUTINE_COUNT] = {
#define GS_TEMPLATE "expand/routine_name.inc"
#include "dtypes.inc"
#undef GS_TEMPLATE
};

#define GS_TEMPLATE "expand/entry_body.inc"
#include "spellings_f77.inc"
#include "spellings_cblas.inc"
#undef GS_TEMPLATE
