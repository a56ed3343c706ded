/* SPDX-License-Identifier: Apache-2.0
 *
 * The questions of compare.c. Each ask_ function is a group and runs in a process of its own.
 */
#pragma once

#include "client.h"

extern const char *cuda_path, *cublas_path;

/* Prints what the expression gives. */
#define ASK(question, expression) \
    do { \
        printf("%s: %s = %d\n", group, question, (int)(expression)); \
        fflush(stdout); \
    } while (0)
#define Q(expression) ASK(#expression, expression)

void ask_before_init(const char *group);
void ask_no_context(const char *group);
void ask_other_thread(const char *group);
void ask_copies(const char *group);
void ask_2d(const char *group);
void ask_events(const char *group);
void ask_pool(const char *group);
void ask_late_copy(const char *group);
void ask_gemm_arguments(const char *group);
void ask_gemm_numbers(const char *group);
void ask_level3_flags(const char *group);
void ask_level3_operands(const char *group);
void ask_level3_numbers(const char *group);
void ask_tf32_override(const char *group);
void ask_tf32_forbidden(const char *group);
void ask_broken_context(const char *group);
void ask_misaligned(const char *group);
void ask_beyond_allocation(const char *group);
