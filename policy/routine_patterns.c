/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "settings_parts.h"

/* Matches one character with the [set] at pattern; returns what follows the set, or NULL when the
 * set has no end and the bracket stands for itself. */
static const char *match_set(const char *pattern, const char *end, char letter, bool *matches)
{
    const char *at = pattern + 1;
    bool negated = at < end && (*at == '!' || *at == '^'), found = false;
    if (negated) at++;
    for (const char *first = at; at < end && (*at != ']' || at == first); at++) {
        char low = gs_ascii_lower(*at), high = low;
        if (end - at > 2 && at[1] == '-' && at[2] != ']') {
            at += 2;
            high = gs_ascii_lower(*at);
        }
        if (letter >= low && letter <= high) found = true;
    }
    if (at >= end) return NULL;
    *matches = found != negated;
    return at + 1;
}

/* Shell pattern match with memory of the last star only: no recursion, no locale (fnmatch has
 * both), and a time bounded by the product of the lengths. */
static bool match(const char *pattern, const char *end, const char *text)
{
    const char *star = NULL, *star_text = NULL;
    while (*text != '\0') {
        const char *next = pattern + 1;
        bool matches = false;
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            star_text = text;
            continue;
        }
        if (pattern < end) {
            const char *after =
                *pattern == '[' ? match_set(pattern, end, gs_ascii_lower(*text), &matches) : NULL;
            if (after != NULL) next = after;
            else matches = *pattern == '?' || gs_ascii_lower(*pattern) == gs_ascii_lower(*text);
        }
        if (matches) {
            pattern = next;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*') pattern++;
    return pattern == end;
}

static bool item_matches(const char *item, const char *end, const char *routine)
{
    if (end - item == 3 && match(item, end, "all")) return true;
    if (match(item, end, routine)) return true;
    return *routine != '\0' && strchr("sdcz", gs_ascii_lower(*routine)) != NULL &&
           match(item, end, routine + 1);
}

bool gs_routine_selected(const char *patterns, const char *routine)
{
    bool selected = true, first = true;
    while (*patterns != '\0') {
        const char *end = patterns + strcspn(patterns, ","), *item = patterns;
        patterns = *end == ',' ? end + 1 : end;
        while (item < end && (*item == ' ' || *item == '\t')) item++;
        while (end > item && (end[-1] == ' ' || end[-1] == '\t')) end--;
        if (item == end) continue;
        bool removes = *item == '-';
        if (removes) item++;
        if (first) selected = removes;
        first = false;
        if (item_matches(item, end, routine)) selected = !removes;
    }
    return selected;
}
