/* SPDX-License-Identifier: Apache-2.0
 *
 * What audit.c (counters, records), audit_open.c (start, modules, close), audit_file.c (the mapped
 * file), audit_events.c (run.json, events) and audit_text.c (names, times, JSON) share; nobody
 * else includes this.
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "audit.h"
#include "quiet.h"

#define GS_AUDIT_RECORDS_PER_CHUNK (GS_FILE_CHUNK_BYTES / sizeof(struct gs_record))
/* 4 GiB of records: more than this a process does not keep, whatever its limit says. */
#define GS_AUDIT_CHUNKS_MAX 4096

struct gs_audit_state {
    struct gs_file_header *header;
    struct gs_counter_row *counters;
    char (*modules)[GS_FILE_MODULE_BYTES];
    bool in_file;             /* the three above are mapped; else they are ordinary memory */
    bool keeps_records;
    uint64_t room;            /* records that have mapped memory; atomic */
    uint64_t raise_at;        /* record number at which the floor doubles next; atomic */
    uint32_t chunks_allowed;  /* no chunk is added beyond this many; fixed once open */
    bool full;                /* no chunk will be added any more; atomic */
    pthread_mutex_t mutex;    /* adding a chunk, a module */
    dev_t device;             /* of the file, so that a path that changed hands is noticed */
    ino_t inode;
    char folder[PATH_MAX];    /* of the run, absolute */
    char file[PATH_MAX];
};

extern struct gs_audit_state gs_audit;
/* The first room / GS_AUDIT_RECORDS_PER_CHUNK are valid. */
extern struct gs_record *gs_audit_chunks[GS_AUDIT_CHUNKS_MAX];

/* Makes and maps the file for the header that gs_audit has in memory, and switches gs_audit to
 * it. Returns 0 or an errno value; gs_audit is then unchanged. */
int gs_audit_file_create(const struct gs_audit_options *options, uint64_t limit_bytes);

/* Maps one more chunk. Returns 0 or the enum gs_file_partial that stands for the reason. */
uint32_t gs_audit_file_add_chunk(void);

/* Whether a file may grow to bytes under RLIMIT_FSIZE; beyond it a write raises SIGXFSZ. */
bool gs_audit_size_allowed(uint64_t bytes);

/* Writes run.json into the folder of the run unless it is there. */
void gs_audit_write_run(const struct gs_audit_options *options);

uint64_t gs_audit_clock_ns(clockid_t clock);

/* Copies text cut to size - 1 bytes; NULL counts as "". */
void gs_audit_copy(char *out, size_t size, const char *text);

/* The same with every character that does not belong in a file name replaced by '_', so that a
 * run id cannot lead out of its folder. */
void gs_audit_copy_name(char *out, size_t size, const char *text);

/* "2026-12-01T14:03:22Z". Not gmtime: that takes the lock of the time zone, which a forked child
 * may find held for ever. */
void gs_audit_utc(char out[32], uint64_t realtime_ns);
