/* SPDX-License-Identifier: Apache-2.0
 *
 * The mapped file: where it lies, what it begins with, how it grows.
 *
 * No descriptor is kept: programs close descriptors that they do not know, and the number would
 * then be that of a file of theirs. A chunk is added through the path, and only if the path still
 * leads to the file that was made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_parts.h"

static const struct gs_field_row field_rows[] = {
#define GS_FIELD(ctype, name, meaning) \
    {#name, #ctype, offsetof(struct gs_record, name), sizeof(((struct gs_record *)0)->name)},
#include "record_fields.def"
#undef GS_FIELD
};

static const struct gs_field_row counter_field_rows[] = {
#define GS_COUNTER_FIELD(ctype, name, meaning)                  \
    {#name, #ctype, offsetof(struct gs_counter_row, name),      \
     sizeof(((struct gs_counter_row *)0)->name)},
#include "record_fields.def"
#undef GS_COUNTER_FIELD
};

bool gs_audit_size_allowed(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static void lay_out(struct gs_file_header *header, const struct gs_audit_options *options)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = GS_FILE_HEADER_BYTES;
    header->schema = GS_FILE_SCHEMA;
    header->header_bytes = GS_FILE_HEADER_BYTES;
    header->record_bytes = sizeof(struct gs_record);
    header->counter_bytes = sizeof(struct gs_counter_row);
    header->field_count = sizeof(field_rows) / sizeof(field_rows[0]);
    header->counter_field_count = sizeof(counter_field_rows) / sizeof(counter_field_rows[0]);
    header->routine_count = options->routine_count;
    header->entry_count = options->entry_count;
    header->module_count = GS_FILE_MODULES;
    header->counter_count = GS_FILE_COUNTERS;
    header->chunk_bytes = GS_FILE_CHUNK_BYTES;
    header->field_table_offset = at;
    at += sizeof(field_rows) + sizeof(counter_field_rows);
    header->routine_offset = at;
    at += (uint64_t)header->routine_count * GS_FILE_ROUTINE_BYTES;
    header->entry_offset = at;
    at += (uint64_t)header->entry_count * GS_FILE_ENTRY_BYTES;
    header->module_offset = at;
    at += GS_FILE_MODULES * GS_FILE_MODULE_BYTES;
    header->counter_offset = at = round_up(at, 64);
    at += GS_FILE_COUNTERS * sizeof(struct gs_counter_row);
    header->chunk_offset = round_up(at, page);
}

static void write_tables(char *base, const struct gs_file_header *header,
                         const struct gs_audit_options *options)
{
    char *fields = base + header->field_table_offset;
    memcpy(fields, field_rows, sizeof(field_rows));
    memcpy(fields + sizeof(field_rows), counter_field_rows, sizeof(counter_field_rows));
    for (uint32_t i = 0; i < header->routine_count; i++)
        gs_audit_copy(base + header->routine_offset + (uint64_t)i * GS_FILE_ROUTINE_BYTES,
                      GS_FILE_ROUTINE_BYTES, options->routine_names[i]);
    for (uint32_t i = 0; i < header->entry_count; i++)
        gs_audit_copy(base + header->entry_offset + (uint64_t)i * GS_FILE_ENTRY_BYTES,
                      GS_FILE_ENTRY_BYTES, options->entry_names[i]);
}

/* Makes gs_audit.folder, absolute: the program may change its folder before the file grows. */
static int make_folder(const char *dir, const char *run_id)
{
    char *folder = gs_audit.folder;
    size_t size = sizeof(gs_audit.folder), used = 0;
    if (*dir != '/') {
        if (getcwd(folder, size) == NULL) return errno;
        used = strlen(folder);
    }
    int length = snprintf(folder + used, size - used, "/%s/%s", dir, run_id);
    if (length < 0 || (size_t)length >= size - used) return ENAMETOOLONG;
    /* What goes wrong on the way shows again at the end, where it counts. */
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
    }
    return mkdir(folder, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

/* Creates <folder>/<host>.<pid>.<start>.gsl; returns a descriptor or -errno. The start is told in
 * milliseconds: a process that replaces itself by exec keeps its pid. */
static int create_file(const struct gs_file_header *header)
{
    int file = -1;
    uint64_t start = header->realtime_ns / 1000000u;
    for (unsigned attempt = 0; attempt < 100 && file < 0; attempt++) {
        int length = snprintf(gs_audit.file, sizeof(gs_audit.file), "%s/%s.%u.%llu.gsl",
                              gs_audit.folder, header->host, header->pid,
                              (unsigned long long)(start + attempt));
        if (length < 0 || (size_t)length >= sizeof(gs_audit.file)) return -ENAMETOOLONG;
        file = open(gs_audit.file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST) return -errno;
    }
    return file < 0 ? -EEXIST : file;
}

/* Gives [offset, offset + bytes) of the file real blocks and maps it. Without blocks a full disk
 * would be SIGBUS at the first write. Returns 0 or an errno value. */
static int map_part(int file, uint64_t offset, uint64_t bytes, void **mapped)
{
    int problem = EINTR;
    if (!gs_audit_size_allowed(offset + bytes)) return EFBIG;
    for (int attempt = 0; attempt < 100 && problem == EINTR; attempt++)
        problem = posix_fallocate(file, (off_t)offset, (off_t)bytes);
    if (problem != 0) return problem;
    *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    return *mapped == MAP_FAILED ? errno : 0;
}

static void switch_to_file(char *base, const struct stat *status)
{
    struct gs_file_header *header = (struct gs_file_header *)base;
    gs_audit.device = status->st_dev;
    gs_audit.inode = status->st_ino;
    gs_audit.header = header;
    gs_audit.counters = (struct gs_counter_row *)(base + header->counter_offset);
    gs_audit.modules = (char (*)[GS_FILE_MODULE_BYTES])(base + header->module_offset);
    gs_audit.in_file = true;
    /* The magic last: a reader takes no file for one that is still being made. */
    static const char magic[sizeof(header->magic) + 1] = GS_FILE_MAGIC;
    memcpy(header->magic + 1, magic + 1, sizeof(header->magic) - 1);
    __atomic_store_n(&header->magic[0], magic[0], __ATOMIC_RELEASE);
}

int gs_audit_file_create(const struct gs_audit_options *options, uint64_t limit_bytes)
{
    struct gs_file_header *header = gs_audit.header;
    struct stat status;
    void *base;
    lay_out(header, options);
    if (header->chunk_offset > limit_bytes) return EFBIG;
    int problem = make_folder(options->dir, header->run_id);
    if (problem != 0) return problem;
    int file = create_file(header);
    if (file < 0) return -file;
    problem = fstat(file, &status) != 0 ? errno : map_part(file, 0, header->chunk_offset, &base);
    close(file);
    if (problem != 0) {
        unlink(gs_audit.file);
        return problem;
    }
    memcpy(base, header, sizeof(*header));
    write_tables(base, header, options);
    switch_to_file(base, &status);
    return 0;
}

static int open_same_file(void)
{
    struct stat status;
    int file = open(gs_audit.file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return -errno;
    if (fstat(file, &status) == 0 && status.st_dev == gs_audit.device &&
        status.st_ino == gs_audit.inode)
        return file;
    close(file);
    return -ESTALE;
}

uint32_t gs_audit_file_add_chunk(void)
{
    struct gs_file_header *header = gs_audit.header;
    uint32_t number = header->chunk_count;
    uint64_t offset = header->chunk_offset + (uint64_t)number * GS_FILE_CHUNK_BYTES;
    void *mapped;
    int file = open_same_file();
    int problem = file < 0 ? -file : map_part(file, offset, GS_FILE_CHUNK_BYTES, &mapped);
    if (file >= 0) {
        /* Half an allocation on a full disk is given back; it cannot be read as records. */
        if (problem != 0 && problem != EFBIG && ftruncate(file, (off_t)offset) != 0)
            problem = ENOSPC;
        close(file);
    }
    if (problem == EFBIG || problem == ENOMEM || problem == EMFILE) return GS_PARTIAL_LIMIT;
    if (problem != 0) return GS_PARTIAL_DISK;
    gs_audit_chunks[number] = mapped;
    __atomic_store_n(&header->chunk_count, number + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&gs_audit.room, (uint64_t)(number + 1) * GS_AUDIT_RECORDS_PER_CHUNK,
                     __ATOMIC_RELEASE);
    return 0;
}
