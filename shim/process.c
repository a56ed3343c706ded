/* SPDX-License-Identifier: Apache-2.0
 *
 * Constructor, first eligible call, fork, exit.
 *
 * A process that makes no eligible call opens, maps and starts nothing. Readiness is one word of
 * owner pid and state, changed by compare-and-swap; a page that the kernel wipes in every child
 * (MADV_WIPEONFORK) tells a forked child from its parent even after _Fork or clone, which run no
 * atfork handler.
 */
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dispatch.h"
#include "entries.h"
#include "originals.h"
#include "policy/audit.h"
#include "policy/breaker.h"
#include "notice.h"
#include "recorder.h"
#include "thread.h"

#ifndef GS_VERSION
#error "GS_VERSION comes from the Makefile"
#endif

bool gs_active;
struct gs_process gs_process;

static enum gs_mode mode_at_load;
static bool secure;
static const char *program;
static bool settings_read;
static pid_t counting_pid; /* process whose handler has reset the counters after its fork */
/* Of the process that loaded the library: forked children belong to its run. */
static struct timespec load_time;
static pid_t load_pid;

enum { COLD, STARTING, LIVE };
static _Atomic uint64_t readiness; /* pid << 8 | state */
static _Atomic uint32_t *fork_guard; /* 1 in the process that mapped it, 0 in its children */
/* The second is filled once, before it takes the first one's place: calls may be reading. */
static struct gs_machine estimates, findings;
static const struct gs_machine *_Atomic machine = &estimates;
static _Atomic int noted_device; /* enum gs_device_state the estimates know of */

uint64_t gs_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

const struct gs_machine *gs_process_machine(void)
{
    return atomic_load_explicit(&machine, memory_order_acquire);
}

/* Small enough never to pass over a call of 20 us, on a fast machine: what is counted before the
 * CPU's rate has been measured. */
static void set_first_floor(void)
{
    struct gs_machine usual;
    const double min_time = 20e-6;
    bool decides_all = mode_at_load == GS_MODE_FORCE || mode_at_load == GS_MODE_VERIFY;
    gs_machine_init(&usual, 4);
    for (unsigned routine = 0; routine < GS_ROUTINE_COUNT; routine++)
        gs_floor_work[routine] =
            decides_all ? 0 : gs_floor_for(&usual, routine % GS_DTYPE_COUNT, min_time);
}

void gs_process_update_floor(gs_operation operation, gs_dtype dtype)
{
    const struct gs_settings *settings = &gs_process.settings;
    bool decides_all = settings->mode == GS_MODE_FORCE || settings->mode == GS_MODE_VERIFY;
    double floor =
        decides_all ? 0 : gs_floor_for(gs_process_machine(), dtype, settings->min_time);
    double *word = &gs_floor_work[GS_ROUTINE(operation, dtype)];
    __atomic_store(word, &floor, __ATOMIC_RELAXED);
}

static int allowed_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static const char *audit_folder(char *folder, size_t size)
{
    const char *set = gs_process.settings.audit_dir;
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (strcmp(set, "auto") != 0)
        return set;
    if (state != NULL && state[0] == '/')
        snprintf(folder, size, "%s/gpushim/runs", state);
    else if (home != NULL && home[0] == '/')
        snprintf(folder, size, "%s/.local/state/gpushim/runs", home);
    else
        return NULL;
    return folder;
}

/* Name of a run that has none from outside: when and where it began. */
static const char *own_run_id(char *id, size_t size)
{
    struct tm utc;
    char host[64] = "localhost";
    gmtime_r(&load_time.tv_sec, &utc);
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c != '\0'; c++)
        if (*c == '/')
            *c = '_';
    size_t used = strftime(id, size, "%Y%m%dT%H%M%SZ", &utc);
    snprintf(id + used, size - used, "-%s-%d", host, (int)load_pid);
    return id;
}

static void open_audit(bool forked)
{
    static const char *entry_names[GS_ENTRY_COUNT];
    char folder[1100], id[128];
    const struct gs_settings *settings = &gs_process.settings;
    for (int i = 0; i < GS_ENTRY_COUNT; i++)
        entry_names[i] = gs_entries[i].name;
    struct gs_audit_options options = {
        .level = (enum gs_audit_level)settings->audit,
        .dir = audit_folder(folder, sizeof folder),
        .run_id = strcmp(settings->run_id, "auto") == 0 ? own_run_id(id, sizeof id)
                                                           : settings->run_id,
        .limit_bytes = settings->audit_limit,
        .record_floor_ns = settings->audit == GS_AUDIT_ALL ? 0 : 50000,
        .version = GS_VERSION,
        .mode_name = gs_mode_name((enum gs_mode)settings->mode),
        .program = program,
        .mode = (uint32_t)settings->mode,
        .forked = forked,
        .routine_names = gs_routine_names,
        .routine_count = GS_ROUTINE_COUNT,
        .entry_names = entry_names,
        .entry_count = GS_ENTRY_COUNT,
    };
    gs_audit_open(&options);
}

/* Remarks are made before the audit is open: kept until then, a few of them. */
enum { REMARKS = 16 };
static struct { char text[600]; } remarks[REMARKS];
static int remark_count;

static void keep_remark(void *data, const char *variable, const char *value, const char *advice)
{
    char a[128], b[160], c[256];
    (void)data;
    if (remark_count < REMARKS)
        snprintf(remarks[remark_count++].text, sizeof remarks[0].text,
                 "\"code\":\"P709\",\"setting\":%s,\"value\":%s,\"advice\":%s",
                 gs_json_text(a, sizeof a, variable), gs_json_text(b, sizeof b, value),
                 gs_json_text(c, sizeof c, advice));
}

static void write_remarks(void)
{
    struct gs_file_header *header = gs_audit_header();
    for (int i = 0; i < remark_count; i++)
        gs_audit_event("setting", remarks[i].text);
    if (remark_count > 0)
        __atomic_fetch_or(&header->flags, GS_FLAG_BAD_SETTING, __ATOMIC_RELAXED);
    __atomic_fetch_or(&header->flags, GS_FLAG_NOT_CALIBRATED, __ATOMIC_RELAXED);
}

static void read_settings(void)
{
    struct gs_settings *settings = &gs_process.settings;
    struct gs_device_options *options = &gs_process.device_options;
    settings_read = true;
    char *none[] = {NULL}; /* clearenv leaves no list at all */
    gs_settings_read(settings, environ != NULL ? environ : none, secure, keep_remark, NULL);
    for (unsigned routine = 0; routine < GS_ROUTINE_COUNT; routine++)
        gs_process.routine_selected[routine] =
            gs_routine_names[routine] != NULL && /* there is no shemm */
            gs_routine_selected(settings->routines, gs_routine_names[routine]);
    *options = (struct gs_device_options){
        .cuda_path = settings->cuda_path,
        .device = settings->device,
        .memory_fraction = settings->mem_limit.fraction,
        .memory_bytes = settings->mem_limit.bytes,
        .allow_tf32 = settings->precision == GS_PRECISION_TF32,
    };
    gs_machine_init(&estimates, allowed_cpus());
    atomic_store(&machine, &estimates);
    for (unsigned routine = 0; routine < GS_ROUTINE_COUNT; routine++)
        gs_process_update_floor(routine / GS_DTYPE_COUNT, routine % GS_DTYPE_COUNT);
}

static bool arm_fork_guard(void)
{
    if (fork_guard == NULL) {
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
            return false;
        madvise(page, 4096, MADV_WIPEONFORK);
        fork_guard = page;
    }
    atomic_store(fork_guard, 1);
    return true;
}

static void start(bool forked)
{
    if (forked) {
        gs_device_after_fork();
        gs_breaker_reset();
        if (counting_pid != getpid()) /* _Fork and clone run no handler */
            gs_counters_after_fork();
        atomic_store(&noted_device, GS_COLD);
    }
    if (!settings_read)
        read_settings();
    open_audit(forked);
    write_remarks();
    gs_process_note_device();
}

static bool is_live(void)
{
    return (atomic_load_explicit(&readiness, memory_order_acquire) & 0xff) == LIVE &&
           atomic_load_explicit(fork_guard, memory_order_relaxed) == 1;
}

bool gs_process_owns_audit(void)
{
    return is_live();
}

/* One thread makes the process ready, others wait for it; a state left behind by a process that
 * no longer owns it (a fork in the middle) is taken over. */
static void make_ready(void)
{
    uint64_t mine = (uint64_t)getpid() << 8;
    uint64_t seen = atomic_load(&readiness);
    while (!is_live()) {
        bool in_progress = seen == (mine | STARTING);
        if (!in_progress && atomic_compare_exchange_strong(&readiness, &seen, mine | STARTING)) {
            bool forked = (seen & 0xff) != COLD;
            if (!arm_fork_guard()) {
                atomic_store(&readiness, seen);
                return;
            }
            start(forked);
            atomic_store_explicit(&readiness, mine | LIVE, memory_order_release);
            return;
        }
        if (in_progress)
            sched_yield();
        seen = atomic_load(&readiness);
    }
}

bool gs_process_ready(void)
{
    if (!is_live())
        make_ready();
    return is_live();
}

void gs_process_start_device(const struct gs_site *site, bool wait)
{
    struct gs_device_options options = gs_process.device_options;
    snprintf(options.module, sizeof options.module, "%s", site->caller);
    gs_device_start(&options, wait);
}

static void take_facts(const struct gs_device_facts *facts)
{
    findings = estimates;
    memcpy(findings.device_flops, facts->flops, sizeof findings.device_flops);
    findings.device_bandwidth = facts->bandwidth;
    findings.multiprocessors = facts->multiprocessors;
    findings.h2d_bandwidth = facts->h2d_bandwidth;
    findings.d2h_bandwidth = facts->d2h_bandwidth;
    findings.h2d_first_byte = facts->h2d_first_byte;
    findings.d2h_first_byte = facts->d2h_first_byte;
    findings.startup = facts->startup;
    atomic_store_explicit(&machine, &findings, memory_order_release);
}

static void write_facts(const struct gs_device_facts *facts, gs_reason refusal, int detail)
{
    char text[1400], name[300], libraries[1024];
    struct gs_file_header *header = gs_audit_header();
    snprintf(header->device_name, sizeof header->device_name, "%s", facts->name);
    snprintf(header->cuda_libraries, sizeof header->cuda_libraries, "%s", facts->libraries);
    header->startup_ns = (uint64_t)(facts->startup * 1e9);
    header->device_state_reason = (uint32_t)refusal;
    snprintf(text, sizeof text,
             "\"code\":\"%s\",\"detail\":%d,\"device\":%s,\"libraries\":%s,\"startup_s\":%.3f,"
             "\"h2d_gb_s\":%.2f,\"d2h_gb_s\":%.2f",
             refusal != 0 ? gs_reason_text(refusal)->code : "", detail,
             gs_json_text(name, sizeof name, facts->name),
             gs_json_text(libraries, sizeof libraries, facts->libraries), facts->startup,
             facts->h2d_bandwidth * 1e-9, facts->d2h_bandwidth * 1e-9);
    gs_audit_event("device", text);
}

void gs_process_note_device(void)
{
    int detail;
    enum gs_device_state state = gs_device_state();
    if (state == GS_REFUSED && gs_device_refusal(&detail) == GS_SHUTTING_DOWN)
        state = gs_device_facts()->name[0] != '\0' ? GS_READY : GS_COLD;
    int known = atomic_load_explicit(&noted_device, memory_order_relaxed);
    if (known == (int)state || (state != GS_READY && state != GS_REFUSED) ||
        !atomic_compare_exchange_strong(&noted_device, &known, (int)state))
        return;
    gs_reason refusal = gs_device_refusal(&detail);
    if (state == GS_READY)
        take_facts(gs_device_facts());
    write_facts(gs_device_facts(), state == GS_READY ? GS_NO_REASON : refusal, detail);
}

/* In the child of a fork that runs handlers: counts made from here on are the child's own. */
static void after_fork_in_child(void)
{
    gs_counters_after_fork();
    counting_pid = getpid();
}

/* glibc passes argc, argv and envp to constructors. */
__attribute__((constructor)) static void load(int argc, char **argv, char **envp)
{
    (void)envp;
    secure = getauxval(AT_SECURE) != 0;
    mode_at_load = secure ? GS_MODE_OFF : gs_mode_parse(getenv("GPUSHIM_MODE"));
    program = argc > 0 ? argv[0] : "";
    gs_active = mode_at_load != GS_MODE_OFF;
    if (!gs_active)
        return;
    set_first_floor();
    clock_gettime(CLOCK_REALTIME, &load_time);
    load_pid = getpid();
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* So many counted calls and nothing else are worth a file, so that the report can say so. */
#define COUNTS_WORTH_A_FILE 100000

__attribute__((destructor)) static void unload(void)
{
    if (!gs_active)
        return;
    gs_device_exit(2);
    if (!is_live() && gs_unfolded_calls() > COUNTS_WORTH_A_FILE)
        make_ready();
    if (!is_live()) {
        gs_notice_nothing_intercepted(gs_unfolded_calls());
        return;
    }
    gs_process_note_device();
    gs_fold_all();
    gs_audit_close();
    if (gs_process.settings.verbose >= 1)
        gs_record_exit_line();
}
