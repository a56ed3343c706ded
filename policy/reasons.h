/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Reason codes, for example GS_SIZE_BELOW_CROSSOVER = 102. 0 is "no reason yet" and never leaves
 * the policy. The numbers are the stable ones of reasons.def. */
typedef enum gs_reason {
    GS_NO_REASON = 0,
#define GS_REASON(letter, number, name, class, severity, when, remedy) GS_##name = number,
#include "reasons.def"
#undef GS_REASON
} gs_reason;

enum gs_reason_class {
    GS_CLASS_gpu, GS_CLASS_should_not, GS_CLASS_cannot, GS_CLASS_policy, GS_CLASS_recovered,
};

/* expected: nothing to do; look: may be worth a change; error: something is broken. */
enum gs_reason_severity { GS_SEVERITY_expected, GS_SEVERITY_look, GS_SEVERITY_error };

struct gs_reason_text {
    gs_reason reason;
    enum gs_reason_class class;
    enum gs_reason_severity severity;
    const char *code;    /* "S102" */
    const char *name;    /* "SIZE_BELOW_CROSSOVER" */
    const char *when, *remedy;
};

/* Text of a reason; for a number that is none, a row with code "?000". Never NULL. */
const struct gs_reason_text *gs_reason_text(gs_reason reason);
