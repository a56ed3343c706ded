/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of a process: environment over $XDG_CONFIG_HOME/gpushim/gpushim.conf over
 * /etc/gpushim/gpushim.conf over the defaults of config.def. Read once, at the first eligible
 * call; a value that does not parse leaves the next lower layer in force.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum gs_mode { GS_MODE_AUTO, GS_MODE_OFF, GS_MODE_OBSERVE, GS_MODE_FORCE, GS_MODE_VERIFY };
enum gs_precision { GS_PRECISION_STRICT, GS_PRECISION_TF32 };

enum gs_fallback_action { GS_FALLBACK_RECORD, GS_FALLBACK_WARN, GS_FALLBACK_ABORT };

/* What to do when the CPU keeps a call, and for which codes: patterns as gs_routine_selected
 * takes them, "" for every reason that is not expected. */
struct gs_fallback_rule {
    int action; /* enum gs_fallback_action */
    char codes[256];
};

/* A share of something (fraction > 0) or a size in bytes (fraction == 0). */
struct gs_share {
    double fraction;
    uint64_t bytes;
};

/* C types behind the kinds of config.def. */
typedef int gs_kind_mode, gs_kind_precision, gs_kind_audit, gs_kind_verbose;
typedef bool gs_kind_flag;
typedef int64_t gs_kind_count;
typedef double gs_kind_ratio;
typedef double gs_kind_duration; /* s */
typedef uint64_t gs_kind_size;   /* bytes */
typedef struct gs_share gs_kind_share;
typedef struct gs_fallback_rule gs_kind_fallback;
typedef char gs_kind_text[1024];
typedef char gs_kind_device[16];

struct gs_settings {
#define GS_SETTING(NAME, field, kind, text, meaning) gs_kind_##kind field;
#include "config.def"
#undef GS_SETTING
};

/* Receives one remark about a setting: variable is the full name (GPUSHIM_MODE) or a file name,
 * value what was found, advice one sentence ("unknown value, auto is used; one of auto, off, …",
 * "not a setting; maybe GPUSHIM_MODE?"). */
typedef void gs_settings_remark(void *data, const char *variable, const char *value,
                                const char *advice);

/* Fills settings from the defaults, the files and environ (the NULL-terminated NAME=VALUE list).
 * secure (AT_SECURE) ignores environment and user file. Remarks (P709): each bad value, each
 * GPUSHIM_ name that is no setting, with the nearest setting if its edit distance is at most 3.
 * Never fails; does not allocate beyond one settings file read through inih (files over 1 MiB,
 * or not owned by root or this user, are refused with a remark). The current folder is never
 * searched. */
void gs_settings_read(struct gs_settings *settings, char *const *environ_list, bool secure,
                      gs_settings_remark *remark, void *data);

/* Parses value for the setting called name (without prefix) into settings; returns whether both
 * were understood. settings is unchanged otherwise. */
bool gs_settings_set(struct gs_settings *settings, const char *name, const char *value);

/* GPUSHIM_MODE alone, for the constructor: value may be NULL (default). GS_MODE_AUTO when it does
 * not parse. */
enum gs_mode gs_mode_parse(const char *value);

/* "auto", "off", … */
const char *gs_mode_name(enum gs_mode mode);

/* Whether routine ("dgemm") is selected by a pattern list: comma-separated shell patterns over
 * the routine name with or without its dtype letter, "all", "-pattern" removes; the last match
 * wins; a list that starts with a removal starts from all. */
bool gs_routine_selected(const char *patterns, const char *routine);
