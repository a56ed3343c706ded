/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of a bad value or an unknown name (P709).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings_parts.h"

void gs_say(const struct gs_reading *reading, const char *variable, const char *value,
            const char *format, ...)
{
    char advice[512];
    va_list arguments;
    if (reading->remark == NULL) return;
    va_start(arguments, format);
    vsnprintf(advice, sizeof(advice), format, arguments);
    va_end(arguments);
    reading->remark(reading->data, variable, value, advice);
}

/* Edit distance, letters in any case; 4 stands for everything above 3. */
static int edit_distance(const char *a, const char *b)
{
    int row[GS_SETTING_NAME_BYTES + 1];
    int a_length = (int)strlen(a), b_length = (int)strlen(b);
    if (abs(a_length - b_length) > 3 || b_length >= GS_SETTING_NAME_BYTES) return 4;
    for (int j = 0; j <= b_length; j++) row[j] = j;
    for (int i = 1; i <= a_length; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int best = diagonal + (gs_ascii_lower(a[i - 1]) != gs_ascii_lower(b[j - 1]));
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[b_length] > 3 ? 4 : row[b_length];
}

const struct gs_setting_row *gs_setting_nearest(const char *text)
{
    const struct gs_setting_row *nearest = NULL;
    int least = 4;
    for (int i = 0; i < GS_SETTING_COUNT; i++) {
        int distance = edit_distance(text, gs_setting_rows[i].name);
        if (distance >= least) continue;
        least = distance;
        nearest = &gs_setting_rows[i];
    }
    return nearest;
}

/* " (in FILE)" for a remark on a settings file; last in the advice, where a long path is cut. */
static const char *place(const struct gs_reading *reading, char *out, size_t size)
{
    if (reading->file == NULL) return "";
    snprintf(out, size, " (in %s)", reading->file);
    return out;
}

void gs_say_bad_value(const struct gs_reading *reading, const struct gs_setting_row *row,
                      const char *value)
{
    char variable[GS_SETTING_NAME_BYTES], choices[128], file[256];
    size_t used = 0;
    bool earlier = reading->from_file[row - gs_setting_rows];
    snprintf(variable, sizeof(variable), GS_SETTING_PREFIX "%s", row->name);
    for (int i = 0; row->words != NULL && row->words[i] != NULL; i++)
        used += (size_t)snprintf(choices + used, sizeof(choices) - used, "%s%s",
                                 i == 0 ? "one of " : ", ", row->words[i]);
    gs_say(reading, variable, value, "unknown value, %s is used; %s%s",
           earlier ? "that of a settings file" : row->fallback,
           row->words != NULL ? choices : row->expects, place(reading, file, sizeof(file)));
}

void gs_say_unknown_name(const struct gs_reading *reading, const char *name, const char *value)
{
    char variable[GS_SETTING_NAME_BYTES], file[256];
    const struct gs_setting_row *nearest = gs_setting_nearest(name);
    const char *in = place(reading, file, sizeof(file));
    snprintf(variable, sizeof(variable), GS_SETTING_PREFIX "%s", name);
    if (nearest == NULL)
        gs_say(reading, variable, value, "not a setting%s", in);
    else
        gs_say(reading, variable, value, "not a setting; maybe " GS_SETTING_PREFIX "%s?%s",
               nearest->name, in);
}
