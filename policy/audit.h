/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit of one process: counters and records in a mapped file (record_format.h), rare events
 * in a JSON-lines file beside it. Nothing here ever fails the caller: without a writable place
 * the counters live in ordinary memory and are lost with the process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record_format.h"

enum gs_audit_level { GS_AUDIT_OFF, GS_AUDIT_COUNTERS, GS_AUDIT_CALLS, GS_AUDIT_ALL };

/* What the audit needs to know to open its files; strings are copied. */
struct gs_audit_options {
    enum gs_audit_level level;
    const char *dir;              /* folder of the runs; NULL: no place, counters only */
    const char *run_id;           /* folder of this run inside dir */
    uint64_t limit_bytes;         /* size of the file of one process */
    uint64_t record_floor_ns;     /* shortest call that gets a record; 0: all */
    const char *version, *mode_name, *program;
    uint32_t mode;
    bool forked;                  /* a child of a process that had a file */
    const char *const *routine_names; /* GS_FILE_ROUTINE_BYTES - 1 characters at most, each */
    uint32_t routine_count;
    const char *const *entry_names;
    uint32_t entry_count;
};

/* Creates <dir>/<run_id>/<host>.<pid>.<start>.gsl (0600; folders 0700, made as needed) and, if it
 * is not there, run.json. Checks RLIMIT_FSIZE and posix_fallocate before mapping, so that a full
 * disk or `ulimit -f` costs the file and never a signal. Returns 0, or an errno value when only
 * the in-memory counters are available. Called once per process, before any other function
 * here. After a fork, called again in the child: the parent's mapping is left alone (it is not
 * written, not unmapped), and a new file is made. Not thread-safe: the caller holds its start-up
 * lock. */
int gs_audit_open(const struct gs_audit_options *options);

/* Adds to the counter row (routine, where, reason, would). Lock-free; any thread. */
void gs_audit_count(uint16_t routine, uint8_t where, uint16_t reason, uint16_t would,
                    uint64_t calls, uint64_t wall_ns, uint64_t bytes_in, uint64_t bytes_out,
                    uint64_t lost_ns);

/* Writes one record when its wall_ns reaches the floor; sequence and commit are filled in here.
 * The commit word is stored last, with release order: a reader never sees half a record.
 * Lock-free except when a chunk must be added. Returns whether it was written. */
bool gs_audit_record(const struct gs_record *record);

/* Index of a module path in the file's module table, adding it if new; 65535 when full. */
uint16_t gs_audit_module(const char *path);

/* Appends {"v":1,"t_ns":…,"pid":…,"event":name,…} to <host>.<pid>.events.jsonl, where detail is
 * the remaining members as JSON text without braces, or NULL. Made with gs_json_text for strings. */
void gs_audit_event(const char *name, const char *detail);

/* Writes text as a JSON string with quotes into out (size bytes, always terminated; cut at a
 * character boundary when too long). Returns out. */
char *gs_json_text(char *out, unsigned long size, const char *text);

/* The header, for the few fields other parts own (device_name, startup_ns, overhead_ns,
 * flags, device_state_reason). Never NULL after gs_audit_open; points to ordinary memory when
 * there is no file. Numeric fields are updated with atomic operations. */
struct gs_file_header *gs_audit_header(void);

/* Counter rows as they stand, for the exit line; count receives how many. */
const struct gs_counter_row *gs_audit_counters(uint32_t *count);

/* Marks the file as closed in order (GS_FLAG_CLOSED) and stamps end_monotonic_ns. The mapping
 * stays: calls made later in exit are still counted. */
void gs_audit_close(void);
