/* SPDX-License-Identifier: Apache-2.0
 *
 * level3_driver: operands that share memory, and illegal calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "level3_sweep.h"

/* ---- shared memory ---- */

enum { SIDE = 24, SHARED_ELEMENTS = 3200 };

/* How operands lie in one array of elements; offsets and leading dimensions in elements. */
static const struct sharing {
    const char *what;
    int64_t a, lda, b, ldb, c, ldc;
    bool needs_b;
    enum fate fate;
} sharings[] = {
    {"C is A", 0, SIDE, 2000, SIDE, 0, SIDE, false, OVERLAPPING},
    {"C is B", 0, SIDE, 1000, SIDE, 1000, SIDE, true, OVERLAPPING},
    {"C begins in A's last element", 0, SIDE, 2000, SIDE, SIDE * SIDE - 1, SIDE, false,
     OVERLAPPING},
    {"C ends in B's first element", 2000, SIDE, SIDE * SIDE - 1, SIDE, 0, SIDE, true,
     OVERLAPPING},
    {"C in the gaps of A", 0, 2 * SIDE, 2000, SIDE, SIDE, 2 * SIDE, false, ON_DEVICE},
    {"C in the gaps of A and one row of it", 0, 2 * SIDE, 2000, SIDE, SIDE - 1, 2 * SIDE, false,
     OVERLAPPING},
    {"A is B", 0, SIDE, 0, SIDE, 2000, SIDE, true, ON_DEVICE},
    {"C follows A at once", 0, SIDE, 2000, SIDE, SIDE * SIDE, SIDE, false, ON_DEVICE},
    {"C precedes A at once", SIDE * SIDE, SIDE, 2000, SIDE, 0, SIDE, false, ON_DEVICE},
};

static struct matrix shared_matrix(const struct level3 *l, char *array, int64_t offset, int64_t ld)
{
    return (struct matrix){.dtype = l->dtype, .lines = SIDE, .length = SIDE, .ld = ld,
                           .first = array + (size_t)offset * element_bytes(l->dtype)};
}

static const char *wrong_element(const struct level3 *l, const struct operands *x)
{
    const char *objection = NULL;
    for (int64_t i = 0; i < SIDE && objection == NULL; i++)
        for (int64_t j = 0; j < SIDE && objection == NULL; j++)
            if (is_written(l, i, j))
                objection = level3_objection(l, x, i, j);
    return objection;
}

/* Where the sharing is harmless the result must be right; where it is not it must be, bit for bit,
 * what the CPU library makes of it. */
static void run_shared(struct sweep *sweep, struct level3 *l, const struct sharing *sharing)
{
    static char array[SHARED_ELEMENTS * 16], before[sizeof array], by_cpu[sizeof array];
    uint64_t seed = sweep_seed(sweep);
    struct matrix all = {.dtype = l->dtype, .lines = 1, .length = SHARED_ELEMENTS,
                         .ld = SHARED_ELEMENTS, .first = array};
    matrix_random(&all, &seed);
    struct operands x = {
        .a = shared_matrix(l, before, sharing->a, sharing->lda),
        .b = shared_matrix(l, before, sharing->b, sharing->ldb),
        .c = shared_matrix(l, array, sharing->c, sharing->ldc),
        .before = shared_matrix(l, before, sharing->c, sharing->ldc),
    };
    size_t size = element_bytes(l->dtype);
    l->a = array + (size_t)sharing->a * size;
    l->b = array + (size_t)sharing->b * size;
    l->c = array + (size_t)sharing->c * size;
    l->lda = sharing->lda, l->ldb = sharing->ldb, l->ldc = sharing->ldc;
    memcpy(before, array, sizeof array);
    level3_call(l, level3_linked(l->family, l->dtype, l->interface));
    sweep->fates[l->family][l->dtype][sharing->fate]++;
    if (sharing->fate != OVERLAPPING) {
        const char *objection = wrong_element(l, &x);
        if (objection != NULL)
            sweep_fail(sweep, l, objection);
        return;
    }
    memcpy(by_cpu, array, sizeof array);
    memcpy(array, before, sizeof array);
    level3_call(l, level3_original(l->family, l->dtype, l->interface));
    if (memcmp(array, by_cpu, sizeof array) != 0)
        sweep_fail(sweep, l, sharing->what);
}

void sweep_shared(struct sweep *sweep, enum family family, enum dtype dtype,
                  enum interface interface)
{
#ifdef DRIVER_CBLAS_CALLS_F77
    if (interface != F77)
        return; /* its original would be intercepted in turn */
#endif
    for (size_t i = 0; i < sizeof sharings / sizeof sharings[0]; i++)
        for (int variant = 0; variant < 2; variant++) {
            bool has_b = family != SYRK && family != HERK && !is_triangular(family);
            struct level3 l = {.family = family, .dtype = dtype, .interface = interface,
                               .side = "LR"[variant], .uplo = "UL"[variant], .transa = 'N',
                               .transb = 'N', .diag = 'U', .m = SIDE, .n = SIDE, .k = SIDE,
                               .alpha = {1}, .beta = {variant * .5}};
            if ((has_b || !sharings[i].needs_b) && sweep_wants_always(sweep))
                run_shared(sweep, &l, &sharings[i]);
        }
}

/* ---- illegal calls ---- */

static char said[200];

/* The library's words, wherever it calls these by name: else it prints them itself, and netlib's
 * ends the process. */
extern void xerbla_(const char *name, const BLAS_INT *info, size_t length);
extern void cblas_xerbla(int info, const char *name, const char *form, ...);

void xerbla_(const char *name, const BLAS_INT *info, size_t length)
{
    size_t used = strlen(said);
    snprintf(said + used, sizeof said - used, " [%.*s %d]", (int)(length < 20 ? length : 20), name,
             (int)*info);
}

void cblas_xerbla(int info, const char *name, const char *form, ...)
{
    size_t used = strlen(said);
    (void)form;
    snprintf(said + used, sizeof said - used, " [%s %d]", name, info);
}

/* What is spoilt: a flag by its letter, a size, a leading dimension (in capitals; 0, 1, 2: that of
 * A, B, C is 0), the layout. */
static bool spoil(struct level3 *l, char what)
{
    bool side = has_side(l->family), gemm = l->family == GEMM3M;
    bool has_b = l->family != SYRK && l->family != HERK && !is_triangular(l->family);
    switch (what) {
    case 's': l->side = 'Q'; return side;
    case 'u': l->uplo = 'Q'; return !gemm;
    case 't': l->transa = 'Q'; return !side || is_triangular(l->family);
    case 'T': l->transb = 'Q'; return gemm || is_gemmt(l->family);
    case 'd': l->diag = 'Q'; return is_triangular(l->family);
    case 'C': l->transa = is_hermitian(l->family) ? 'T' : 'C'; /* the other one */
        return is_rank_k(l->family) && is_complex(l->dtype);
    case 'm': l->m = -1; return side || gemm;
    case 'n': l->n = -1; return true;
    case 'k': l->k = -1; return !side;
    case 'A': l->lda = SIDE - 1; return true;
    case 'B': l->ldb = SIDE - 1; return has_b;
    case 'D': l->ldc = SIDE - 1; return true;
    case '0': l->lda = 0; return true;
    case '1': l->ldb = 0; return has_b;
    case '2': l->ldc = 0; return true;
    case '9': l->layout = 99; return l->interface != F77;
    default: l->side = l->uplo = l->transa = '\0', l->ldc = 0; return l->interface == F77;
    }
}

/* Calls whose work comes out negative are counted with the small ones. */
static enum fate fate_of(const struct level3 *l, char what)
{
    bool negative = what == 'k' || (what == 'n' && (has_side(l->family) || l->family == GEMM3M)) ||
                    (what == 'm' && l->family == GEMM3M);
    return negative ? NEGATIVE : ILLEGAL;
}

static void run_illegal(struct sweep *sweep, const struct level3 *l, char what)
{
    char name[40];
    static unsigned char fives[SIDE * SIDE * 16];
    memset(l->c, 5, sizeof fives);
    memset(fives, 5, sizeof fives);
    said[0] = '\0';
    level3_call(l, level3_linked(l->family, l->dtype, l->interface));
    bool written = memcmp(l->c, fives, sizeof fives) != 0;
    printf("%s %c:%s%s\n", entry_name(name, l->family, l->dtype, l->interface), what, said,
           written ? " computed" : "");
    /* netlib's CBLAS takes any transposition of row-major updates. */
    if (written && (said[0] != '\0' || what != 'C'))
        sweep_fail(sweep, l, "an illegal call has written to C");
    if (said[0] == '\0' && what != 'C')
        sweep_fail(sweep, l, "an illegal call was not reported");
    sweep->fates[l->family][l->dtype][fate_of(l, what)]++;
}

void sweep_illegal(struct sweep *sweep, enum family family, enum dtype dtype,
                   enum interface interface)
{
    static unsigned char a[SIDE * SIDE * 16], b[sizeof a], c[sizeof a];
    if (family >= BATCH)
        return; /* level3_batch.c has its own */
    for (const char *what = "sutTdCmnkABD0129x"; *what != '\0'; what++) {
        struct level3 l = {.family = family, .dtype = dtype, .interface = interface,
                           .side = 'L', .uplo = 'U', .transa = 'N', .transb = 'N', .diag = 'N',
                           .m = SIDE, .n = SIDE, .k = SIDE, .lda = SIDE, .ldb = SIDE,
                           .ldc = SIDE, .alpha = {1}, .beta = {1}, .a = a, .b = b, .c = c};
        if (spoil(&l, *what) && sweep_wants_always(sweep))
            run_illegal(sweep, &l, *what);
    }
}
