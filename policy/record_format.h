/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit file of one process, `<host>.<pid>.<start>.gsl`: the contract between the library,
 * which writes it through a shared mapping, and tools/, which reads it.
 *
 *   offset                content
 *   0                     struct gs_file_header, GS_FILE_HEADER_BYTES
 *   field_table_offset    struct gs_field_row[field_count], then [counter_field_count]
 *   routine_offset        char[24][routine_count]   routine names, "dgemm"
 *   entry_offset          char[48][entry_count]     exported names, "scipy_cblas_dgemm64_"
 *   module_offset         char[256][module_count]   paths of callers and CPU libraries; "" = free
 *   counter_offset        struct gs_counter_row[counter_count]
 *   chunk_offset          struct gs_record[…] in chunks of chunk_bytes, chunk_count of them so far
 *
 * The last counter row takes what finds no row of its own: its routine and reason are 65535. The
 * file always covers chunk_offset + chunk_count * chunk_bytes; a shorter one was cut.
 *
 * All integers are little-endian and in the file's own machine order. Everything but the chunks
 * is laid out before the first record. Counters count every call; records are kept for the calls
 * that last at least record_floor_ns, which doubles when the file nears its limit.
 */
#pragma once

#include <stdint.h>

#define GS_FILE_MAGIC "GPUSHIM1"
#define GS_FILE_SCHEMA 1
#define GS_FILE_HEADER_BYTES 4096
#define GS_FILE_ROUTINE_BYTES 24
#define GS_FILE_ENTRY_BYTES 48
#define GS_FILE_MODULE_BYTES 256
#define GS_FILE_MODULES 256
#define GS_FILE_COUNTERS 2048
#define GS_FILE_CHUNK_BYTES (1u << 20)

typedef char char8[8];

/* One field of a record or of a counter row, as stored in the file. */
struct gs_field_row {
    char name[24];
    char ctype[16];
    uint32_t offset;
    uint32_t size;
};

struct gs_record {
#define GS_FIELD(ctype, name, meaning) ctype name;
#include "record_fields.def"
#undef GS_FIELD
};

struct gs_counter_row {
#define GS_COUNTER_FIELD(ctype, name, meaning) ctype name;
#include "record_fields.def"
#undef GS_COUNTER_FIELD
};

_Static_assert(sizeof(struct gs_record) == 128, "records fill whole cache lines");
_Static_assert(sizeof(struct gs_counter_row) == 48, "counter rows have no padding");

/* Why a file does not hold everything; bits of gs_file_header.partial. */
enum gs_file_partial {
    GS_PARTIAL_LIMIT = 1,      /* GPUSHIM_AUDIT_LIMIT or ulimit -f: later records dropped */
    GS_PARTIAL_DISK = 2,       /* the disk is full: later records dropped */
    GS_PARTIAL_FLOOR = 4,      /* record_floor_ns was raised: shorter calls are only counted */
    GS_PARTIAL_COUNTERS = 8,   /* counter rows ran out: the rest is in the last row */
    GS_PARTIAL_MODULES = 16,   /* module rows ran out */
};

/* What is true of the run as a whole; bits of gs_file_header.flags. */
enum gs_file_flags {
    GS_FLAG_NOT_CALIBRATED = 1,   /* P708 */
    GS_FLAG_BAD_SETTING = 2,      /* P709: see the events file */
    GS_FLAG_CLOSED = 4,           /* the process ended in order: small-call counts are complete */
    GS_FLAG_FORKED = 8,           /* this process was forked from one that had a file */
};

struct gs_file_header {
    char magic[8];
    uint32_t schema;
    uint32_t header_bytes;
    uint32_t record_bytes, counter_bytes;
    uint32_t field_count, counter_field_count;
    uint32_t routine_count, entry_count, module_count, counter_count;
    uint64_t field_table_offset, routine_offset, entry_offset, module_offset, counter_offset;
    uint64_t chunk_offset;
    uint32_t chunk_bytes;
    uint32_t chunk_count;        /* grows as chunks are mapped */
    uint64_t record_count;       /* records handed out so far */
    uint64_t record_floor_ns;    /* records are for calls at least this long */
    uint64_t records_dropped;    /* records that found no room */
    uint32_t partial;            /* enum gs_file_partial */
    uint32_t flags;              /* enum gs_file_flags */
    uint64_t realtime_ns;        /* CLOCK_REALTIME and CLOCK_MONOTONIC read together: the anchor */
    uint64_t monotonic_ns;
    uint64_t overhead_ns;        /* time spent in the library itself outside GPU and CPU work */
    uint64_t startup_ns;         /* device start-up, in whichever thread it ran; 0: none */
    uint64_t end_monotonic_ns;   /* time of the last fold */
    uint32_t pid, ppid;
    uint32_t mode;               /* enum gs_mode */
    uint32_t device_state_reason; /* L8xx when the device could not be used, else 0 */
    char version[16];            /* of libgpushim */
    char mode_name[16];
    char run_id[128];
    char host[64];
    char program[256];           /* argv[0] only */
    char device_name[128];       /* "" until a device was started */
    char cuda_libraries[1024];   /* paths, newline-separated */
};
_Static_assert(sizeof(struct gs_file_header) <= GS_FILE_HEADER_BYTES, "header fits its page");
