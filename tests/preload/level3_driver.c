/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls the level-3 routines other than gemm in every combination of type, interface, flags,
 * scalars, sizes and leading dimensions, and compares with plain sums. Prints "ok N cases";
 * anything else on stderr, status 1.
 *
 *     level3_driver [options]
 *         --families symm,trsm   fewer of them; as a rule all that the library has
 *         --types sdcz --interfaces fcr   fewer of them (f Fortran, c CBLAS columns, r rows)
 *         --every N     each N-th case
 *         --few         one or two calls of each family: for repeated runs
 *         --illegal     illegal calls alone; prints what the library says of each
 *         --seed N      other data; the seed is part of each failure message
 *         --only N      the case that a failure message names
 *         --tally FILE  how many calls of each routine had to run where, as JSON
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "level3_sweep.h"

void sweep_each(struct sweep *sweep, sweep_part *part)
{
    for (enum family f = GEMM3M; f < FAMILIES; f++)
        for (enum dtype t = S; t < DTYPES; t++)
            for (enum interface i = F77; i < INTERFACES; i++)
                if (sweep->families[f] && family_has(f, t) && sweep->types[t] &&
                    sweep->interfaces[i] && (i != F77 || f < BATCH))
                    part(sweep, f, t, i);
}

/* ---- the sweep ---- */

/* m n k; the families without one of them leave it out. The last ones cross the blocks of 256 and
 * 512 in which triangles move and gemmt computes. */
static const int sizes[][3] = {
    {0, 3, 2},   {3, 0, 2},  {2, 3, 0},   {0, 0, 0},   {1, 1, 1},    {1, 7, 3},    {7, 1, 2},
    {3, 2, 7},   {2, 3, 17}, {7, 17, 3},  {17, 7, 2},  {17, 17, 17}, {3, 64, 7},   {65, 2, 17},
    {64, 65, 3}, {2, 65, 64}, {300, 3, 5}, {2, 300, 5}, {5, 513, 3}};
static const double alphas[][2] = {{0, 0}, {1, 0}, {-1.5, 0}, {.25, -1.5}};
static const double betas[][2] = {{0, 0}, {1, 0}, {.5, 0}, {-.5, .25}};

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static bool takes_complex_alpha(const struct level3 *l)
{
    return is_complex(l->dtype) && l->family != HERK;
}

static bool takes_complex_beta(const struct level3 *l)
{
    return is_complex(l->dtype) && l->family != HERK && l->family != HER2K;
}

/* The larger a case, the slower it is to check: those come with the most telling scalars alone. */
static bool is_worth_it(const struct level3 *l, int64_t gap)
{
    bool telling = l->alpha[0] != 0 && l->alpha[0] != 1 && (l->beta[0] == 0 || l->beta[0] == .5);
    int64_t largest = l->m > l->n ? l->m : l->n;
    if ((l->alpha[1] != 0 && !takes_complex_alpha(l)) || (l->beta[1] != 0 && !takes_complex_beta(l)))
        return false;
    if (is_triangular(l->family) && l->beta[0] != 0)
        return false;
    if (largest == 513)
        return telling && is_gemmt(l->family) && l->beta[0] != 0 && gap > 0;
    if (largest == 300)
        return telling && gap > 0;
    return largest < 64 || telling;
}

static void sweep_sizes(struct sweep *sweep, struct level3 l)
{
    for (int s = 0; s < COUNT(sizes); s++)
        for (int alpha = 0; alpha < COUNT(alphas); alpha++)
            for (int beta = 0; beta < COUNT(betas); beta++)
                for (int gap = 0; gap < 2; gap++) {
                    l.m = sizes[s][0], l.n = sizes[s][1], l.k = sizes[s][2];
                    memcpy(l.alpha, alphas[alpha], sizeof l.alpha);
                    memcpy(l.beta, betas[beta], sizeof l.beta);
                    if (is_worth_it(&l, gap) && sweep_wants(sweep))
                        sweep_case(sweep, &l, gap * 3);
                }
}

/* The letters that an argument takes; "-" where the family does not have it. */
struct letters {
    const char *side, *uplo, *transa, *transb, *diag;
};

static struct letters letters_of(enum family family, enum dtype dtype)
{
    struct letters letters = {"-", "-", "-", "-", "-"};
    if (has_side(family))
        letters.side = "LR";
    if (family != GEMM3M)
        letters.uplo = "UL";
    if (is_triangular(family))
        letters.transa = "NTC", letters.diag = "UN";
    if (is_gemmt(family) || family == GEMM3M)
        letters.transa = letters.transb = "NTC";
    if (is_rank_k(family))
        letters.transa = is_hermitian(family) ? "NC" : is_complex(dtype) ? "NT" : "NTC";
    return letters;
}

static char in_case(char flag, bool lower)
{
    return lower && flag >= 'A' ? (char)(flag - 'A' + 'a') : flag;
}

static void sweep_flags(struct sweep *sweep, enum family family, enum dtype dtype,
                        enum interface interface)
{
    struct letters x = letters_of(family, dtype);
    bool lower = false;
    for (const char *side = x.side; *side != '\0'; side++)
        for (const char *uplo = x.uplo; *uplo != '\0'; uplo++)
            for (const char *transa = x.transa; *transa != '\0'; transa++)
                for (const char *transb = x.transb; *transb != '\0'; transb++)
                    for (const char *diag = x.diag; *diag != '\0'; diag++) {
                        lower = interface == F77 && !lower;
                        struct level3 l = {
                            .family = family, .dtype = dtype, .interface = interface,
                            .side = in_case(*side, lower), .uplo = in_case(*uplo, lower),
                            .transa = in_case(*transa, lower),
                            .transb = in_case(*transb, lower), .diag = in_case(*diag, lower)};
                        sweep_sizes(sweep, l);
                    }
}

static void sweep_all(struct sweep *sweep, enum family family, enum dtype dtype,
                      enum interface interface)
{
    if (family >= BATCH) {
        sweep_batches(sweep, family, dtype, interface);
        return;
    }
    sweep_flags(sweep, family, dtype, interface);
    sweep_shared(sweep, family, dtype, interface);
}

/* Each family with beta 0 and not, in other types and interfaces each. */
static void sweep_few(struct sweep *sweep)
{
    static const struct level3 calls[] = {
        {GEMM3M, Z, ROWS, .transa = 'C', .transb = 'N', .m = 7, .n = 9, .k = 3,
         .alpha = {.25, -1.5}, .beta = {.5}},
        {SYMM, D, F77, 'L', 'U', .m = 17, .n = 5, .alpha = {1}, .beta = {0}},
        {SYMM, C, ROWS, 'R', 'L', .m = 5, .n = 17, .alpha = {.25, -1.5}, .beta = {.5}},
        {HEMM, Z, COLUMNS, 'R', 'U', .m = 9, .n = 7, .alpha = {.25, -1.5}, .beta = {-.5, .25}},
        /* Beside the diagonal blocks of 256: parts that are copied straight into C. */
        {SYRK, D, ROWS, .uplo = 'L', .transa = 'T', .n = 300, .k = 2, .alpha = {1},
         .beta = {.5}},
        {SYRK, S, F77, .uplo = 'U', .transa = 'N', .n = 9, .k = 3, .alpha = {1}, .beta = {0}},
        {HERK, C, F77, .uplo = 'L', .transa = 'C', .n = 9, .k = 5, .alpha = {-1.5}, .beta = {.5}},
        {SYR2K, S, COLUMNS, .uplo = 'U', .transa = 'N', .n = 7, .k = 3, .alpha = {1},
         .beta = {1}},
        {HER2K, Z, ROWS, .uplo = 'U', .transa = 'N', .n = 9, .k = 3, .alpha = {.25, -1.5},
         .beta = {.5}},
        {TRMM, D, F77, 'L', 'L', 'T', .diag = 'U', .m = 9, .n = 5, .alpha = {-1.5}},
        {TRSM, D, ROWS, 'R', 'U', 'N', .diag = 'N', .m = 5, .n = 9, .alpha = {-1.5}},
        {TRSM, Z, F77, 'L', 'U', 'C', .diag = 'N', .m = 300, .n = 2, .alpha = {1}},
        {GEMMT, D, F77, .uplo = 'L', .transa = 'N', .transb = 'T', .n = 9, .k = 3, .alpha = {1},
         .beta = {0}},
        {GEMMT, S, ROWS, .uplo = 'U', .transa = 'N', .transb = 'N', .n = 513, .k = 2,
         .alpha = {1}, .beta = {.5}},
        {GEMMTR, Z, COLUMNS, .uplo = 'U', .transa = 'C', .transb = 'N', .n = 7, .k = 3,
         .alpha = {.25, -1.5}, .beta = {.5}},
    };
    for (int i = 0; i < COUNT(calls); i++) {
        struct level3 l = calls[i];
        if (sweep->families[l.family] && sweep_wants(sweep))
            sweep_case(sweep, &l, i % 2 * 3);
    }
    if (sweep->families[BATCH])
        sweep_batches(sweep, BATCH, D, COLUMNS);
    if (sweep->families[STRIDED])
        sweep_batches(sweep, STRIDED, C, ROWS);
}

/* ---- options ---- */

static void choose(bool *chosen, const char *letters, const char *wanted)
{
    for (int i = 0; letters[i] != '\0'; i++)
        chosen[i] = strchr(wanted, letters[i]) != NULL;
}

static void choose_families(bool *chosen, const char *wanted)
{
    char list[200], name[40];
    snprintf(list, sizeof list, ",%s,", wanted);
    for (int f = 0; f < FAMILIES; f++) {
        snprintf(name, sizeof name, ",%s,", family_names[f]);
        chosen[f] = strstr(list, name) != NULL;
    }
}

static void write_tally(const char *path, const struct sweep *sweep)
{
    static const char *const names[FATES] = {"device", "S103", "U305", "U307", "S101"};
    const char *separator = "";
    char name[40];
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    fprintf(file, "{");
    for (enum family f = GEMM3M; f < FAMILIES; f++)
        for (enum dtype t = S; t < DTYPES; t++) {
            if (!sweep->families[f] || !family_has(f, t) || !sweep->types[t])
                continue;
            fprintf(file, "%s\"%s\": {", separator, routine_name(name, f, t));
            for (int fate = 0; fate < FATES; fate++)
                fprintf(file, "%s\"%s\": %lu", fate > 0 ? ", " : "", names[fate],
                        sweep->fates[f][t][fate]);
            fprintf(file, "}");
            separator = ", ";
        }
    fprintf(file, "}\n");
    fclose(file);
}

static bool illegal;
static const char *tally;

static void read_options(int argc, char **argv, struct sweep *sweep)
{
    static const struct option options[] = {
        {"families", 1, NULL, 'F'}, {"types", 1, NULL, 't'}, {"interfaces", 1, NULL, 'i'},
        {"every", 1, NULL, 'e'},    {"few", 0, NULL, 'f'},   {"illegal", 0, NULL, 'I'},
        {"seed", 1, NULL, 's'},     {"only", 1, NULL, 'o'},  {"tally", 1, NULL, 'T'},
        {NULL, 0, NULL, 0}};
    int option;
    choose_families(sweep->families, DRIVER_FAMILIES);
    choose(sweep->types, "sdcz", "sdcz");
    choose(sweep->interfaces, "fcr", "fcr");
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 'F': choose_families(sweep->families, optarg); break;
        case 't': choose(sweep->types, "sdcz", optarg); break;
        case 'i': choose(sweep->interfaces, "fcr", optarg); break;
        case 'e': sweep->every = strtoul(optarg, NULL, 10); break;
        case 'f': sweep->few = true; break;
        case 'I': illegal = true; break;
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
    const size_t room = 521 * 521 * 16;
    static struct sweep sweep = {.every = 1, .first_seed = 20261201};
    read_options(argc, argv, &sweep);
    sweep.a = arena_make(room);
    sweep.b = arena_make(room);
    sweep.c = arena_make(room);
    if (sweep.few)
        sweep_few(&sweep);
    else
        sweep_each(&sweep, illegal ? sweep_illegal : sweep_all);
    if (tally != NULL)
        write_tally(tally, &sweep);
    if (sweep.failures > 0)
        return 1;
    printf("ok %lu cases\n", sweep.cases);
    return 0;
}
