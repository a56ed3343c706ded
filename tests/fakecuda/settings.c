/* SPDX-License-Identifier: Apache-2.0
 *
 * The FAKECUDA_ variables. A value that is not understood leaves its default and is counted as
 * "settings.bad" in the count file, because the doubles never print.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

static struct settings values;

const struct settings *settings(void)
{
    return &values;
}

size_t parse_size(const char *text, bool *ok)
{
    static const char units[] = "KMGT";
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    *ok = end != text && *text != '-' && (!*end || (unit && !end[1])) &&
          number <= (SIZE_MAX >> 1) >> shift;
    return (size_t)number << shift;
}

static void read_number(const char *name, long low, long high, long *value)
{
    const char *text = getenv(name);
    char *end;
    if (!text)
        return;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < low || number > high)
        values.bad = true;
    else
        *value = number;
}

/* The part before the options: k, k+, name:k or name:k+. */
static bool read_fail_place(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length), *number = colon ? colon + 1 : text;
    char *end;
    values.fail.entry = -1;
    if (colon) {
        values.fail.entry = entry_find(text, (size_t)(colon - text));
        if (values.fail.entry < 0)
            values.fail.entry = ENTRY_COUNT;
    }
    values.fail.nth = strtoul(number, &end, 10);
    values.fail.onwards = *end == '+';
    end += *end == '+';
    return end != number && end == text + length && values.fail.nth > 0 && *number != '-' &&
           values.fail.entry != ENTRY_COUNT;
}

/* Cuts the options :late and :status=N off the end; returns what is left of the length. */
static size_t read_fail_options(const char *text)
{
    size_t length = strlen(text);
    for (;;) {
        const char *option = memrchr(text, ':', length);
        char *end;
        if (option && text + length - option == 5 && memcmp(option, ":late", 5) == 0) {
            values.fail.late = true;
        } else if (option && strncmp(option, ":status=", 8) == 0) {
            values.fail.status = (int)strtol(option + 8, &end, 10);
            values.bad |= end == option + 8 || end != text + length || values.fail.status <= 0;
        } else {
            return length;
        }
        length = (size_t)(option - text);
    }
}

static void read_fail_at(const char *text)
{
    values.fail.status = -1;
    if (!text || !*text)
        return;
    values.fail.set = read_fail_place(text, read_fail_options(text));
    values.bad |= !values.fail.set;
}

/* "%p" in the path becomes the process id. */
static void read_count_file(const char *path)
{
    const char *mark = path ? strstr(path, "%p") : NULL;
    size_t room = sizeof values.count_file;
    int length = 0;
    if (mark)
        length = snprintf(values.count_file, room, "%.*s%d%s", (int)(mark - path), path,
                          (int)getpid(), mark + 2);
    else if (path)
        length = snprintf(values.count_file, room, "%s", path);
    if (length < 0 || (size_t)length >= room) {
        values.count_file[0] = 0;
        values.bad = true;
    }
}

void settings_load(void)
{
    long devices = 1, init_status = 0;
    const char *memory = getenv("FAKECUDA_MEM"), *speed = getenv("FAKECUDA_SPEED");
    bool ok = true;
    char *end;
    memset(&values, 0, sizeof values);
    read_number("FAKECUDA_DEVICES", 0, FAKE_MAX_DEVICES, &devices);
    read_number("FAKECUDA_INIT_STATUS", 0, 9999, &init_status);
    read_number("FAKECUDA_START_MS", 0, 3600000, &values.start_ms);
    values.devices = (int)devices;
    values.init_status = (int)init_status;
    values.memory = (size_t)4 << 30;
    if (memory) {
        size_t bytes = parse_size(memory, &ok);
        values.memory = ok ? bytes : values.memory;
        values.bad |= !ok;
    }
    if (speed) {
        values.speed = strtod(speed, &end);
        values.bad |= end == speed || *end || !(values.speed >= 0);
        values.speed = values.speed > 0 ? values.speed : 0;
    }
    read_fail_at(getenv("FAKECUDA_FAIL_AT"));
    read_count_file(getenv("FAKECUDA_COUNT_FILE"));
}
