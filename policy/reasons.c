/* SPDX-License-Identifier: Apache-2.0 */
#include "reasons.h"

#include <stddef.h>

/* Codes have three digits, so R gets its zeros here: reasons.def cannot write 001, an octal. */
#define GS_CODE(letter, number) \
    (sizeof(#number) == sizeof("1") ? #letter "00" #number : #letter #number)

static const struct gs_reason_text reason_texts[] = {
#define GS_REASON(letter, number, name, class, severity, when, remedy) \
    {GS_##name, GS_CLASS_##class, GS_SEVERITY_##severity, GS_CODE(letter, number), #name, when, \
     remedy},
#include "reasons.def"
#undef GS_REASON
};

static const struct gs_reason_text unknown_reason = {
    GS_NO_REASON, GS_CLASS_cannot, GS_SEVERITY_error, "?000", "UNKNOWN",
    "a number that is no reason code", "report a bug",
};

const struct gs_reason_text *gs_reason_text(gs_reason reason)
{
    for (size_t i = 0; i < sizeof(reason_texts) / sizeof(reason_texts[0]); i++)
        if (reason_texts[i].reason == reason) return &reason_texts[i];
    return &unknown_reason;
}
