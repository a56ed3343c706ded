/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of level3_driver share.
 */
#pragma once

#include "level3_expect.h"

/* Where a call of mode force must have run, as this program sees it. */
enum fate { ON_DEVICE, EMPTY, OVERLAPPING, ILLEGAL, NEGATIVE, FATES };

struct sweep {
    bool families[FAMILIES], types[DTYPES], interfaces[INTERFACES];
    bool few;                      /* --few */
    unsigned long every, only;     /* every N-th case; only this one (0: all) */
    uint64_t first_seed;
    unsigned long number;          /* of the case under way, from 1 */
    unsigned long cases, failures;
    unsigned long fates[FAMILIES][DTYPES][FATES];
    struct arena a, b, c;
};

/* Whether the next case is one of those asked for; counts it. */
bool sweep_wants(struct sweep *sweep);
/* The same for the few cases that --every does not thin out. */
bool sweep_wants_always(struct sweep *sweep);

/* The seed of the case under way: any case can be run alone. */
uint64_t sweep_seed(const struct sweep *sweep);

/* Says what is wrong with the case under way. */
void sweep_fail(struct sweep *sweep, const struct level3 *l, const char *what);

/* The type and interfaces that are asked for, one after the other. */
typedef void sweep_part(struct sweep *sweep, enum family family, enum dtype dtype,
                        enum interface interface);
void sweep_each(struct sweep *sweep, sweep_part *part);

/* One case: l has everything but the matrices. gap: elements by which ld exceeds the minimum. */
void sweep_case(struct sweep *sweep, struct level3 *l, int64_t gap);

void *copy_of(const void *bytes, size_t size);

sweep_part sweep_shared;   /* operands that share memory */
sweep_part sweep_illegal;  /* arguments that BLAS rejects */
sweep_part sweep_batches;
