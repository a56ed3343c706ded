/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of gemm_driver share.
 */
#pragma once

#include "gemm_data.h"

/* Where a call of mode force must have run, as this program sees it. */
enum fate { ON_DEVICE, EMPTY, OVERLAPPING, FATES };

struct sweep {
    bool types[DTYPES], interfaces[INTERFACES];
    unsigned long every, only;     /* every N-th case; only this one (0: all) */
    uint64_t first_seed;
    unsigned long number;          /* of the case under way, from 1 */
    unsigned long cases, fates[FATES], failures;
    unsigned long direct[FATES];   /* CBLAS calls made past the preload: netlib's call dgemm_,
                                      which is then intercepted */
    struct arena a, b, c;
};

/* Whether the next case is one of those asked for; counts it. */
bool sweep_wants(struct sweep *sweep);

/* The seed of the case under way: any case can be run alone. */
uint64_t sweep_seed(const struct sweep *sweep);

/* Says what is wrong with the case under way. */
void sweep_fail(struct sweep *sweep, const struct gemm *g, const char *what);

/* Makes the call and checks all but the elements of C: A, B, gaps and surroundings. */
void sweep_call(struct sweep *sweep, const struct gemm *g, const struct matrix *a,
                const struct matrix *b, const struct matrix *c);

/* The cases whose outcome needs more than a bound on each element. */
void sweep_special(struct sweep *sweep);
