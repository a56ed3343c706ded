/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "entries.h"
#include "originals.h"
#include "policy/audit.h"
#include "process.h"

/* Module indices of a site, asked for once. 0 in the site means not yet; both are kept plus 1. */
static void modules_of(const struct gs_site *site, uint16_t *caller, uint16_t *provider)
{
    uint32_t packed = atomic_load_explicit(&site->modules, memory_order_relaxed);
    if (packed == 0) {
        uint32_t c = gs_audit_module(site->caller), p = gs_audit_module(site->provider);
        packed = ((p + 1) & 0xffff) << 16 | ((c + 1) & 0xffff);
        atomic_store_explicit(&((struct gs_site *)(uintptr_t)site)->modules, packed,
                              memory_order_relaxed);
    }
    *caller = (uint16_t)((packed & 0xffff) - 1);
    *provider = (uint16_t)((packed >> 16) - 1);
}

static uint32_t thread_id(void)
{
    static __thread uint32_t id __attribute__((tls_model("initial-exec")));
    if (id == 0)
        id = (uint32_t)syscall(SYS_gettid);
    return id;
}

/* Flags in argument order, as column-major. */
static void write_options(char8 options, const struct gs_call *call)
{
    const char flags[] = {call->side, call->uplo, call->transa, call->transb, call->diag};
    int at = 0;
    memset(options, 0, sizeof(char8));
    for (size_t i = 0; i < sizeof flags; i++)
        if (flags[i] != 0)
            options[at++] = flags[i];
}

/* Seconds that the CPU took beyond the predicted GPU time; none where there is no GPU to choose. */
static double lost_seconds(const struct gs_attempt *attempt, bool on_gpu, double cpu_s)
{
    bool could = attempt->call.objection == GS_NO_REASON && attempt->predicted.gpu > 0 &&
                 gs_device_state() != GS_REFUSED;
    double lost = cpu_s - attempt->predicted.gpu;
    return !on_gpu && could && lost > 0 ? lost : 0;
}

static void fill(struct gs_record *r, const struct gs_attempt *attempt, uint64_t now_ns,
                 bool on_gpu, double cpu_s)
{
    const struct gs_call *call = &attempt->call;
    bool described = call->objection != GS_BAD_ARGUMENT;
    *r = (struct gs_record){
        .start_ns = attempt->entry_ns,
        .wall_ns = now_ns - attempt->entry_ns,
        .m = call->m,
        .n = call->n,
        .k = call->k,
        .bytes_in = described ? (uint64_t)gs_call_bytes(call, GS_IN) : 0,
        .bytes_out = described ? (uint64_t)gs_call_bytes(call, GS_OUT) : 0,
        .predicted_cpu_s = (float)attempt->predicted.cpu,
        .predicted_gpu_s = (float)attempt->predicted.gpu,
        .copy_in_s = (float)attempt->copy_in_s,
        .compute_s = (float)attempt->compute_s,
        .copy_out_s = (float)attempt->copy_out_s,
        .kept_s = (float)attempt->kept_s,
        .cpu_s = (float)cpu_s,
        .difference = attempt->difference,
        .thread = thread_id(),
        .detail = attempt->detail,
        .routine = (uint16_t)gs_call_routine(call),
        .entry = call->entry,
        .reason = (uint16_t)attempt->verdict.reason,
        .would = (uint16_t)attempt->verdict.would,
        .where = on_gpu,
        .device = (int8_t)(on_gpu ? gs_device_facts()->ordinal : -1),
    };
    modules_of(call->site, &r->caller, &r->provider);
    write_options(r->options, call);
}

static void print_line(const char *text, int length, size_t size)
{
    size_t bytes = length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
    ssize_t ignored = write(STDERR_FILENO, text, bytes);
    (void)ignored;
}

/* GPUSHIM_VERBOSE 2: the first call of each reason; 3: every decided call. */
static void tell(const struct gs_record *r)
{
    static _Atomic uint8_t told[1000];
    const struct gs_reason_text *reason = gs_reason_text((gs_reason)r->reason);
    int64_t verbose = gs_process.settings.verbose;
    char line[256];
    if (verbose < 2 || r->reason >= sizeof told)
        return;
    if (verbose == 2 && atomic_exchange(&told[r->reason], 1) != 0)
        return;
    int length = snprintf(line, sizeof line,
                          "gpushim: %s.%.8s/%lldx%lldx%lld on %s, %s %s, %.3f ms "
                          "(predicted CPU %.3f, GPU %.3f)\n",
                          gs_routine_names[r->routine], r->options, (long long)r->m,
                          (long long)r->n, (long long)r->k, r->where ? "GPU" : "CPU",
                          reason->code, reason->name, (double)r->wall_ns * 1e-6,
                          r->predicted_cpu_s * 1e3, r->predicted_gpu_s * 1e3);
    print_line(line, length, sizeof line);
}

/* Whether this reason is one of those the user wants to hear of. */
static bool is_reported(const struct gs_fallback_rule *rule, const struct gs_reason_text *reason)
{
    if (rule->codes[0] != '\0')
        return gs_routine_selected(rule->codes, reason->code);
    return reason->severity != GS_SEVERITY_expected && reason->class != GS_CLASS_policy;
}

/* True the first time it is asked for a reason at a call site; false when the table is full. */
static bool is_first(const struct gs_site *site, gs_reason reason)
{
    enum { SLOTS = 512 };
    static _Atomic uint64_t seen[SLOTS];
    uint64_t key = ((uint64_t)(uintptr_t)site << 10) + (uint64_t)reason;
    unsigned slot = (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 55);
    for (unsigned i = 0; i < SLOTS; i++) {
        uint64_t expected = 0;
        _Atomic uint64_t *word = &seen[(slot + i) % SLOTS];
        if (atomic_compare_exchange_strong(word, &expected, key))
            return true;
        if (expected == key)
            return false;
    }
    return false;
}

/* GPUSHIM_ON_FALLBACK. The one place where this library may end a process: it was asked to. */
static void act_on_fallback(const struct gs_attempt *attempt)
{
    const struct gs_fallback_rule *rule = &gs_process.settings.on_fallback;
    const struct gs_reason_text *reason = gs_reason_text(attempt->verdict.reason);
    char line[512];
    if (rule->action == GS_FALLBACK_RECORD || !is_reported(rule, reason) ||
        !is_first(attempt->call.site, attempt->verdict.reason))
        return;
    int length = snprintf(line, sizeof line,
                          "gpushim: %s stayed on the CPU: %s %s (%s); caller %s\n",
                          gs_routine_names[gs_call_routine(&attempt->call)], reason->code,
                          reason->name, reason->when, attempt->call.site->caller);
    print_line(line, length, sizeof line);
    if (rule->action == GS_FALLBACK_ABORT)
        abort();
}

void gs_record_call(const struct gs_attempt *attempt, uint64_t now_ns, bool on_gpu, double cpu_s)
{
    struct gs_record r;
    struct gs_file_header *header = gs_audit_header();
    double device_s = attempt->copy_in_s + attempt->compute_s + attempt->copy_out_s;
    fill(&r, attempt, now_ns, on_gpu, cpu_s);
    gs_audit_count(r.routine, r.where, r.reason, r.would, 1, r.wall_ns, on_gpu ? r.bytes_in : 0,
                   on_gpu ? r.bytes_out : 0,
                   (uint64_t)(lost_seconds(attempt, on_gpu, cpu_s) * 1e9));
    gs_audit_record(&r);
    tell(&r);
    if (!on_gpu)
        act_on_fallback(attempt);
    double own_s = (double)(gs_now_ns() - attempt->entry_ns) * 1e-9 - cpu_s - device_s;
    if (own_s > 0)
        __atomic_fetch_add(&header->overhead_ns, (uint64_t)(own_s * 1e9), __ATOMIC_RELAXED);
    __atomic_store_n(&header->end_monotonic_ns, now_ns, __ATOMIC_RELAXED);
}

/* What the counters add up to. */
struct totals {
    uint64_t calls, ns, gpu_ns, fallback_ns, fallback_calls;
    gs_reason fallback;           /* the CPU reason with the most time */
};

static struct totals add_up(void)
{
    struct totals t = {.fallback = GS_NO_REASON};
    uint32_t count;
    const struct gs_counter_row *rows = gs_audit_counters(&count);
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_counter_row *row = &rows[i];
        if (row->reason == 0 || row->reason == GS_ALGO_NESTED)
            continue;
        t.calls += row->calls;
        t.ns += row->wall_ns;
        t.gpu_ns += row->where ? row->wall_ns : 0;
        if (!row->where && (t.fallback == GS_NO_REASON || row->wall_ns > t.fallback_ns)) {
            t.fallback = (gs_reason)row->reason;
            t.fallback_ns = row->wall_ns;
            t.fallback_calls = row->calls;
        }
    }
    return t;
}

static int format_exit_line(char *line, size_t size, const struct totals *t)
{
    int detail;
    const struct gs_reason_text *refusal = gs_reason_text(gs_device_refusal(&detail));
    const struct gs_reason_text *fallback = gs_reason_text(t->fallback);
    if (t->gpu_ns == 0 && gs_device_state() == GS_REFUSED && refusal->reason != GS_SHUTTING_DOWN)
        return snprintf(line, size,
                        "gpushim: CPU only: %s %s (%s). %llu calls, %.2f s on the CPU. Fix: %s\n",
                        refusal->code, refusal->name, refusal->when,
                        (unsigned long long)t->calls, (double)t->ns * 1e-9, refusal->remedy);
    int length = snprintf(line, size, "gpushim: %.2f s in BLAS; %llu calls, %.0f %% of that time "
                                      "on GPU %d",
                          (double)t->ns * 1e-9, (unsigned long long)t->calls,
                          t->ns == 0 ? 0 : 100.0 * (double)t->gpu_ns / (double)t->ns,
                          gs_device_facts()->ordinal);
    if (t->fallback != GS_NO_REASON && length > 0 && (size_t)length < size)
        length += snprintf(line + length, size - (size_t)length,
                           "; main fallback %s %s (%llu calls, %.2f s)", fallback->code,
                           fallback->name, (unsigned long long)t->fallback_calls,
                           (double)t->fallback_ns * 1e-9);
    if (length > 0 && (size_t)length < size)
        length += snprintf(line + length, size - (size_t)length, ". Details: gpushim report\n");
    return length;
}

void gs_record_exit_line(void)
{
    char line[512];
    const uint64_t worth_a_line_ns = 100000000;
    struct totals t = add_up();
    if (t.ns < worth_a_line_ns)
        return;
    print_line(line, format_exit_line(line, sizeof line, &t), sizeof line);
}
