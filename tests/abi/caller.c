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

static unsigned failures, calls, large_calls;

static void fail(const struct entry *entry, const char *what, const char *detail)
{
    failures++;
    printf("%s, %s: %s\n", entry->name, what, detail);
}

/* Of a batch that was decided, each problem goes on as a batch of one, with sizes of ours: then
 * only what the library reads of the last arguments can be the same. */
static void accept_taken_apart(const struct entry *entry, const struct kind *kind,
                               struct recorder_call *got, const struct recorder_call *expected)
{
    const uint64_t read = RECORDER_BYTES == 8 ? ~UINT64_C(0) : UINT32_MAX;
    unsigned last = expected->slots - 1;
    bool decided = kind->fate == LARGE || kind->fate == FORWARDED;
    bool batch = strchr(argument_list(entry), 'w') != NULL;
    if (!decided || !(batch || has_groups(entry)) || got->slots != expected->slots)
        return;
    unsigned count = has_groups(entry) ? last - 1 : last;
    if ((got->slot[count] & read) == (expected->slot[count] & read))
        got->slot[count] = expected->slot[count];
    if (has_groups(entry) && got->group_size == 1)
        got->slot[last] = expected->slot[last];
}

static void compare(const struct entry *entry, const struct kind *kind,
                    const struct recorder_call *expected)
{
    struct recorder_call *got = &recorder_last;
    char detail[160];
    if (got->calls != 1 || got->name == NULL || strcmp(got->name, entry->name) != 0) {
        snprintf(detail, sizeof detail, "%u calls arrived, the last one in %s", got->calls,
                 got->name != NULL ? got->name : "nothing");
        fail(entry, kind->what, detail);
        return;
    }
    if (got->slots != expected->slots || got->values != expected->values)
        fail(entry, kind->what, "another number of arguments");
    accept_taken_apart(entry, kind, got, expected);
    for (unsigned i = 0; i < expected->slots; i++)
        if (got->slot[i] != expected->slot[i]) {
            snprintf(detail, sizeof detail, "slot %u is %#llx, not %#llx", i,
                     (unsigned long long)got->slot[i], (unsigned long long)expected->slot[i]);
            fail(entry, kind->what, detail);
        }
    for (unsigned i = 0; i < expected->values; i++)
        if (got->value[i] != expected->value[i]) {
            snprintf(detail, sizeof detail, "value %u is %#llx, not %#llx", i,
                     (unsigned long long)got->value[i], (unsigned long long)expected->value[i]);
            fail(entry, kind->what, detail);
        }
}

static void count_call(const struct kind *kind)
{
    calls++;
    large_calls += kind->fate == LARGE;
}

static void check_kind(const struct entry *entry, const struct kind *kind)
{
    struct arguments x = arguments_for(entry, kind), before = x;
    struct recorder_call expected = expected_call(entry, &x);
    recorder_forget();
    entry->call(&x);
    count_call(kind);
    compare(entry, kind, &expected);
    if (memcmp(&x, &before, sizeof x) != 0)
        fail(entry, kind->what, "an argument was written to");
}

/* ---- the stack above the arguments ---- */

static struct raw_call raw_call_for(const struct entry *entry, struct arguments *x)
{
    struct raw_call raw = {.function = entry->function};
    struct recorder_call all = expected_call(entry, x);
    unsigned count = all.slots - length_count(entry);
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
static void check_stack(const struct entry *entry, const struct kind *kind)
{
    struct arguments x = arguments_for(entry, kind);
    struct raw_call raw = raw_call_for(entry, &x);
    recorder_forget();
    raw_call(&raw);
    count_call(kind);
    if (recorder_last.calls != 1)
        fail(entry, kind->what, "without lengths: did not arrive");
    if (changed_canaries(&raw) != 0)
        fail(entry, kind->what, "without lengths: the caller's stack was changed");
}

/* The recorder itself writes where absent lengths would be. If it did not, check_stack would
 * prove nothing. */
static void check_that_the_recorder_writes(const struct entry *entry)
{
    struct arguments x = arguments_for(entry, &kinds[0]);
    struct raw_call raw = raw_call_for(entry, &x);
    void *recorder = dlopen(RECORDER_NAME, RTLD_NOW | RTLD_NOLOAD);
    raw.function = (void (*)(void))dlsym(recorder, entry->name);
    if (raw.function == NULL)
        fail(entry, "direct", "not found in " RECORDER_NAME);
    else
        raw_call(&raw);
    if (changed_canaries(&raw) != length_count(entry))
        fail(entry, "direct", "the recorder does not write into the slots of hidden lengths");
}
#endif

static void check_entry(const struct entry *entry, bool all)
{
    for (unsigned i = 0; i < kind_count; i++) {
        if (!kind_applies(entry, &kinds[i]) || (kinds[i].fate == LARGE && !all))
            continue;
        if (kinds[i].fate == SMALL && !all && kinds[i].m > 0 && kinds[i].n > 0 &&
            kinds[i].k > 0)
            continue; /* not empty: in force mode a device takes it */
        check_kind(entry, &kinds[i]);
#if RAW_CALL_WORKS
        check_stack(entry, &kinds[i]);
#endif
    }
#if RAW_CALL_WORKS
    check_that_the_recorder_writes(entry);
#endif
}

int main(int argc, char **argv)
{
    bool all = argc == 2 && strcmp(argv[1], "all") == 0;
    if (!all && (argc != 2 || strcmp(argv[1], "forwarded") != 0))
        return 2;
    for (unsigned e = 0; e < entry_count; e++) {
        if (argument_list(&entries[e]) == NULL)
            fail(&entries[e], entries[e].signature, "a signature without an argument list");
        else
            check_entry(&entries[e], all);
    }
#if !RAW_CALL_WORKS
    printf("skipped: calls without hidden lengths (no raw_call for this machine)\n");
#endif
    if (failures > 0)
        return 1;
    printf("ok %u calls of %u names, %u large\n", calls, entry_count, large_calls);
    return 0;
}
