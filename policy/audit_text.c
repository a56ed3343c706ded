/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, times and JSON strings, without locale and without allocation.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit_parts.h"

uint64_t gs_audit_clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void gs_audit_copy(char *out, size_t size, const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, size - 1);
    if (length > 0) memcpy(out, text, length);
    memset(out + length, 0, size - length);
}

void gs_audit_copy_name(char *out, size_t size, const char *text)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.,:+=@";
    gs_audit_copy(out, size, text);
    for (char *at = out; *at != '\0'; at++)
        if (strchr(allowed, *at) == NULL || (at == out && *at == '.')) *at = '_';
}

void gs_audit_utc(char out[32], uint64_t realtime_ns)
{
    static const unsigned month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    uint64_t seconds = realtime_ns / 1000000000u;
    unsigned days = (unsigned)(seconds / 86400), second = (unsigned)(seconds % 86400);
    unsigned year = 1970, month = 0;
    for (;; year++) {
        unsigned leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        if (days < 365 + leap) {
            for (; days >= month_days[month] + (month == 1 ? leap : 0); month++)
                days -= month_days[month] + (month == 1 ? leap : 0);
            break;
        }
        days -= 365 + leap;
    }
    snprintf(out, 32, "%04u-%02u-%02uT%02u:%02u:%02uZ", year, month + 1, days + 1, second / 3600,
             second / 60 % 60, second % 60);
}

/* Bytes of the UTF-8 character at text, 0 when there is no valid one (surrogates and overlong
 * forms are not). Never looks past a terminator. */
static unsigned utf8_bytes(const unsigned char *text)
{
    unsigned first = text[0], low = 0x80, high = 0xBF, bytes;
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) bytes = 2;
    else if ((first & 0xF0) == 0xE0) bytes = 3;
    else if (first >= 0xF0 && first <= 0xF4) bytes = 4;
    else return 0;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    if (text[1] < low || text[1] > high) return 0;
    for (unsigned i = 2; i < bytes; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    return bytes;
}

/* Writes the JSON form of the character at text into out, not terminated; returns its length and
 * how many bytes of text it stands for. */
static unsigned json_character(char out[8], const unsigned char *text, unsigned *taken)
{
    unsigned bytes = utf8_bytes(text);
    *taken = bytes == 0 ? 1 : bytes;
    if (bytes == 0) {
        memcpy(out, "\\ufffd", 6);
        return 6;
    }
    if (*text < 0x20) {
        snprintf(out, 8, "\\u%04x", *text);
        return 6;
    }
    if (*text == '"' || *text == '\\') {
        out[0] = '\\';
        out[1] = (char)*text;
        return 2;
    }
    memcpy(out, text, bytes);
    return bytes;
}

char *gs_json_text(char *out, unsigned long size, const char *text)
{
    const unsigned char *at = (const unsigned char *)(text == NULL ? "" : text);
    unsigned long used = 0;
    if (size < 3) {
        if (size > 0) out[0] = '\0';
        return out;
    }
    out[used++] = '"';
    while (*at != '\0') {
        char piece[8];
        unsigned taken, length = json_character(piece, at, &taken);
        if (used + length + 2 > size) break;
        memcpy(out + used, piece, length);
        used += length;
        at += taken;
    }
    out[used++] = '"';
    out[used] = '\0';
    return out;
}
