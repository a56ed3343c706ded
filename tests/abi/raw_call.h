/* SPDX-License-Identifier: Apache-2.0
 *
 * A call with every register and stack slot chosen, to see what the callee does to the stack that
 * is not its own. x86-64 System V only; elsewhere the callers skip it and say so.
 */
#pragma once

#include <stdint.h>

enum { RAW_CANARIES = 8, RAW_STACK_SLOTS = 14 };

struct raw_call {
    void (*function)(void);
    uint64_t registers[6];
    uint64_t vectors[2];                 /* low halves of xmm0 and xmm1 */
    uint64_t slots;                      /* stack arguments used, at most RAW_STACK_SLOTS */
    uint64_t stack[RAW_STACK_SLOTS];
    uint64_t canaries[RAW_CANARIES];     /* lie directly above the last stack argument */
};

#if defined(__x86_64__)
#define RAW_CALL_WORKS 1
/* Makes the call; afterwards canaries holds what was found in their place. */
void raw_call(struct raw_call *call);
#else
#define RAW_CALL_WORKS 0
#endif
