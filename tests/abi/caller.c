/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls every exported name with recognisable bits and compares what the recorder got, bit for
 * bit. Sizes are read by the library in WIDTH bytes; where those are 4, the other half of each
 * slot is poisoned and must arrive all the same.
 *
 *     caller all           every kind of call: where no device takes any
 *     caller forwarded     only those that no mode may take
 */
#include "caller.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw_call.h"
#include "recorder.h"

static const struct gemm_case cases[] = {
    {"small", false, 102, 'N', 'T', 2, 3, 4, 5, 6, 7, false},
    {"large", false, 102, 'T', 'N', 3000, 2000, 1000, 1001, 1002, 3003, false},
    {"large row-major", false, 101, 'C', 'C', 3000, 2000, 1000, 3001, 2002, 3003, false},
#if RECORDER_BYTES == 8
    {"over 32 bits", false, 102, 'N', 'N', INT64_C(0x100000002), 1, 1, INT64_C(0x100000003), 1,
     INT64_C(0x100000002), false},
#endif
    {"empty", true, 102, 'n', 't', 7, 5, 0, 7, 5, 7, false},
    {"no rows", true, 102, 'c', 'n', 0, 5, 3, 4, 5, 1, false},
    {"alpha 0", true, 102, 'N', 'N', 300, 200, 100, 300, 100, 300, true},
    {"bad trans", true, 102, 'Q', 'N', 300, 200, 100, 300, 100, 300, false},
    {"negative m", true, 102, 'N', 'N', -1, 200, 100, 300, 100, 300, false},
    {"two negatives", true, 102, 'N', 'N', -300, -200, 100, 300, 100, 300, false},
    {"lda too small", true, 102, 'N', 'N', 300, 200, 100, 299, 100, 300, false},
    {"ldb too small", true, 102, 'N', 'T', 300, 200, 100, 300, 199, 300, false},
    {"ldc too small", true, 102, 'N', 'N', 300, 200, 100, 300, 100, 299, false},
    {"ldc 0", true, 102, 'N', 'N', 300, 200, 100, 300, 100, 0, false},
    {"conjugate only", true, 102, 'R', 'N', 300, 200, 100, 300, 100, 300, false},
};

static unsigned failures, calls;

static uint64_t enum_of(int letter)
{
    switch (letter) {
    case 'N': case 'n': return 111;
    case 'T': case 't': return 112;
    case 'C': case 'c': return 113;
    case 'R': return 114;
    default: return 119;
    }
}

/* An integer as this library reads it, in a slot of 8 bytes. */
static uint64_t slot(int64_t value)
{
    return RECORDER_BYTES == 8 ? (uint64_t)value : POISON | (uint32_t)value;
}

static void fill_scalar(unsigned char *bytes, unsigned size, bool zero, uint64_t pattern)
{
    memset(bytes, 0, 16);
    if (zero)
        return;
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (unsigned char)(pattern >> 8 * (i % 8));
}

/* Scalars are signalling NaNs with a payload, which any arithmetic or conversion would change. */
static struct gemm_arguments arguments_for(const struct entry *entry, const struct gemm_case *kind)
{
    struct gemm_arguments x = {
        .layout = POISON | (uint32_t)kind->layout,
        .enum_a = POISON | enum_of(kind->transa),
        .enum_b = POISON | enum_of(kind->transb),
        .m = slot(kind->m), .n = slot(kind->n), .k = slot(kind->k),
        .lda = slot(kind->lda), .ldb = slot(kind->ldb), .ldc = slot(kind->ldc),
        /* Addresses that nobody can read: a forwarded call's arrays are not touched. */
        .a = (void *)(uintptr_t)UINT64_C(0x1a5a000000000a08),
        .b = (void *)(uintptr_t)UINT64_C(0x2b6b000000000b10),
        .c = (void *)(uintptr_t)UINT64_C(0x3c7c000000000c18),
    };
    bool single = entry->element_bytes == 4 || (!entry->by_value && entry->element_bytes == 8 &&
                                                strstr(entry->name, "cgemm") != NULL);
    memset(x.transa, 'x', sizeof x.transa); /* one letter counts; CHARACTER*8 holds more */
    memset(x.transb, 'y', sizeof x.transb);
    x.transa[0] = (char)kind->transa;
    x.transb[0] = (char)kind->transb;
    fill_scalar(x.alpha, entry->element_bytes, kind->alpha_is_zero,
                single ? UINT64_C(0x7f80abcd7f812345) : UINT64_C(0x7ff0123456789abc));
    fill_scalar(x.beta, entry->element_bytes, false,
                single ? UINT64_C(0xff8054327f8a9876) : UINT64_C(0xfff4fedcba987654));
    return x;
}

static uint64_t address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static struct recorder_call expected_f77(const struct gemm_arguments *x)
{
    return (struct recorder_call){
        .slots = 15,
        .slot = {address(x->transa), address(x->transb), address(&x->m), address(&x->n),
                 address(&x->k), address(x->alpha), address(x->a), address(&x->lda),
                 address(x->b), address(&x->ldb), address(x->beta), address(x->c),
                 address(&x->ldc), FIRST_LENGTH, SECOND_LENGTH}};
}

static struct recorder_call expected_cblas(const struct entry *entry,
                                           const struct gemm_arguments *x)
{
    struct recorder_call e = {.slots = 0};
    uint64_t *s = e.slot;
    *s++ = (uint32_t)x->layout;
    *s++ = (uint32_t)x->enum_a;
    *s++ = (uint32_t)x->enum_b;
    *s++ = x->m;
    *s++ = x->n;
    *s++ = x->k;
    if (!entry->by_value)
        *s++ = address(x->alpha);
    *s++ = address(x->a);
    *s++ = x->lda;
    *s++ = address(x->b);
    *s++ = x->ldb;
    if (!entry->by_value)
        *s++ = address(x->beta);
    *s++ = address(x->c);
    *s++ = x->ldc;
    e.slots = (unsigned)(s - e.slot);
    if (entry->by_value) {
        e.values = 2;
        memcpy(&e.value[0], x->alpha, entry->element_bytes);
        memcpy(&e.value[1], x->beta, entry->element_bytes);
    }
    return e;
}

static void fail(const struct entry *entry, const char *what, const char *detail)
{
    failures++;
    printf("%s, %s: %s\n", entry->name, what, detail);
}

static void compare(const struct entry *entry, const char *what,
                    const struct recorder_call *expected)
{
    const struct recorder_call *got = &recorder_last;
    char detail[160];
    if (got->calls != 1 || got->name == NULL || strcmp(got->name, entry->name) != 0) {
        snprintf(detail, sizeof detail, "%u calls arrived, the last one in %s", got->calls,
                 got->name != NULL ? got->name : "nothing");
        fail(entry, what, detail);
        return;
    }
    if (got->slots != expected->slots || got->values != expected->values)
        fail(entry, what, "another number of arguments");
    for (unsigned i = 0; i < expected->slots; i++)
        if (got->slot[i] != expected->slot[i]) {
            snprintf(detail, sizeof detail, "slot %u is %#llx, not %#llx", i,
                     (unsigned long long)got->slot[i], (unsigned long long)expected->slot[i]);
            fail(entry, what, detail);
        }
    for (unsigned i = 0; i < expected->values; i++)
        if (got->value[i] != expected->value[i]) {
            snprintf(detail, sizeof detail, "value %u is %#llx, not %#llx", i,
                     (unsigned long long)got->value[i], (unsigned long long)expected->value[i]);
            fail(entry, what, detail);
        }
}

static void check_case(const struct entry *entry, const struct gemm_case *kind)
{
    struct gemm_arguments x = arguments_for(entry, kind), before = x;
    /* expected holds addresses inside x: x must stay where it is. */
    struct recorder_call expected =
        entry->is_cblas ? expected_cblas(entry, &x) : expected_f77(&x);
    recorder_forget();
    entry->call(&x);
    calls++;
    compare(entry, kind->what, &expected);
    if (memcmp(&x, &before, sizeof x) != 0)
        fail(entry, kind->what, "an argument was written to");
}

/* ---- the stack above the arguments ---- */

static struct raw_call raw_call_for(const struct entry *entry, struct gemm_arguments *x)
{
    struct raw_call raw = {.function = entry->function};
    struct recorder_call all = entry->is_cblas ? expected_cblas(entry, x) : expected_f77(x);
    unsigned count = entry->is_cblas ? all.slots : 13; /* no hidden lengths */
    memcpy(raw.registers, all.slot, sizeof raw.registers);
    memcpy(raw.vectors, all.value, sizeof raw.vectors);
    raw.slots = count - 6;
    memcpy(raw.stack, all.slot + 6, (count - 6) * sizeof raw.stack[0]);
    for (unsigned i = 0; i < RAW_CANARIES; i++)
        raw.canaries[i] = UINT64_C(0xc0ffee0000000000) + i;
    return raw;
}

static unsigned changed_canaries(const struct raw_call *raw)
{
    unsigned changed = 0;
    for (unsigned i = 0; i < RAW_CANARIES; i++)
        changed += raw->canaries[i] != UINT64_C(0xc0ffee0000000000) + i;
    return changed;
}

#if RAW_CALL_WORKS
/* A call without hidden lengths: what lies in their place is the caller's own. */
static void check_stack(const struct entry *entry, const struct gemm_case *kind)
{
    struct gemm_arguments x = arguments_for(entry, kind);
    struct raw_call raw = raw_call_for(entry, &x);
    recorder_forget();
    raw_call(&raw);
    calls++;
    if (recorder_last.calls != 1)
        fail(entry, kind->what, "without lengths: did not arrive");
    if (changed_canaries(&raw) != 0)
        fail(entry, kind->what, "without lengths: the caller's stack was changed");
}

/* The recorder itself writes where absent lengths would be. If it did not, check_stack would
 * prove nothing. */
static void check_that_the_recorder_writes(const struct entry *entry)
{
    struct gemm_arguments x = arguments_for(entry, &cases[0]);
    struct raw_call raw = raw_call_for(entry, &x);
    void *recorder = dlopen(RECORDER_NAME, RTLD_NOW | RTLD_NOLOAD);
    raw.function = (void (*)(void))dlsym(recorder, entry->name);
    if (raw.function == NULL)
        fail(entry, "direct", "not found in " RECORDER_NAME);
    else
        raw_call(&raw);
    if (changed_canaries(&raw) != (entry->is_cblas ? 0 : 2))
        fail(entry, "direct", "the recorder does not write into the slots of hidden lengths");
}
#endif

int main(int argc, char **argv)
{
    bool all = argc == 2 && strcmp(argv[1], "all") == 0;
    if (!all && (argc != 2 || strcmp(argv[1], "forwarded") != 0))
        return 2;
    for (unsigned e = 0; e < entry_count; e++) {
        for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            if (!all && !cases[i].forwarded)
                continue;
            check_case(&entries[e], &cases[i]);
#if RAW_CALL_WORKS
            check_stack(&entries[e], &cases[i]);
#endif
        }
#if RAW_CALL_WORKS
        check_that_the_recorder_writes(&entries[e]);
#endif
    }
#if !RAW_CALL_WORKS
    printf("skipped: calls without hidden lengths (no raw_call for this machine)\n");
#endif
    if (failures > 0)
        return 1;
    printf("ok %u calls of %u names\n", calls, entry_count);
    return 0;
}
