/* SPDX-License-Identifier: Apache-2.0
 *
 * What settings.c (values), settings_file.c (layers) and settings_remarks.c (remarks) share; nobody
 * else includes this.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "settings.h"

#define GS_SETTING_PREFIX "GPUSHIM_"
#define GS_SETTING_PREFIX_LENGTH (sizeof(GS_SETTING_PREFIX) - 1)
/* Longest name that appears whole in a remark. */
#define GS_SETTING_NAME_BYTES 128

struct gs_setting_row {
    const char *name;               /* "MODE" */
    const char *fallback;           /* the default, as text */
    size_t offset;                  /* of the field in struct gs_settings */
    bool (*parse)(const char *value, void *field); /* writes the field only when it returns true */
    const char *const *words;       /* the values there are, NULL-terminated; NULL: see expects */
    const char *expects;            /* "a time such as 20us, 30ms or 2s" */
};

#define GS_SETTING(NAME, field, kind, text, meaning) GS_ROW_##NAME,
enum gs_setting_index {
#include "config.def"
    GS_SETTING_COUNT
};
#undef GS_SETTING

extern const struct gs_setting_row gs_setting_rows[GS_SETTING_COUNT];

/* Row whose name is text, in any case; NULL when there is none. */
const struct gs_setting_row *gs_setting_find(const char *text);

/* Row whose name is at most three edits away from text, the nearest; NULL when there is none. */
const struct gs_setting_row *gs_setting_nearest(const char *text);

/* One reading of all layers. */
struct gs_reading {
    struct gs_settings *settings;
    gs_settings_remark *remark;
    void *data;
    const char *file;                     /* settings file being read; NULL: the environment */
    bool from_file[GS_SETTING_COUNT];     /* whether a settings file gave the value in force */
    bool section_noted;
};

/* Hands one remark on. */
void gs_say(const struct gs_reading *reading, const char *variable, const char *value,
            const char *format, ...) __attribute__((format(printf, 4, 5)));

void gs_say_bad_value(const struct gs_reading *reading, const struct gs_setting_row *row,
                      const char *value);
void gs_say_unknown_name(const struct gs_reading *reading, const char *name, const char *value);

/* Letters in any case, as ASCII: strcasecmp follows the program's locale, and in Turkish I is not
 * the capital of i. */
static inline char gs_ascii_lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter + ('a' - 'A')) : letter;
}

static inline bool gs_same_start(const char *text, const char *start)
{
    for (; *start != '\0'; text++, start++)
        if (gs_ascii_lower(*text) != gs_ascii_lower(*start)) return false;
    return true;
}

static inline bool gs_same_word(const char *a, const char *b)
{
    for (; *b != '\0'; a++, b++)
        if (gs_ascii_lower(*a) != gs_ascii_lower(*b)) return false;
    return *a == '\0';
}
