/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <string.h>

#include "audit.h"
#include "settings_parts.h"

static const char *const mode_words[] = {
    [GS_MODE_AUTO] = "auto",   [GS_MODE_OFF] = "off",       [GS_MODE_OBSERVE] = "observe",
    [GS_MODE_FORCE] = "force", [GS_MODE_VERIFY] = "verify", NULL,
};
static const char *const precision_words[] = {
    [GS_PRECISION_STRICT] = "strict", [GS_PRECISION_TF32] = "tf32", NULL,
};
static const char *const audit_words[] = {
    [GS_AUDIT_OFF] = "off",     [GS_AUDIT_COUNTERS] = "counters",
    [GS_AUDIT_CALLS] = "calls", [GS_AUDIT_ALL] = "all", NULL,
};
static const char *const verbose_words[] = {"0", "1", "2", "3", NULL};
static const char *const fallback_words[] = {
    [GS_FALLBACK_RECORD] = "record", [GS_FALLBACK_WARN] = "warn",
    [GS_FALLBACK_ABORT] = "abort", NULL,
};
static const char *const device_places[] = {"auto", "none", NULL};
/* Odd places are true. */
static const char *const flag_words[] = {"0", "1", "no", "yes", "off", "on", "false", "true", NULL};

static int word_index(const char *const *words, const char *value)
{
    for (int i = 0; words[i] != NULL; i++)
        if (gs_same_word(words[i], value)) return i;
    return -1;
}

static bool parse_word(const char *const *words, const char *value, void *field)
{
    int index = word_index(words, value);
    if (index >= 0) *(int *)field = index;
    return index >= 0;
}

static bool parse_mode(const char *value, void *field)
{
    return parse_word(mode_words, value, field);
}

static bool parse_precision(const char *value, void *field)
{
    return parse_word(precision_words, value, field);
}

static bool parse_audit(const char *value, void *field)
{
    return parse_word(audit_words, value, field);
}

static bool parse_verbose(const char *value, void *field)
{
    return parse_word(verbose_words, value, field);
}

static bool parse_flag(const char *value, void *field)
{
    int index = word_index(flag_words, value);
    if (index >= 0) *(bool *)field = index % 2 == 1;
    return index >= 0;
}

static bool parse_text(const char *value, void *field)
{
    size_t length = strlen(value);
    if (length == 0 || length >= sizeof(gs_kind_text)) return false;
    memcpy(field, value, length + 1);
    return true;
}

/* A word, or a number as CUDA counts; a negative one is no device, as in CUDA_VISIBLE_DEVICES. */
static bool parse_device(const char *value, void *field)
{
    int index = word_index(device_places, value);
    const char *digits = *value == '-' ? value + 1 : value;
    size_t length = strspn(digits, "0123456789");
    if (index >= 0) value = device_places[index];
    else if (length == 0 || length > 6 || digits[length] != '\0') return false;
    memcpy(field, value, strlen(value) + 1);
    return true;
}

/* Reads digits with an optional point and returns what follows, or NULL. Not strtod: that one
 * follows the locale of the program, where 1.2 may be two numbers. The quotient of two exact
 * numbers is the nearest double, as strtod would give it. */
static const char *parse_number(const char *text, double *number)
{
    uint64_t digits = 0;
    double scale = 1;
    bool any = false, point = false;
    for (;; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9') break;
        if (digits > (UINT64_MAX - 9) / 10) return NULL;
        digits = digits * 10 + (uint64_t)(*text - '0');
        if (point) scale *= 10;
        any = true;
    }
    if (!any) return NULL;
    *number = (double)digits / scale;
    return text;
}

static bool parse_count(const char *value, void *field)
{
    int64_t count = 0;
    if (*value == '\0') return false;
    for (; *value != '\0'; value++) {
        if (*value < '0' || *value > '9' || count > (INT64_MAX - 9) / 10) return false;
        count = count * 10 + (*value - '0');
    }
    *(int64_t *)field = count;
    return true;
}

static bool parse_ratio(const char *value, void *field)
{
    double number;
    const char *rest = parse_number(value, &number);
    if (rest == NULL || *rest != '\0' || !(number > 0)) return false;
    *(double *)field = number;
    return true;
}

static bool parse_duration(const char *value, void *field)
{
    static const struct {
        const char *unit;
        double per_second;
    } units[] = {{"ns", 1e9}, {"us", 1e6}, {"ms", 1e3}, {"s", 1}};
    double number;
    const char *rest = parse_number(value, &number);
    if (rest == NULL) return false;
    if (*rest == '\0' && number == 0) rest = "s";
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!gs_same_word(rest, units[i].unit)) continue;
        *(double *)field = number / units[i].per_second;
        return true;
    }
    return false;
}

static bool parse_size(const char *value, void *field)
{
    static const char letters[] = "BKMGT";
    double number, unit = 1;
    const char *rest = parse_number(value, &number);
    if (rest == NULL) return false;
    if (*rest != '\0') {
        const char *letter = strchr(letters, *rest & ~0x20);
        if (letter == NULL || *letter == '\0') return false;
        for (; letter > letters; letter--) unit *= 1024;
        rest++;
        if (unit > 1 && *rest != '\0' && !gs_same_word(rest, "B") && !gs_same_word(rest, "iB"))
            return false;
        if (unit == 1 && *rest != '\0') return false;
    }
    if (number * unit >= 0x1p63) return false;
    *(uint64_t *)field = (uint64_t)(number * unit);
    return true;
}

static bool parse_share(const char *value, void *field)
{
    struct gs_share share = {0, 0};
    double number;
    const char *rest = parse_number(value, &number);
    if (rest != NULL && strcmp(rest, "%") == 0) {
        if (number > 100) return false;
        share.fraction = number / 100;
    } else if (!parse_size(value, &share.bytes)) {
        return false;
    }
    *(struct gs_share *)field = share;
    return true;
}

/* A word, and after a colon the codes it is for. */
static bool parse_fallback(const char *value, void *field)
{
    struct gs_fallback_rule *rule = field;
    char word[16];
    size_t length = strcspn(value, ":");
    const char *codes = value[length] == ':' ? value + length + 1 : "";
    if (length >= sizeof(word) || strlen(codes) >= sizeof(rule->codes)) return false;
    memcpy(word, value, length);
    word[length] = '\0';
    if (!parse_word(fallback_words, word, &rule->action)) return false;
    memcpy(rule->codes, codes, strlen(codes) + 1);
    return true;
}

#define text_words NULL
#define device_words NULL
#define count_words NULL
#define ratio_words NULL
#define duration_words NULL
#define size_words NULL
#define share_words NULL
#define GS_EXPECTS_mode ""
#define GS_EXPECTS_precision ""
#define GS_EXPECTS_audit ""
#define GS_EXPECTS_verbose ""
#define GS_EXPECTS_flag ""
#define GS_EXPECTS_fallback ""
#define GS_EXPECTS_text "a text of at most 1023 characters"
#define GS_EXPECTS_device "auto, none, or the index of a visible device"
#define GS_EXPECTS_count "a whole number, 0 or more"
#define GS_EXPECTS_ratio "a number above 0, such as 1.2"
#define GS_EXPECTS_duration "a time with its unit, such as 20us, 30ms or 2s"
#define GS_EXPECTS_size "a size, such as 512M or 2G"
#define GS_EXPECTS_share "a share or a size, such as 80% or 2G"

const struct gs_setting_row gs_setting_rows[GS_SETTING_COUNT] = {
#define GS_SETTING(NAME, field, kind, text, meaning)                        \
    {#NAME, text, offsetof(struct gs_settings, field), parse_##kind, kind##_words, \
     GS_EXPECTS_##kind},
#include "config.def"
#undef GS_SETTING
};

const struct gs_setting_row *gs_setting_find(const char *text)
{
    for (int i = 0; i < GS_SETTING_COUNT; i++)
        if (gs_same_word(gs_setting_rows[i].name, text)) return &gs_setting_rows[i];
    return NULL;
}

bool gs_settings_set(struct gs_settings *settings, const char *name, const char *value)
{
    const struct gs_setting_row *row = gs_setting_find(name);
    return row != NULL && row->parse(value, (char *)settings + row->offset);
}

enum gs_mode gs_mode_parse(const char *value)
{
    int index = value == NULL ? -1 : word_index(mode_words, value);
    return index < 0 ? GS_MODE_AUTO : (enum gs_mode)index;
}

const char *gs_mode_name(enum gs_mode mode)
{
    return mode_words[mode <= GS_MODE_VERIFY ? mode : GS_MODE_AUTO];
}
