/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/audit.h"
#include "policy/audit_parts.h"

#define THREADS 8
#define EACH 100000
#define SKIPPED 77

static const char *const routines[] = {"dgemm", "sgemm", "a_name_much_too_long_for_the_table"};
static const char *const entries[] = {"dgemm_", "scipy_cblas_dgemm64_"};
static char root[] = "/tmp/gs-audit-XXXXXX";

static struct gs_audit_options options_for(const char *run_id)
{
    return (struct gs_audit_options){
        .level = GS_AUDIT_CALLS, .dir = root, .run_id = run_id, .limit_bytes = 64u << 20,
        .version = "0.1.0", .mode_name = "auto", .program = "python\"3\n",
        .routine_names = routines, .routine_count = 3, .entry_names = entries, .entry_count = 2};
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Path of the n-th file that matches below the folder of a run; "" when there is none. */
static const char *find(const char *run_id, const char *pattern, size_t n)
{
    static char found[600];
    char full[600];
    glob_t list;
    snprintf(full, sizeof(full), "%s/%s/%s", root, run_id, pattern);
    found[0] = '\0';
    if (glob(full, 0, NULL, &list) == 0) {
        if (n < list.gl_pathc) snprintf(found, sizeof(found), "%s", list.gl_pathv[n]);
        globfree(&list);
    }
    return found;
}

/* Content of a file, terminated; NULL when it cannot be read. The caller frees. */
static char *content(const char *path, size_t *size)
{
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) != 0) return NULL;
    char *bytes = calloc(1, (size_t)status.st_size + 1);
    *size = (size_t)status.st_size;
    ssize_t got = read(file, bytes, *size);
    close(file);
    return got == (ssize_t)*size ? bytes : NULL;
}

struct totals {
    uint64_t whole, torn, sum_m, calls;
};

/* What a reader finds in a file: every record that is whole must be what its writer meant. */
static bool read_totals(const char *bytes, size_t size, struct totals *totals)
{
    const struct gs_file_header *header = (const void *)bytes;
    *totals = (struct totals){0};
    if (size < sizeof(*header) || memcmp(header->magic, GS_FILE_MAGIC, 8) != 0) return false;
    if (header->record_count > header->chunk_count * (uint64_t)GS_AUDIT_RECORDS_PER_CHUNK)
        return false;
    if (size < header->chunk_offset + (uint64_t)header->chunk_count * header->chunk_bytes)
        return false;
    const struct gs_record *records = (const void *)(bytes + header->chunk_offset);
    for (uint64_t i = 0; i < header->record_count; i++) {
        if (records[i].commit == 0) {
            totals->torn++;
            continue;
        }
        if (records[i].commit != i + 1 || records[i].sequence != i + 1) return false;
        if (records[i].n != records[i].m + 1 || records[i].bytes_out != (uint64_t)records[i].m)
            return false;
        totals->whole++;
        totals->sum_m += (uint64_t)records[i].m;
    }
    const struct gs_counter_row *rows = (const void *)(bytes + header->counter_offset);
    for (uint32_t i = 0; i < header->counter_count; i++) totals->calls += rows[i].calls;
    return true;
}

static struct gs_record record_of(int64_t m, uint64_t wall_ns)
{
    return (struct gs_record){.wall_ns = wall_ns, .m = m, .n = m + 1, .bytes_out = (uint64_t)m};
}

/* Exit status of child, as waitpid tells it. Bounded, and ended by SIGKILL: what hangs here may
 * have every other signal blocked. */
static int wait_for(pid_t child)
{
    int status = -1;
    for (int i = 0; i < 12000; i++) {
        if (waitpid(child, &status, WNOHANG) == child) return status;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return status;
}

/* Runs check in a child, so that each has a fresh audit and may break; returns its result. */
static void run_in_child(int (*check)(void))
{
    pid_t child = fork();
    if (child == 0) _exit(check());
    int status = wait_for(child);
    if (WIFSIGNALED(status)) fail_msg("signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == SKIPPED) {
        print_message("skipped: this needs to mount a file system of its own\n");
        skip();
    }
    if (WEXITSTATUS(status) != 0) fail_msg("failed at line %d", WEXITSTATUS(status));
}

/* Lines above 255 do not fit an exit status, so a failed check prints its line as well. */
static int failed(int line)
{
    print_message("check failed at line %d\n", line);
    return line % 250 + 1 == SKIPPED ? 1 : line % 250 + 1;
}
#define CHECK(condition) do { if (!(condition)) return failed(__LINE__); } while (0)

static void *write_many(void *data)
{
    uint64_t thread = (uint64_t)(uintptr_t)data;
    for (uint64_t i = 0; i < EACH; i++) {
        struct gs_record record = record_of((int64_t)(thread * EACH + i), 1000);
        gs_audit_count((uint16_t)(i % 3), i % 2, (uint16_t)(101 + i % 7), 0, 1, 2, 3, 4, 5);
        gs_audit_record(&record);
    }
    return NULL;
}

static int check_threads(void)
{
    pthread_t threads[THREADS];
    struct gs_audit_options options = options_for("threads");
    struct totals totals;
    size_t size;
    options.limit_bytes = 1u << 30;
    CHECK(gs_audit_open(&options) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, write_many, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    gs_audit_close();
    char *bytes = content(find("threads", "*.gsl", 0), &size);
    CHECK(bytes != NULL && read_totals(bytes, size, &totals));
    CHECK(totals.whole == THREADS * EACH && totals.torn == 0 && totals.calls == THREADS * EACH);
    CHECK(totals.sum_m == (uint64_t)THREADS * EACH * (THREADS * EACH - 1) / 2);
    uint32_t count, used = 0;
    const struct gs_counter_row *rows = gs_audit_counters(&count);
    uint64_t lost = 0;
    for (uint32_t i = 0; i < count; i++) {
        used += rows[i].reason != 0;
        lost += rows[i].lost_ns;
        CHECK(rows[i].wall_ns == 2 * rows[i].calls && rows[i].bytes_out == 4 * rows[i].calls);
    }
    const struct gs_file_header *header = (const void *)bytes;
    CHECK(used == 42 && lost == 5ull * THREADS * EACH);
    CHECK(header->partial == 0 && header->records_dropped == 0);
    CHECK((header->flags & GS_FLAG_CLOSED) != 0 && header->end_monotonic_ns > header->monotonic_ns);
    free(bytes);
    return 0;
}

static pthread_barrier_t start;

static void *claim_many(void *data)
{
    pthread_barrier_wait(&start);
    for (uint16_t i = 0; i < 1500; i++) gs_audit_count(i, 0, 101, 0, 1, 0, 0, 0, 0);
    return data;
}

/* Threads that want new rows at the same time get one row for each key. */
static int check_claims(void)
{
    struct gs_audit_options options = options_for("claims");
    options.level = GS_AUDIT_OFF;
    CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (int round = 0; round < 50; round++) {
        pthread_t threads[THREADS];
        uint32_t count, used = 0;
        CHECK(gs_audit_open(&options) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, claim_many, NULL) == 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        const struct gs_counter_row *rows = gs_audit_counters(&count);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(rows[i].calls == 0 || rows[i].calls == THREADS);
            used += rows[i].calls != 0;
        }
        CHECK(used == 1500);
    }
    return 0;
}

static int check_layout(void)
{
    struct gs_audit_options options = options_for("layout");
    struct stat status;
    size_t size;
    options.forked = true;
    options.mode = 3;
    errno = 4711;
    CHECK(gs_audit_open(&options) == 0 && errno == 4711);
    CHECK(stat(find("layout", "*.gsl", 0), &status) == 0 && (status.st_mode & 07777) == 0600);
    CHECK(stat(find("layout", "", 0), &status) == 0 && (status.st_mode & 07777) == 0700);
    char *bytes = content(find("layout", "*.gsl", 0), &size);
    CHECK(bytes != NULL);
    const struct gs_file_header *header = (const void *)bytes;
    CHECK(size == header->chunk_offset && header->chunk_count == 0);
    CHECK(header->pid == (uint32_t)getpid() && header->flags == GS_FLAG_FORKED);
    CHECK(header->mode == 3 && strcmp(header->run_id, "layout") == 0);
    CHECK(strcmp(bytes + header->routine_offset, "dgemm") == 0);
    CHECK(strcmp(bytes + header->routine_offset + 2 * GS_FILE_ROUTINE_BYTES, "a_name_much_too_long_fo") == 0);
    CHECK(strcmp(bytes + header->entry_offset + GS_FILE_ENTRY_BYTES, "scipy_cblas_dgemm64_") == 0);
    const struct gs_field_row *fields = (const void *)(bytes + header->field_table_offset);
    CHECK(strcmp(fields[header->field_count - 1].name, "commit") == 0);
    CHECK(fields[header->field_count - 1].offset == offsetof(struct gs_record, commit));
    CHECK(strcmp(fields[header->field_count].name, "calls") == 0);
    CHECK(strcmp(fields[header->field_count].ctype, "uint64_t") == 0);
    free(bytes);
    return 0;
}

static int check_limit(void)
{
    struct gs_audit_options options = options_for("limit");
    const struct gs_record brief = record_of(1, 1500), longer = record_of(2, 1u << 30);
    options.limit_bytes = 4u << 20;
    CHECK(gs_audit_open(&options) == 0);
    struct gs_file_header *header = gs_audit_header();
    uint64_t allowed = 3 * GS_AUDIT_RECORDS_PER_CHUNK, brief_written = 0, longer_written = 0;
    for (uint64_t i = 0; i < allowed; i++) brief_written += gs_audit_record(&brief);
    CHECK(brief_written >= allowed / 2 && brief_written < allowed);
    CHECK(header->partial == GS_PARTIAL_FLOOR && header->record_floor_ns == 2000);
    for (uint64_t i = 0; i < allowed; i++) longer_written += gs_audit_record(&longer);
    CHECK(brief_written + longer_written == allowed && header->record_count == allowed);
    CHECK(header->partial == (GS_PARTIAL_FLOOR | GS_PARTIAL_LIMIT));
    CHECK(header->records_dropped == allowed - longer_written);
    CHECK(header->record_floor_ns < 1u << 30 && header->chunk_count == 3);
    struct stat status;
    CHECK(stat(find("limit", "*.gsl", 0), &status) == 0 && status.st_size <= 4 << 20);
    options = options_for("limit-all");
    options.limit_bytes = 4u << 20;
    options.level = GS_AUDIT_ALL;
    CHECK(gs_audit_open(&options) == 0);
    for (uint64_t i = 0; i < allowed; i++) CHECK(gs_audit_record(&brief));
    CHECK(!gs_audit_record(&brief) && gs_audit_header()->record_floor_ns == 0);
    return 0;
}

static int check_levels(void)
{
    struct gs_audit_options options = options_for("none");
    const struct gs_record record = record_of(1, 1500);
    options.level = GS_AUDIT_OFF;
    CHECK(gs_audit_open(&options) == 0 && *find("none", "", 0) == '\0');
    CHECK(gs_audit_header() != NULL && !gs_audit_record(&record));
    gs_audit_event("nothing", NULL);
    gs_audit_close();
    options = options_for("counters");
    options.level = GS_AUDIT_COUNTERS;
    CHECK(gs_audit_open(&options) == 0 && !gs_audit_record(&record));
    CHECK(gs_audit_header()->records_dropped == 0 && *find("counters", "*.gsl", 0) != '\0');
    options = options_for("floor");
    options.record_floor_ns = 1501;
    CHECK(gs_audit_open(&options) == 0 && !gs_audit_record(&record));
    options.limit_bytes = 1000;
    CHECK(gs_audit_open(&options) == EFBIG);
    return 0;
}

static int check_counters_run_out(void)
{
    struct gs_audit_options options = options_for("many");
    uint32_t count;
    uint64_t calls = 0;
    CHECK(gs_audit_open(&options) == 0);
    for (uint16_t i = 0; i < 3000; i++) gs_audit_count(i, 0, 101, 0, 1, 0, 0, 0, 0);
    gs_audit_count(0, 0, 0, 0, 1, 0, 0, 0, 0);
    const struct gs_counter_row *rows = gs_audit_counters(&count);
    for (uint32_t i = 0; i < count; i++) calls += rows[i].calls;
    CHECK(calls == 3000 && rows[count - 1].calls == 3000 - (count - 1));
    CHECK(rows[count - 1].reason == UINT16_MAX && rows[count - 1].routine == UINT16_MAX);
    CHECK(gs_audit_header()->partial == GS_PARTIAL_COUNTERS);
    return 0;
}

static int check_modules(void)
{
    struct gs_audit_options options = options_for("modules");
    char path[600], tail[256];
    CHECK(gs_audit_open(&options) == 0);
    memset(path, 'd', sizeof(path));
    memcpy(path + 600 - 12, "/libblas.so", 12);
    CHECK(gs_audit_module("/a") == 0 && gs_audit_module("/b") == 1 && gs_audit_module("/a") == 0);
    CHECK(gs_audit_module(path) == 2 && gs_audit_module(path) == 2);
    snprintf(tail, sizeof(tail), "%s", gs_audit.modules[2]);
    CHECK(strlen(tail) == 255 && strncmp(tail, "...d", 4) == 0);
    CHECK(strcmp(tail + 255 - 11, "/libblas.so") == 0);
    CHECK(gs_audit_module(NULL) == UINT16_MAX && gs_audit_module("") == UINT16_MAX);
    CHECK(gs_audit_header()->partial == 0);
    for (uint16_t i = 3; i < GS_FILE_MODULES; i++) {
        snprintf(path, sizeof(path), "/lib%d.so", i);
        CHECK(gs_audit_module(path) == i);
    }
    CHECK(gs_audit_module("/one more") == UINT16_MAX && gs_audit_module("/lib9.so") == 9);
    CHECK(gs_audit_header()->partial == GS_PARTIAL_MODULES);
    return 0;
}

static int check_ulimit(void)
{
    struct gs_audit_options options = options_for("ulimit");
    const struct gs_record record = record_of(1, 1500);
    struct rlimit limit = {1000, 1000};
    CHECK(gs_audit_open(&options) == 0);
    for (uint64_t i = 0; i < GS_AUDIT_RECORDS_PER_CHUNK; i++) CHECK(gs_audit_record(&record));
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    errno = 4711;
    for (int i = 0; i < 10; i++) CHECK(!gs_audit_record(&record));
    CHECK(errno == 4711 && gs_audit_header()->partial == GS_PARTIAL_LIMIT);
    CHECK(gs_audit_header()->records_dropped == 10);
    gs_audit_event("small", NULL);
    for (int i = 0; i < 100; i++) gs_audit_event("an event of some length", NULL);
    options.run_id = "ulimit2";
    CHECK(gs_audit_open(&options) == EFBIG && *find("ulimit2", "*", 0) == '\0');
    gs_audit_count(1, 0, 101, 0, 1, 0, 0, 0, 0);
    return 0;
}

static int check_no_place(void)
{
    struct gs_audit_options options = options_for("none");
    const struct gs_record record = record_of(1, 1500);
    uint32_t count;
    uint64_t calls = 0;
    char below_file[64];
    snprintf(below_file, sizeof(below_file), "%s/file", root);
    int file = open(below_file, O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0 && close(file) == 0);
    strcat(below_file, "/runs");
    options.dir = below_file;
    errno = 4711;
    CHECK(gs_audit_open(&options) == ENOTDIR && errno == 4711);
    gs_audit_count(1, 0, 101, 0, 7, 0, 0, 0, 0);
    CHECK(!gs_audit_record(&record) && gs_audit_module("/x") == 0);
    gs_audit_event("lost", NULL);
    const struct gs_counter_row *rows = gs_audit_counters(&count);
    for (uint32_t i = 0; i < count; i++) calls += rows[i].calls;
    CHECK(calls == 7 && gs_audit_header()->pid == (uint32_t)getpid());
    options.dir = "/proc/self";
    CHECK(gs_audit_open(&options) != 0);
    rows = gs_audit_counters(&count);
    for (uint32_t i = 0; i < count; i++) CHECK(rows[i].calls == 0);
    options.dir = NULL;
    CHECK(gs_audit_open(&options) == ENOENT);
    return 0;
}

static int check_full_disk(void)
{
    char disk[64];
    const struct gs_record record = record_of(1, 1500);
    struct gs_audit_options options = options_for("run");
    snprintf(disk, sizeof(disk), "%s/disk", root);
    CHECK(mkdir(disk, 0700) == 0);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", disk, "tmpfs", 0, "size=2500k") != 0)
        return SKIPPED;
    options.dir = disk;
    CHECK(gs_audit_open(&options) == 0);
    uint64_t written = 0;
    for (uint64_t i = 0; i < 3 * GS_AUDIT_RECORDS_PER_CHUNK; i++)
        written += gs_audit_record(&record);
    CHECK(written == 2 * GS_AUDIT_RECORDS_PER_CHUNK);
    CHECK(gs_audit_header()->partial == GS_PARTIAL_DISK && gs_audit_header()->chunk_count == 2);
    CHECK(gs_audit_header()->records_dropped == GS_AUDIT_RECORDS_PER_CHUNK);
    for (int i = 0; i < 20000; i++) gs_audit_event("some event", "\"filling\":\"the disk\"");
    CHECK(gs_audit_open(&options) == ENOSPC);
    gs_audit_count(1, 0, 101, 0, 1, 0, 0, 0, 0);
    return 0;
}

static int check_fork(void)
{
    struct gs_audit_options options = options_for("fork");
    const struct gs_record record = record_of(1, 1500);
    struct totals totals;
    size_t size;
    CHECK(gs_audit_open(&options) == 0 && gs_audit_record(&record));
    gs_audit_count(1, 0, 101, 0, 5, 0, 0, 0, 0);
    struct gs_file_header *parents = gs_audit_header(), before = *parents;
    /* A mutex that another thread held at the fork stays held in the child. */
    pthread_mutex_lock(&gs_audit.mutex);
    pid_t child = fork();
    if (child == 0) {
        options.forked = true;
        if (gs_audit_open(&options) != 0 || gs_audit_header() == parents) _exit(1);
        gs_audit_count(1, 0, 101, 0, 9, 0, 0, 0, 0);
        if (!gs_audit_record(&record) || gs_audit_module("/x") != 0) _exit(2);
        _exit((gs_audit_header()->flags & GS_FLAG_FORKED) != 0 ? 0 : 3);
    }
    pthread_mutex_unlock(&gs_audit.mutex);
    CHECK(wait_for(child) == 0);
    CHECK(memcmp(&before, parents, sizeof(before)) == 0);
    char *first = content(find("fork", "*.gsl", 0), &size);
    CHECK(first != NULL && read_totals(first, size, &totals) && totals.whole == 1);
    uint64_t calls = totals.calls;
    char *second = content(find("fork", "*.gsl", 1), &size);
    CHECK(second != NULL && read_totals(second, size, &totals) && totals.whole == 1);
    CHECK(calls + totals.calls == 14 && *find("fork", "*.gsl", 2) == '\0');
    free(first);
    free(second);
    return 0;
}

static int check_kill(void)
{
    struct totals totals;
    size_t size;
    int told[2];
    CHECK(pipe(told) == 0);
    pid_t child = fork();
    if (child == 0) {
        pthread_t threads[4];
        struct gs_audit_options options = options_for("kill");
        if (gs_audit_open(&options) != 0 || write(told[1], "x", 1) != 1) _exit(1);
        for (uintptr_t i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, write_many, (void *)i);
        for (;;) pause();
    }
    char byte;
    CHECK(read(told[0], &byte, 1) == 1);
    nanosleep(&(struct timespec){.tv_nsec = 8000000}, NULL);
    CHECK(kill(child, SIGKILL) == 0 && WIFSIGNALED(wait_for(child)));
    char *bytes = content(find("kill", "*.gsl", 0), &size);
    CHECK(bytes != NULL && read_totals(bytes, size, &totals));
    CHECK(totals.torn <= 4);
    CHECK((((const struct gs_file_header *)bytes)->flags & GS_FLAG_CLOSED) == 0);
    print_message("killed after %lu records, %lu of them not whole\n", (unsigned long)totals.whole,
                  (unsigned long)totals.torn);
    free(bytes);
    return 0;
}

/* No descriptor of ours is left for the program to close by mistake; the program changes its
 * folder, moves our file away and puts something else in its place. */
static int check_moved(const char *run_id, int (*replace)(const char *moved, const char *path))
{
    struct gs_audit_options options = options_for(run_id);
    const struct gs_record record = record_of(1, 1500);
    char moved[PATH_MAX + 8];
    int lowest = open("/dev/null", O_RDONLY);
    CHECK(gs_audit_open(&options) == 0 && chdir("/") == 0);
    CHECK(open("/dev/null", O_RDONLY) == lowest + 1);
    for (uint64_t i = 0; i <= GS_AUDIT_RECORDS_PER_CHUNK; i++) CHECK(gs_audit_record(&record));
    snprintf(moved, sizeof(moved), "%s.moved", gs_audit.file);
    CHECK(rename(gs_audit.file, moved) == 0 && replace(moved, gs_audit.file) == 0);
    for (uint64_t i = 1; i < GS_AUDIT_RECORDS_PER_CHUNK; i++) CHECK(gs_audit_record(&record));
    CHECK(!gs_audit_record(&record) && gs_audit_header()->partial == GS_PARTIAL_DISK);
    return 0;
}

static int replace_by_own_file(const char *moved, const char *path)
{
    (void)moved;
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    return file < 0 ? -1 : close(file);
}

static int check_meddling(void)
{
    struct stat status;
    int result = check_moved("moved", replace_by_own_file);
    if (result != 0) return result;
    CHECK(stat(gs_audit.file, &status) == 0 && status.st_size == 0);
    return check_moved("linked", symlink);
}

/* A run id is one folder name, whatever it says. */
static int check_run_id(void)
{
    struct gs_audit_options options = options_for("../../x y");
    char old[PATH_MAX];
    CHECK(gs_audit_open(&options) == 0 && *find("_._.._x_y", "*.gsl", 0) != '\0');
    CHECK(getcwd(old, sizeof(old)) != NULL && chdir(root) == 0);
    options.dir = "relative/to";
    options.run_id = "here";
    CHECK(gs_audit_open(&options) == 0 && *find("relative/to/here", "*.gsl", 0) != '\0');
    options.run_id = "";
    CHECK(gs_audit_open(&options) == ENOENT);
    return chdir(old);
}

static int check_run_json(void)
{
    struct gs_audit_options options = options_for("json");
    char line[200];
    size_t size;
    char *huge = malloc(100000);
    CHECK(huge != NULL);
    memset(huge, '\001', 99999);
    huge[99999] = '\0';
    CHECK(setenv("GPUSHIM_MODE", "a\"b\\\xff\n", 1) == 0 && setenv("SLURM_JOB_ID", "42", 1) == 0);
    CHECK(setenv("GPUSHIM_HUGE", huge, 1) == 0 && setenv("OTHER", "secret", 1) == 0);
    CHECK(gs_audit_open(&options) == 0 && gs_audit_open(&options) == 0);
    CHECK(*find("json", "run.json.*", 0) == '\0' && *find("json", "*.gsl", 1) != '\0');
    char *text = content(find("json", "run.json", 0), &size);
    CHECK(text != NULL && strlen(text) == size);
    static const char first[] =
        "{\"v\":1,\"run_id\":\"json\",\"program\":\"python\\\"3\\u000a\",";
    CHECK(strncmp(text, first, strlen(first)) == 0);
    CHECK(strstr(text, "\"GPUSHIM_MODE\":\"a\\\"b\\\\\\ufffd\\u000a\"") != NULL);
    CHECK(strstr(text, ",\"SLURM_JOB_ID\":\"42\"}\n") != NULL && strstr(text, "secret") == NULL);
    snprintf(line, sizeof(line), "\"leader_pid\":%d,\"started\":\"20", (int)getpid());
    CHECK(strstr(text, line) != NULL && size < 32768);
    free(text);
    gs_audit_event("st\"art", NULL);
    gs_audit_event("next", "\"a\":1");
    text = content(find("json", "*.events.jsonl", 0), &size);
    CHECK(text != NULL && strstr(text, "\"event\":\"st\\\"art\"}\n{\"v\":1,\"t_ns\":") != NULL);
    static const char last[] = "\"event\":\"next\",\"a\":1}\n";
    CHECK(strcmp(text + size - strlen(last), last) == 0);
    snprintf(line, sizeof(line), "python3 -c 'import json,sys; json.load(open(sys.argv[1]))' %s",
             find("json", "run.json", 0));
    if (access("/usr/bin/python3", X_OK) == 0) CHECK(system(line) == 0);
    free(text);
    free(huge);
    return 0;
}

static int check_utc(void)
{
    static const time_t times[] = {0, 951782399, 951782400, 951868799, 951868800, 1709164800,
                                   1798761599, 4102444800, 4107542400};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        char ours[32], theirs[32];
        struct tm parts;
        gs_audit_utc(ours, (uint64_t)times[i] * 1000000000u);
        strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&times[i], &parts));
        CHECK(strcmp(ours, theirs) == 0);
    }
    return 0;
}

static void test_json_text(void **state)
{
    static const struct {
        const char *text;
        size_t size;
        const char *json;
    } rows[] = {
        {"plain", 64, "\"plain\""},
        {"", 64, "\"\""},
        {NULL, 64, "\"\""},
        {"a\"b\\c", 64, "\"a\\\"b\\\\c\""},
        {"\n\t\x1f\x7f", 64, "\"\\u000a\\u0009\\u001f\x7f\""},
        {"é€😀", 64, "\"é€😀\""},
        {"\xff" "a\xc3", 64, "\"\\ufffda\\ufffd\""},
        {"\xc0\xaf", 64, "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", 64, "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xe2\x82", 64, "\"\\ufffd\\ufffd\""},
        {"\xf4\x90\x80\x80", 64, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"abcdef", 6, "\"abc\""},
        {"aé", 5, "\"a\""},
        {"a\"", 5, "\"a\""},
        {"\n", 8, "\"\""},
        {"\n", 9, "\"\\u000a\""},
        {"a", 3, "\"\""},
        {"a", 2, ""},
        {"a", 1, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *out = malloc(rows[i].size);
        assert_non_null(out);
        assert_string_equal(gs_json_text(out, rows[i].size, rows[i].text), rows[i].json);
        free(out);
    }
    char untouched = 'x';
    gs_json_text(&untouched, 0, "a");
    assert_int_equal(untouched, 'x');
}

#define IN_CHILD(name)                        \
    static void test_##name(void **state)     \
    {                                         \
        (void)state;                          \
        run_in_child(check_##name);           \
    }
IN_CHILD(threads)
IN_CHILD(claims)
IN_CHILD(layout)
IN_CHILD(limit)
IN_CHILD(levels)
IN_CHILD(counters_run_out)
IN_CHILD(modules)
IN_CHILD(ulimit)
IN_CHILD(no_place)
IN_CHILD(full_disk)
IN_CHILD(fork)
IN_CHILD(kill)
IN_CHILD(meddling)
IN_CHILD(run_id)
IN_CHILD(run_json)
IN_CHILD(utc)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_counters_run_out),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_ulimit),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_meddling),
        cmocka_unit_test(test_run_id),
        cmocka_unit_test(test_run_json),
        cmocka_unit_test(test_utc),
        cmocka_unit_test(test_json_text),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
