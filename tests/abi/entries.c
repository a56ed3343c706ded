/* SPDX-License-Identifier: Apache-2.0
 *
 * The callers' side of the table: every exported name, called through its own prototype.
 */
#include "caller.h"
#include "recorder.h"

#define GS_TEMPLATE "tests/abi/call_entry.inc"
#include "shim/spellings_f77.inc"
#include "shim/spellings_cblas.inc"
#undef GS_TEMPLATE

const struct entry entries[] = {
#define GS_TEMPLATE "tests/abi/call_row.inc"
#include "shim/spellings_f77.inc"
#include "shim/spellings_cblas.inc"
#undef GS_TEMPLATE
};

const unsigned entry_count = sizeof entries / sizeof entries[0];
