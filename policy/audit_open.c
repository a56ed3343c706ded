/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit from start to close, and the few things other parts ask of it.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "audit_parts.h"

#define MODULE_NONE UINT16_MAX

static struct gs_file_header memory_header;
static struct gs_counter_row memory_counters[GS_FILE_COUNTERS];
static char memory_modules[GS_FILE_MODULES][GS_FILE_MODULE_BYTES];

struct gs_record *gs_audit_chunks[GS_AUDIT_CHUNKS_MAX];
struct gs_audit_state gs_audit = {
    .header = &memory_header,
    .counters = memory_counters,
    .modules = memory_modules,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

/* Everything back to empty ordinary memory. Whatever a parent had mapped is only forgotten. */
static void reset_to_memory(void)
{
    static bool used;
    if (used) {
        memset(&gs_audit, 0, sizeof(gs_audit));
        memset(&memory_header, 0, sizeof(memory_header));
        memset(memory_counters, 0, sizeof(memory_counters));
        memset(memory_modules, 0, sizeof(memory_modules));
    }
    used = true;
    gs_audit.header = &memory_header;
    gs_audit.counters = memory_counters;
    gs_audit.modules = memory_modules;
    gs_audit.raise_at = UINT64_MAX;
    gs_audit.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void describe_process(const struct gs_audit_options *options)
{
    struct gs_file_header *header = &memory_header;
    header->realtime_ns = gs_audit_clock_ns(CLOCK_REALTIME);
    header->monotonic_ns = gs_audit_clock_ns(CLOCK_MONOTONIC);
    header->record_floor_ns = options->record_floor_ns;
    header->flags = options->forked ? GS_FLAG_FORKED : 0;
    header->pid = (uint32_t)getpid();
    header->ppid = (uint32_t)getppid();
    header->mode = options->mode;
    gs_audit_copy(header->version, sizeof(header->version), options->version);
    gs_audit_copy(header->mode_name, sizeof(header->mode_name), options->mode_name);
    gs_audit_copy(header->program, sizeof(header->program), options->program);
    gs_audit_copy_name(header->run_id, sizeof(header->run_id), options->run_id);
    char host[sizeof(header->host)] = "";
    gethostname(host, sizeof(host) - 1);
    gs_audit_copy_name(header->host, sizeof(header->host), host);
}

static int open_file(const struct gs_audit_options *options)
{
    uint64_t limit = options->limit_bytes;
    struct rlimit resource;
    if (getrlimit(RLIMIT_FSIZE, &resource) == 0 && resource.rlim_cur < limit)
        limit = resource.rlim_cur;
    int problem = gs_audit_file_create(options, limit);
    if (problem != 0) return problem;
    gs_audit.keeps_records = options->level >= GS_AUDIT_CALLS;
    uint64_t chunks = (limit - gs_audit.header->chunk_offset) / GS_FILE_CHUNK_BYTES;
    if (chunks > GS_AUDIT_CHUNKS_MAX) chunks = GS_AUDIT_CHUNKS_MAX;
    gs_audit.chunks_allowed = (uint32_t)chunks;
    if (options->level == GS_AUDIT_CALLS)
        gs_audit.raise_at = chunks * GS_AUDIT_RECORDS_PER_CHUNK / 2;
    return 0;
}

int gs_audit_open(const struct gs_audit_options *options)
{
    struct gs_quiet quiet;
    gs_quiet_begin(&quiet);
    int problem = 0;
    reset_to_memory();
    describe_process(options);
    if (options->level != GS_AUDIT_OFF) {
        bool named = options->dir != NULL && *options->dir != '\0' && *memory_header.run_id != '\0';
        problem = named ? open_file(options) : ENOENT;
        if (problem == 0) gs_audit_write_run(options);
    }
    gs_quiet_end(&quiet);
    return problem;
}

/* Index of path, or of the first free row, or GS_FILE_MODULES. A row's first character is stored
 * last, so a row that is not free is whole. */
static uint16_t find_module(const char *path)
{
    uint16_t index = 0;
    for (; index < GS_FILE_MODULES; index++) {
        const char *row = gs_audit.modules[index];
        if (__atomic_load_n(row, __ATOMIC_ACQUIRE) == '\0' || strcmp(row, path) == 0) break;
    }
    return index;
}

static bool module_is_free(uint16_t index)
{
    return index < GS_FILE_MODULES &&
           __atomic_load_n(gs_audit.modules[index], __ATOMIC_ACQUIRE) == '\0';
}

static uint16_t add_module(const char *path)
{
    struct gs_quiet quiet;
    gs_quiet_begin(&quiet);
    pthread_mutex_lock(&gs_audit.mutex);
    uint16_t index = find_module(path);
    if (module_is_free(index)) {
        char *row = gs_audit.modules[index];
        memcpy(row + 1, path + 1, strlen(path));
        __atomic_store_n(row, *path, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&gs_audit.mutex);
    gs_quiet_end(&quiet);
    return index;
}

uint16_t gs_audit_module(const char *path)
{
    if (path == NULL || *path == '\0') return MODULE_NONE;
    char shortened[GS_FILE_MODULE_BYTES] = "...";
    size_t length = strlen(path);
    /* The end of a path tells more than its beginning. */
    if (length >= sizeof(shortened)) {
        gs_audit_copy(shortened + 3, sizeof(shortened) - 3,
                      path + length - (sizeof(shortened) - 4));
        path = shortened;
    }
    uint16_t index = find_module(path);
    if (module_is_free(index)) index = add_module(path);
    if (index < GS_FILE_MODULES) return index;
    __atomic_fetch_or(&gs_audit.header->partial, GS_PARTIAL_MODULES, __ATOMIC_RELAXED);
    return MODULE_NONE;
}

struct gs_file_header *gs_audit_header(void)
{
    return gs_audit.header;
}

const struct gs_counter_row *gs_audit_counters(uint32_t *count)
{
    *count = GS_FILE_COUNTERS;
    return gs_audit.counters;
}

void gs_audit_close(void)
{
    int saved_errno = errno;
    __atomic_store_n(&gs_audit.header->end_monotonic_ns, gs_audit_clock_ns(CLOCK_MONOTONIC),
                     __ATOMIC_RELAXED);
    __atomic_fetch_or(&gs_audit.header->flags, GS_FLAG_CLOSED, __ATOMIC_RELAXED);
    errno = saved_errno;
}
