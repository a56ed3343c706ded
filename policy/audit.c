/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts a call passes through: counters and records.
 */
#include "audit.h"

#include <string.h>

#include "audit_parts.h"
#include "reasons.h"

/* The row that takes what finds no row of its own; no ordinary key is ever given to it. */
#define OVERFLOW_ROW (GS_FILE_COUNTERS - 1)
#define OVERFLOW_KEY UINT16_MAX
#define FLOOR_FIRST_NS 1000

/* What tells counter rows apart, as one word, so that a row is claimed by one exchange. */
typedef uint64_t __attribute__((may_alias)) row_key;
#define KEY_OFFSET offsetof(struct gs_counter_row, routine)
_Static_assert(KEY_OFFSET % sizeof(row_key) == 0 &&
                   sizeof(struct gs_counter_row) - KEY_OFFSET == sizeof(row_key),
               "the key fields of a counter row are its last, aligned word");

/* Finds or claims the row of key. */
static struct gs_counter_row *find_row(uint64_t key)
{
    uint64_t start = (key * 0x9E3779B97F4A7C15u >> 40) % OVERFLOW_ROW;
    for (uint64_t step = 0; step < OVERFLOW_ROW; step++) {
        struct gs_counter_row *row = &gs_audit.counters[(start + step) % OVERFLOW_ROW];
        row_key *place = (row_key *)((char *)row + KEY_OFFSET);
        uint64_t found = __atomic_load_n(place, __ATOMIC_RELAXED);
        if (found == 0 && __atomic_compare_exchange_n(place, &found, key, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
            return row;
        if (found == key) return row;
    }
    struct gs_counter_row *last = &gs_audit.counters[OVERFLOW_ROW];
    __atomic_store_n(&last->routine, OVERFLOW_KEY, __ATOMIC_RELAXED);
    __atomic_store_n(&last->reason, OVERFLOW_KEY, __ATOMIC_RELAXED);
    __atomic_fetch_or(&gs_audit.header->partial, GS_PARTIAL_COUNTERS, __ATOMIC_RELAXED);
    return last;
}

static void add(uint64_t *sum, uint64_t value)
{
    if (value != 0) __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}

void gs_audit_count(uint16_t routine, uint8_t where, uint16_t reason, uint16_t would,
                    uint64_t calls, uint64_t wall_ns, uint64_t bytes_in, uint64_t bytes_out,
                    uint64_t lost_ns)
{
    const struct gs_counter_row wanted = {
        .routine = routine, .where = where, .reason = reason, .would = would};
    uint64_t key;
    memcpy(&key, (const char *)&wanted + KEY_OFFSET, sizeof(key));
    if (reason == GS_NO_REASON) return;
    struct gs_counter_row *row = find_row(key);
    add(&row->calls, calls);
    add(&row->wall_ns, wall_ns);
    add(&row->bytes_in, bytes_in);
    add(&row->bytes_out, bytes_out);
    add(&row->lost_ns, lost_ns);
}

/* Makes room beyond what is mapped; false when there is no more to be had. */
static bool grow(void)
{
    struct gs_quiet quiet;
    uint64_t *record_count = &gs_audit.header->record_count;
    uint32_t problem = 0;
    if (__atomic_load_n(&gs_audit.full, __ATOMIC_ACQUIRE)) return false;
    gs_quiet_begin(&quiet);
    pthread_mutex_lock(&gs_audit.mutex);
    if (__atomic_load_n(record_count, __ATOMIC_RELAXED) >= gs_audit.room) {
        if (gs_audit.header->chunk_count < gs_audit.chunks_allowed)
            problem = gs_audit_file_add_chunk();
        else
            problem = GS_PARTIAL_LIMIT;
    }
    if (problem != 0) {
        __atomic_fetch_or(&gs_audit.header->partial, problem, __ATOMIC_RELAXED);
        __atomic_store_n(&gs_audit.full, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&gs_audit.mutex);
    gs_quiet_end(&quiet);
    return problem == 0;
}

/* Hands out the next record number; never one that has no memory behind it. */
static bool reserve(uint64_t *number)
{
    uint64_t next = __atomic_load_n(&gs_audit.header->record_count, __ATOMIC_RELAXED);
    for (;;) {
        if (next < __atomic_load_n(&gs_audit.room, __ATOMIC_ACQUIRE)) {
            if (__atomic_compare_exchange_n(&gs_audit.header->record_count, &next, next + 1, true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                break;
        } else if (grow()) {
            next = __atomic_load_n(&gs_audit.header->record_count, __ATOMIC_RELAXED);
        } else {
            __atomic_fetch_add(&gs_audit.header->records_dropped, 1, __ATOMIC_RELAXED);
            return false;
        }
    }
    *number = next;
    return true;
}

/* Doubles the floor when half of the remaining room is used, then half of the rest, and so on:
 * long calls find room after any number of short ones. */
static void raise_floor(uint64_t number)
{
    uint64_t at = __atomic_load_n(&gs_audit.raise_at, __ATOMIC_RELAXED);
    uint64_t last = (uint64_t)gs_audit.chunks_allowed * GS_AUDIT_RECORDS_PER_CHUNK;
    uint64_t next = at + (last - at + 1) / 2;
    if (number < at || at >= last) return;
    if (!__atomic_compare_exchange_n(&gs_audit.raise_at, &at, next, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    uint64_t *place = &gs_audit.header->record_floor_ns, raised;
    uint64_t floor = __atomic_load_n(place, __ATOMIC_RELAXED);
    do {
        if (floor > UINT64_MAX / 2) return;
        raised = floor == 0 ? FLOOR_FIRST_NS : 2 * floor;
    } while (!__atomic_compare_exchange_n(place, &floor, raised, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    __atomic_fetch_or(&gs_audit.header->partial, GS_PARTIAL_FLOOR, __ATOMIC_RELAXED);
}

bool gs_audit_record(const struct gs_record *record)
{
    uint64_t number;
    if (!gs_audit.keeps_records ||
        record->wall_ns < __atomic_load_n(&gs_audit.header->record_floor_ns, __ATOMIC_RELAXED) ||
        !reserve(&number))
        return false;
    struct gs_record *slot = &gs_audit_chunks[number / GS_AUDIT_RECORDS_PER_CHUNK]
                                             [number % GS_AUDIT_RECORDS_PER_CHUNK];
    memcpy(slot, record, offsetof(struct gs_record, sequence));
    slot->sequence = (uint32_t)number + 1;
    __atomic_store_n(&slot->commit, slot->sequence, __ATOMIC_RELEASE);
    if (number >= __atomic_load_n(&gs_audit.raise_at, __ATOMIC_RELAXED)) raise_floor(number);
    return true;
}
