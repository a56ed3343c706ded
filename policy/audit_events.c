/* SPDX-License-Identifier: Apache-2.0
 *
 * The text files beside the mapped one: run.json, written once per run, and the rare events.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "audit_parts.h"

#define EVENTS_BYTES_MAX (1u << 20)
#define NAME_TEXT_MAX 256
#define VALUE_TEXT_MAX 4096
#define RUN_BYTES 32768

extern char **environ;

/* JSON text that grows by whole members only, so that it is valid wherever it stops. */
struct json {
    char *text;
    size_t size, used;
};

static void add_raw(struct json *json, const char *text)
{
    size_t length = strlen(text);
    if (json->size - json->used <= length) return;
    memcpy(json->text + json->used, text, length + 1);
    json->used += length;
}

static void add_string(struct json *json, size_t longest, const char *text)
{
    gs_json_text(json->text + json->used, longest, text);
    json->used += strlen(json->text + json->used);
}

/* Adds separator "name":"value"; leaves out what does not fit with room to close all braces. */
static bool add_member(struct json *json, const char *separator, const char *name,
                       const char *value)
{
    if (json->size - json->used < NAME_TEXT_MAX + VALUE_TEXT_MAX + 16) return false;
    add_raw(json, separator);
    add_string(json, NAME_TEXT_MAX, name);
    add_raw(json, ":");
    add_string(json, VALUE_TEXT_MAX, value);
    return true;
}

/* The GPUSHIM_ variables, and the ids by which a scheduler knows the run. */
static void add_environment(struct json *json)
{
    static const char *const schedulers[] = {"SLURM_JOB_ID=", "PBS_JOBID="};
    char name[NAME_TEXT_MAX];
    const char *separator = "";
    add_raw(json, ",\"settings\":{");
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        if (equals == NULL || strncmp(*entry, "GPUSHIM_", strlen("GPUSHIM_")) != 0) continue;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - *entry), *entry);
        if (add_member(json, separator, name, equals + 1)) separator = ",";
    }
    add_raw(json, "}");
    for (size_t i = 0; i < sizeof(schedulers) / sizeof(schedulers[0]); i++) {
        size_t length = strlen(schedulers[i]);
        for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
            if (strncmp(*entry, schedulers[i], length) != 0) continue;
            gs_audit_copy(name, length, schedulers[i]);
            add_member(json, ",", name, *entry + length);
            break;
        }
    }
}

static void describe_run(struct json *json, const struct gs_audit_options *options)
{
    const struct gs_file_header *header = gs_audit.header;
    char number[64], started[32];
    add_raw(json, "{\"v\":1");
    add_member(json, ",", "run_id", header->run_id);
    add_member(json, ",", "program", options->program);
    add_member(json, ",", "version", options->version);
    add_member(json, ",", "mode", options->mode_name);
    add_member(json, ",", "host", header->host);
    snprintf(number, sizeof(number), ",\"leader_pid\":%u", header->pid);
    add_raw(json, number);
    gs_audit_utc(started, header->realtime_ns);
    add_member(json, ",", "started", started);
    add_environment(json);
    add_raw(json, "}\n");
}

static bool write_all(int file, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(file, bytes, length);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        length -= (size_t)done;
    }
    return true;
}

/* Puts bytes at path whole or not at all; the first process that comes wins. */
static void publish(const char *path, const char *temporary, const char *bytes, size_t length)
{
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return;
    bool whole = gs_audit_size_allowed(length) && write_all(file, bytes, length);
    whole = close(file) == 0 && whole;
    if (whole && link(temporary, path) != 0 && errno != EEXIST &&
        rename(temporary, path) == 0) /* a file system without hard links */
        return;
    unlink(temporary);
}

void gs_audit_write_run(const struct gs_audit_options *options)
{
    static char text[RUN_BYTES], path[PATH_MAX], temporary[PATH_MAX];
    const struct gs_file_header *header = gs_audit.header;
    struct json json = {text, sizeof(text), 0};
    int length = snprintf(path, sizeof(path), "%s/run.json", gs_audit.folder);
    if (length < 0 || (size_t)length >= sizeof(path) || access(path, F_OK) == 0) return;
    length = snprintf(temporary, sizeof(temporary), "%s/run.json.%s.%u.%llu", gs_audit.folder,
                      header->host, header->pid, (unsigned long long)header->realtime_ns);
    if (length < 0 || (size_t)length >= sizeof(temporary)) return;
    describe_run(&json, options);
    publish(path, temporary, text, json.used);
}

static int open_events(void)
{
    char path[PATH_MAX];
    const struct gs_file_header *header = gs_audit.header;
    int length = snprintf(path, sizeof(path), "%s/%s.%u.events.jsonl", gs_audit.folder,
                          header->host, header->pid);
    if (length < 0 || (size_t)length >= sizeof(path)) return -1;
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
}

void gs_audit_event(const char *name, const char *detail)
{
    if (!gs_audit.in_file) return;
    struct gs_quiet quiet;
    struct stat status;
    char head[NAME_TEXT_MAX + 128], quoted[NAME_TEXT_MAX];
    gs_quiet_begin(&quiet);
    if (detail == NULL) detail = "";
    int head_length =
        snprintf(head, sizeof(head), "{\"v\":1,\"t_ns\":%llu,\"pid\":%u,\"event\":%s%s",
                 (unsigned long long)gs_audit_clock_ns(CLOCK_MONOTONIC), gs_audit.header->pid,
                 gs_json_text(quoted, sizeof(quoted), name), *detail == '\0' ? "" : ",");
    struct iovec parts[] = {
        {head, (size_t)head_length}, {(char *)detail, strlen(detail)}, {(char *)"}\n", 2}};
    uint64_t length = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
    int file = open_events();
    if (file >= 0) {
        /* One writev to the end of the file: lines of several threads do not mix. A line that
         * finds no room is lost, which the counters and records are not. */
        if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
            (uint64_t)status.st_size + length <= EVENTS_BYTES_MAX &&
            gs_audit_size_allowed((uint64_t)status.st_size + length) &&
            writev(file, parts, 3) < 0)
            errno = 0;
        close(file);
    }
    gs_quiet_end(&quiet);
}
