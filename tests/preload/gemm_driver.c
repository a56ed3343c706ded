/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls gemm in every combination of type, interface, flags, scalars, sizes and leading dimensions,
 * and compares with a plain triple loop. Prints "ok N cases"; anything else on stderr, status 1.
 *
 *     gemm_driver [options]
 *         --types sdcz --interfaces fcr   fewer of them (f Fortran, c CBLAS columns, r rows)
 *         --every N     each N-th case
 *         --few         six calls that show the paths: for repeated runs
 *         --seed N      other data; the seed is part of each failure message
 *         --only N      the case that a failure message names
 *         --tally FILE  how many calls had to run on the device, and how many not, as JSON
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_sweep.h"

bool sweep_wants(struct sweep *sweep)
{
    sweep->number++;
    if (sweep->only != 0 ? sweep->number != sweep->only : sweep->number % sweep->every != 0)
        return false;
    sweep->cases++;
    return true;
}

uint64_t sweep_seed(const struct sweep *sweep)
{
    uint64_t seed = (sweep->first_seed + sweep->number) * UINT64_C(0x9e3779b97f4a7c15);
    return seed != 0 ? seed : 1;
}

void sweep_fail(struct sweep *sweep, const struct gemm *g, const char *what)
{
    static const char *const layouts[INTERFACES] = {"", " columns", " rows"};
    sweep->failures++;
    fprintf(stderr,
            "case %lu, seed %llu: %s%s %c%c m=%lld n=%lld k=%lld alpha=%g%+gi beta=%g%+gi "
            "lda=%lld ldb=%lld ldc=%lld: %s\n",
            sweep->number, (unsigned long long)sweep->first_seed,
            gemm_name(g->dtype, g->interface), layouts[g->interface], g->transa, g->transb,
            (long long)g->m, (long long)g->n, (long long)g->k, g->alpha[0], g->alpha[1],
            g->beta[0], g->beta[1], (long long)g->lda, (long long)g->ldb, (long long)g->ldc,
            what);
    if (sweep->failures >= 20)
        exit(1);
}

static void *copy_of(const struct matrix *x)
{
    void *copy = malloc(matrix_span(x) + 1);
    if (copy == NULL)
        exit(2);
    memcpy(copy, x->first, matrix_span(x));
    return copy;
}

void sweep_call(struct sweep *sweep, const struct gemm *g, const struct matrix *a,
                const struct matrix *b, const struct matrix *c)
{
    void *a_before = copy_of(a), *b_before = copy_of(b);
    gemm_call(g, gemm_linked(g->dtype, g->interface));
    if (memcmp(a->first, a_before, matrix_span(a)) != 0)
        sweep_fail(sweep, g, "A was written to");
    if (memcmp(b->first, b_before, matrix_span(b)) != 0)
        sweep_fail(sweep, g, "B was written to");
    if (!matrix_surroundings_intact(&sweep->a, a) || !matrix_surroundings_intact(&sweep->b, b))
        sweep_fail(sweep, g, "bytes around A or B were written to");
    if (!matrix_surroundings_intact(&sweep->c, c))
        sweep_fail(sweep, g, "bytes around C were written to");
    free(a_before);
    free(b_before);
}

static bool is_zero(const double x[2])
{
    return x[0] == 0 && x[1] == 0;
}

static void check_elements(struct sweep *sweep, const struct gemm *g, const struct matrix *a,
                           const struct matrix *b, const struct matrix *before,
                           const struct matrix *c)
{
    bool row_major = g->interface == ROWS;
    char what[256];
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            struct wanted wanted = product_element(g, a, b, before, i, j);
            if (element_is_near(c, row_major, i, j, &wanted))
                continue;
            long double got[2];
            matrix_get(c, row_major, i, j, got);
            snprintf(what, sizeof what, "C(%lld,%lld) is %.17Lg%+.17Lgi, not %.17Lg%+.17Lgi +- %Lg",
                     (long long)i, (long long)j, got[0], got[1], wanted.value[0],
                     wanted.value[1], wanted.bound);
            sweep_fail(sweep, g, what);
            return;
        }
}

static bool is_n(char trans)
{
    return trans == 'N' || trans == 'n';
}

/* One case: g has everything but the matrices. gap: elements by which ld exceeds the minimum. */
static void run_case(struct sweep *sweep, struct gemm *g, int64_t gap)
{
    bool row_major = g->interface == ROWS;
    uint64_t seed = sweep_seed(sweep);
    struct matrix a = matrix_place(&sweep->a, g->dtype, row_major, is_n(g->transa) ? g->m : g->k,
                                   is_n(g->transa) ? g->k : g->m, gap);
    struct matrix b = matrix_place(&sweep->b, g->dtype, row_major, is_n(g->transb) ? g->k : g->n,
                                   is_n(g->transb) ? g->n : g->k, 2 * gap);
    struct matrix c = matrix_place(&sweep->c, g->dtype, row_major, g->m, g->n, gap);
    struct matrix before = c;
    if (is_zero(g->alpha)) { /* neither is read */
        matrix_spoil(&a);
        matrix_spoil(&b);
    } else {
        matrix_random(&a, &seed);
        matrix_random(&b, &seed);
    }
    if (is_zero(g->beta))
        matrix_spoil(&c); /* need not be set */
    else
        matrix_random(&c, &seed);
    g->a = a.first, g->b = b.first, g->c = c.first;
    g->lda = a.ld, g->ldb = b.ld, g->ldc = c.ld;
    before.first = copy_of(&c);
    sweep_call(sweep, g, &a, &b, &c);
    check_elements(sweep, g, &a, &b, &before, &c);
    free(before.first);
    sweep->fates[g->m == 0 || g->n == 0 || g->k == 0 || is_zero(g->alpha) ? EMPTY : ON_DEVICE]++;
}

/* ---- the sweep ---- */

static const int sizes[][3] = {
    {0, 3, 2},   {3, 0, 2},  {2, 3, 0},   {0, 0, 0},   {1, 1, 1},    {1, 7, 3},    {7, 1, 2},
    {2, 2, 2},   {3, 2, 7},  {7, 17, 3},  {17, 3, 7},  {2, 17, 1},   {17, 17, 17}, {3, 7, 17},
    {64, 7, 3},  {2, 65, 7}, {64, 65, 2}, {65, 17, 64}, {17, 64, 65}, {64, 64, 64}};
static const double alphas[][2] = {{0, 0}, {1, 0}, {-1.5, 0}, {.25, -1.5}};
static const double betas[][2] = {{0, 0}, {1, 0}, {.5, 0}, {-.5, .25}};

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Complex scalars are for complex types; the largest products are slow to check, so that they
 * come with the most telling scalars alone. */
static bool is_worth_it(const struct gemm *g)
{
    if (!is_complex(g->dtype) && (g->alpha[1] != 0 || g->beta[1] != 0))
        return false;
    return g->m * g->n * g->k < 20000 ||
           (g->alpha[0] != 0 && g->alpha[0] != 1 && (g->beta[0] == 0 || g->beta[0] == .5));
}

static void sweep_sizes(struct sweep *sweep, struct gemm g)
{
    for (int s = 0; s < COUNT(sizes); s++)
        for (int alpha = 0; alpha < COUNT(alphas); alpha++)
            for (int beta = 0; beta < COUNT(betas); beta++)
                for (int gap = 0; gap < 2; gap++) {
                    g.m = sizes[s][0], g.n = sizes[s][1], g.k = sizes[s][2];
                    memcpy(g.alpha, alphas[alpha], sizeof g.alpha);
                    memcpy(g.beta, betas[beta], sizeof g.beta);
                    if (is_worth_it(&g) && sweep_wants(sweep))
                        run_case(sweep, &g, gap * 3);
                }
}

static void sweep_all(struct sweep *sweep)
{
    static const char upper[] = "NTC", lower[] = "ntc";
    for (enum dtype t = S; t < DTYPES; t++)
        for (enum interface i = F77; i < INTERFACES; i++)
            for (int flags = 0; flags < (i == F77 ? 18 : 9); flags++) {
                const char *letters = flags < 9 ? upper : lower;
                struct gemm g = {.dtype = t, .interface = i,
                                 .transa = letters[flags % 9 / 3], .transb = letters[flags % 3]};
                if (sweep->types[t] && sweep->interfaces[i])
                    sweep_sizes(sweep, g);
            }
}

/* beta 0 and not, each type, contiguous and strided, both interfaces. */
static void sweep_few(struct sweep *sweep)
{
    static const struct {
        struct gemm g;
        int64_t gap;
    } few[] = {
        {{D, F77, 'N', 'N', 17, 7, 3, .alpha = {1}, .beta = {0}}, 0},
        {{D, F77, 'T', 'N', 17, 7, 3, .alpha = {-1.5}, .beta = {.5}}, 3},
        {{S, ROWS, 'N', 'T', 7, 17, 3, .alpha = {1}, .beta = {1}}, 0},
        {{C, COLUMNS, 'C', 'N', 3, 17, 7, .alpha = {.25, -1.5}, .beta = {0}}, 3},
        {{Z, F77, 'N', 'C', 7, 3, 17, .alpha = {.25, -1.5}, .beta = {-.5, .25}}, 0},
        {{D, COLUMNS, 'N', 'N', 2, 17, 17, .alpha = {1}, .beta = {.5}}, 0},
    };
    for (int i = 0; i < COUNT(few); i++) {
        struct gemm g = few[i].g;
        if (sweep_wants(sweep))
            run_case(sweep, &g, few[i].gap);
    }
}

/* ---- options ---- */

static void choose(bool *chosen, const char *letters, const char *wanted)
{
    for (int i = 0; letters[i] != '\0'; i++)
        chosen[i] = strchr(wanted, letters[i]) != NULL;
}

static void write_tally(const char *path, const struct sweep *sweep)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    fprintf(file,
            "{\"device\": %lu, \"S103\": %lu, \"U305\": %lu, "
            "\"direct\": {\"device\": %lu, \"U305\": %lu}}\n",
            sweep->fates[ON_DEVICE], sweep->fates[EMPTY], sweep->fates[OVERLAPPING],
            sweep->direct[ON_DEVICE], sweep->direct[OVERLAPPING]);
    fclose(file);
}

static bool few;
static const char *tally;

static void read_options(int argc, char **argv, struct sweep *sweep)
{
    static const struct option options[] = {
        {"types", 1, NULL, 't'}, {"interfaces", 1, NULL, 'i'}, {"every", 1, NULL, 'e'},
        {"few", 0, NULL, 'f'},   {"seed", 1, NULL, 's'},       {"only", 1, NULL, 'o'},
        {"tally", 1, NULL, 'T'}, {NULL, 0, NULL, 0}};
    int option;
    choose(sweep->types, "sdcz", "sdcz");
    choose(sweep->interfaces, "fcr", "fcr");
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 't': choose(sweep->types, "sdcz", optarg); break;
        case 'i': choose(sweep->interfaces, "fcr", optarg); break;
        case 'e': sweep->every = strtoul(optarg, NULL, 10); break;
        case 'f': few = true; break;
        case 's': sweep->first_seed = strtoull(optarg, NULL, 10); break;
        case 'o': sweep->only = strtoul(optarg, NULL, 10); break;
        case 'T': tally = optarg; break;
        default: exit(2);
        }
    if (sweep->every == 0)
        exit(2);
}

int main(int argc, char **argv)
{
    const size_t room = 80 * 80 * 16;
    struct sweep sweep = {.every = 1, .first_seed = 20261201};
    read_options(argc, argv, &sweep);
    sweep.a = arena_make(room);
    sweep.b = arena_make(room);
    sweep.c = arena_make(room);
    if (few) {
        sweep_few(&sweep);
    } else {
        sweep_all(&sweep);
        sweep_special(&sweep);
    }
    if (tally != NULL)
        write_tally(tally, &sweep);
    if (sweep.failures > 0)
        return 1;
    printf("ok %lu cases\n", sweep.cases);
    return 0;
}
