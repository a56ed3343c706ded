/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include <string.h>

struct recorder_call recorder_last;

void recorder_forget(void)
{
    memset(&recorder_last, 0, sizeof recorder_last);
}

static void begin(const char *name)
{
    recorder_last.name = name;
    recorder_last.calls++;
    recorder_last.slots = recorder_last.values = 0;
}

static void keep(uint64_t bits)
{
    recorder_last.slot[recorder_last.slots++] = bits;
}

static void keep_pointer(const void *pointer)
{
    keep((uint64_t)(uintptr_t)pointer);
}

#define KEEP_POINTERS(...)                                                                    \
    do {                                                                                      \
        const void *const pointers[] = {__VA_ARGS__};                                         \
        for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)                     \
            keep_pointer(pointers[i]);                                                        \
    } while (0)

#define KEEP_VALUE(x) memcpy(&recorder_last.value[recorder_last.values++], &(x), sizeof(x))

/* A scalar of CBLAS: a value for s and d, an address for c and z. */
#define KEEP_SCALAR(x)                                                                        \
    do {                                                                                      \
        if (GS_DTYPE_BIT <= 2)                                                                \
            KEEP_VALUE(x);                                                                    \
        else                                                                                  \
            keep(scalar_bits(&(x), sizeof(x)));                                               \
    } while (0)

static uint64_t scalar_bits(const void *scalar, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, scalar, size);
    return bits;
}

#define GS_TEMPLATE "tests/abi/record_entry.inc"
#include "shim/spellings_f77.inc"
#include "shim/spellings_cblas.inc"
#undef GS_TEMPLATE

/* isamax as a library of this width answers it: the first of the largest, from 1 in Fortran and
 * from 0 in CBLAS; 0 for nothing to do. */
static int64_t largest(int64_t n, const float *x, int64_t step)
{
    int64_t best = 0;
    if (n < 1 || step < 1)
        return -1;
    for (int64_t i = 1; i < n; i++)
        if (x[i * step] > x[best * step])
            best = i;
    return best;
}

#undef GS_EACH_SPELLING
#define GS_EACH_SPELLING "tests/abi/record_isamax.inc"
#include "shim/spellings_f77.inc"
#include "shim/spellings_cblas.inc"
