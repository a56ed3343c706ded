/* SPDX-License-Identifier: Apache-2.0 */
#include "level3_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wants(struct sweep *sweep, unsigned long every)
{
    sweep->number++;
    if (sweep->only != 0 ? sweep->number != sweep->only : sweep->number % every != 0)
        return false;
    sweep->cases++;
    return true;
}

bool sweep_wants(struct sweep *sweep)
{
    return wants(sweep, sweep->every);
}

bool sweep_wants_always(struct sweep *sweep)
{
    return wants(sweep, 1);
}

uint64_t sweep_seed(const struct sweep *sweep)
{
    uint64_t seed = (sweep->first_seed + sweep->number) * UINT64_C(0x9e3779b97f4a7c15);
    return seed != 0 ? seed : 1;
}

static char shown(char flag)
{
    return flag > ' ' ? flag : '-';
}

void sweep_fail(struct sweep *sweep, const struct level3 *l, const char *what)
{
    static const char *const layouts[INTERFACES] = {"", " columns", " rows"};
    char name[40];
    sweep->failures++;
    fprintf(stderr,
            "case %lu, seed %llu: %s%s %c%c%c%c%c m=%lld n=%lld k=%lld alpha=%g%+gi "
            "beta=%g%+gi lda=%lld ldb=%lld ldc=%lld: %s\n",
            sweep->number, (unsigned long long)sweep->first_seed,
            entry_name(name, l->family, l->dtype, l->interface), layouts[l->interface],
            shown(l->side), shown(l->uplo), shown(l->transa), shown(l->transb), shown(l->diag),
            (long long)l->m, (long long)l->n, (long long)l->k, l->alpha[0], l->alpha[1],
            l->beta[0], l->beta[1], (long long)l->lda, (long long)l->ldb, (long long)l->ldc,
            what);
    if (sweep->failures >= 20)
        exit(1);
}

void *copy_of(const void *bytes, size_t size)
{
    void *copy = malloc(size + 1);
    if (copy == NULL)
        exit(2);
    memcpy(copy, bytes, size);
    return copy;
}
