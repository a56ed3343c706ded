/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of the settings: defaults, settings files, environment, and what is said of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings_parts.h"

#define SYSTEM_FILE "/etc/gpushim/gpushim.conf"
#define FILE_BYTES_MAX (1 << 20)
/* Longest line inih sees; the rest of a longer one is dropped, never taken for a line. */
#define LINE_BYTES 4096

/* The bytes of a settings file not yet seen by inih. */
struct unread {
    const char *at, *end;
};

static void take(struct gs_reading *reading, const struct gs_setting_row *row, const char *value)
{
    /* An empty value is how a shell user unsets a variable for one command. */
    if (*value == '\0') return;
    if (!row->parse(value, (char *)reading->settings + row->offset))
        gs_say_bad_value(reading, row, value);
    else if (reading->file != NULL)
        reading->from_file[row - gs_setting_rows] = true;
}

/* An ini_reader: one line a call, cut to the buffer, the rest of the line passed over. */
static char *next_line(char *line, int size, void *stream)
{
    struct unread *unread = stream;
    if (unread->at == unread->end || size < 2) return NULL;
    size_t left = (size_t)(unread->end - unread->at), room = (size_t)size - 1;
    const char *newline = memchr(unread->at, '\n', left);
    size_t length = newline == NULL ? left : (size_t)(newline - unread->at);
    size_t kept = length < room ? length : room;
    memcpy(line, unread->at, kept);
    line[kept] = '\0';
    unread->at += newline == NULL ? length : length + 1;
    return line;
}

/* An ini_handler. */
static int take_line(void *user, const char *section, const char *name, const char *value)
{
    struct gs_reading *reading = user;
    if (*section != '\0') {
        if (!reading->section_noted)
            gs_say(reading, reading->file, section,
                   "sections are not used, what follows is ignored");
        reading->section_noted = true;
        return 1;
    }
    if (gs_same_start(name, GS_SETTING_PREFIX)) name += GS_SETTING_PREFIX_LENGTH;
    const struct gs_setting_row *row = gs_setting_find(name);
    if (row == NULL)
        gs_say_unknown_name(reading, name, value);
    else if (row == &gs_setting_rows[GS_ROW_CONFIG])
        gs_say(reading, reading->file, value, "CONFIG is read from the environment only");
    else
        take(reading, row, value);
    return 1;
}

static void parse_file(struct gs_reading *reading, const char *bytes, size_t length)
{
    char place[32];
    struct unread unread = {bytes, bytes + length};
    /* inih's buffer on the heap: the stack is the program's, and may be small. */
    ini_use_stack = false;
    ini_allow_realloc = false;
    ini_initial_alloc = LINE_BYTES;
    ini_max_line = LINE_BYTES;
    ini_allow_multiline = false;
    int bad_line = ini_parse_stream(next_line, &unread, take_line, reading);
    if (bad_line == 0) return;
    snprintf(place, sizeof(place), "line %d", bad_line);
    if (bad_line > 0)
        gs_say(reading, reading->file, place, "not of the form NAME = value, ignored");
    else
        gs_say(reading, reading->file, "", "not read: no memory");
}

/* Why the open file is refused, or NULL. */
static const char *file_refusal(const struct stat *status)
{
    if (!S_ISREG(status->st_mode)) return "not a regular file, ignored";
    if (status->st_uid != 0 && status->st_uid != geteuid())
        return "owned by another user, ignored";
    if (status->st_size > FILE_BYTES_MAX) return "larger than 1 MiB, ignored";
    return NULL;
}

static void read_open_file(struct gs_reading *reading, int file)
{
    struct stat status;
    if (fstat(file, &status) != 0) return;
    const char *refusal = file_refusal(&status);
    if (refusal != NULL) {
        gs_say(reading, reading->file, "", "%s", refusal);
        return;
    }
    size_t size = (size_t)status.st_size, length = 0;
    char *bytes = malloc(size + 1);
    ssize_t got = bytes == NULL ? -1 : 1;
    while (got > 0 && length < size) {
        do got = read(file, bytes + length, size - length);
        while (got < 0 && errno == EINTR);
        if (got > 0) length += (size_t)got;
    }
    if (got < 0)
        gs_say(reading, reading->file, "", "cannot be read: %s", strerrordesc_np(errno));
    else
        parse_file(reading, bytes, length);
    free(bytes);
}

static void read_file(struct gs_reading *reading, const char *path, bool must_exist)
{
    /* O_NONBLOCK: a FIFO of that name must not stop the program. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    reading->file = path;
    reading->section_noted = false;
    if (file >= 0) {
        read_open_file(reading, file);
        close(file);
    } else if (must_exist || (errno != ENOENT && errno != ENOTDIR)) {
        gs_say(reading, path, "", "cannot be opened: %s", strerrordesc_np(errno));
    }
    reading->file = NULL;
}

/* Value of the first NAME=VALUE, as getenv would find it; NULL when there is none. */
static const char *environ_value(char *const *list, const char *prefix, const char *name)
{
    size_t prefix_length = strlen(prefix), name_length = strlen(name);
    for (; *list != NULL; list++) {
        const char *entry = *list + prefix_length;
        if (strncmp(*list, prefix, prefix_length) == 0 && strncmp(entry, name, name_length) == 0 &&
            entry[name_length] == '=')
            return entry + name_length + 1;
    }
    return NULL;
}

static void read_user_file(struct gs_reading *reading, char *const *list)
{
    char path[4096];
    const char *base = environ_value(list, "", "XDG_CONFIG_HOME"), *below = "";
    if (base == NULL || *base != '/') {
        base = environ_value(list, "", "HOME");
        below = "/.config";
    }
    if (base == NULL || *base != '/') return;
    int length = snprintf(path, sizeof(path), "%s%s/gpushim/gpushim.conf", base, below);
    if (length > 0 && length < (int)sizeof(path)) read_file(reading, path, false);
}

static void read_files(struct gs_reading *reading, char *const *list)
{
    const char *config = environ_value(list, GS_SETTING_PREFIX, "CONFIG");
    if (config == NULL || *config == '\0' || strcmp(config, "auto") == 0) {
        read_file(reading, SYSTEM_FILE, false);
        read_user_file(reading, list);
    } else if (*config != '/') {
        gs_say(reading, GS_SETTING_PREFIX "CONFIG", config,
               "not an absolute path, no settings file is used");
    } else {
        read_file(reading, config, true);
    }
}

static void say_unknown_names(const struct gs_reading *reading, char *const *list)
{
    char name[GS_SETTING_NAME_BYTES];
    for (; *list != NULL; list++) {
        const char *equals = strchr(*list, '=');
        if (equals == NULL || strncmp(*list, GS_SETTING_PREFIX, GS_SETTING_PREFIX_LENGTH) != 0)
            continue;
        const char *start = *list + GS_SETTING_PREFIX_LENGTH;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - start), start);
        const struct gs_setting_row *row = gs_setting_find(name);
        if (row == NULL || strcmp(row->name, name) != 0)
            gs_say_unknown_name(reading, name, equals + 1);
    }
}

void gs_settings_read(struct gs_settings *settings, char *const *environ_list, bool secure,
                      gs_settings_remark *remark, void *data)
{
    int saved_errno = errno;
    struct gs_reading reading = {.settings = settings, .remark = remark, .data = data};
    memset(settings, 0, sizeof(*settings));
    for (int i = 0; i < GS_SETTING_COUNT; i++)
        gs_setting_rows[i].parse(gs_setting_rows[i].fallback,
                                 (char *)settings + gs_setting_rows[i].offset);
    if (secure) {
        read_file(&reading, SYSTEM_FILE, false);
    } else {
        read_files(&reading, environ_list);
        for (int i = 0; i < GS_SETTING_COUNT; i++) {
            const struct gs_setting_row *row = &gs_setting_rows[i];
            const char *value = environ_value(environ_list, GS_SETTING_PREFIX, row->name);
            if (value != NULL) take(&reading, row, value);
        }
        if (settings->warn_unknown) say_unknown_names(&reading, environ_list);
    }
    errno = saved_errno;
}
