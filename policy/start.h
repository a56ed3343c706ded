/* SPDX-License-Identifier: Apache-2.0
 *
 * When a start-up pays (ski rental: rent until what was paid equals the price): once the savings
 * missed so far add up to the start-up's own time, which bounds the loss to twice the optimum
 * whatever the program does next (Karlin et al., "Competitive snoopy caching", Algorithmica 3,
 * 1988).
 */
#pragma once

#include <stdbool.h>

/* Adds the seconds a call would have saved on a started device; negative counts as zero. */
void gs_start_missed(double seconds);

/* Whether the missed savings have reached startup seconds. */
bool gs_start_is_repaid(double startup);

void gs_start_reset(void);
