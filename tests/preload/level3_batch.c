/* SPDX-License-Identifier: Apache-2.0
 *
 * level3_driver: gemm_batch and gemm_batch_strided.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "level3_sweep.h"

enum { MOST_GROUPS = 4, MOST_PROBLEMS = 8 };

/* Problems of one shape. */
struct group {
    char transa, transb;
    int64_t m, n, k;
    double alpha[2], beta[2];
    int64_t size;
    char spoilt;                   /* 'm': negative m; 'c': ldc too small; 't': no flag */
};

struct batch {
    const char *what;
    int64_t count;                 /* of groups; as it is passed */
    struct group group[MOST_GROUPS];
    enum fate fate;                /* ON_DEVICE: each problem for itself */
};

static const struct batch batches[] = {
    {"one group", 1, {{'N', 'N', 7, 5, 3, {1}, {0}, 3, 0}}, ON_DEVICE},
    {"one problem", 1, {{'T', 'C', 17, 7, 3, {-1.5}, {.5}, 1, 0}}, ON_DEVICE},
    {"groups", 4,
     {{'N', 'T', 17, 7, 3, {1}, {.5}, 2, 0}, {'N', 'N', 0, 3, 2, {1}, {1}, 1, 0},
      {'T', 'N', 2, 3, 1, {1}, {0}, 0, 0}, {'C', 'N', 3, 65, 7, {-1.5}, {1}, 2, 0}},
     ON_DEVICE},
    {"alpha 0, k 0", 3,
     {{'N', 'N', 5, 4, 3, {0}, {.5}, 2, 0}, {'N', 'N', 5, 4, 0, {1}, {0}, 1, 0},
      {'N', 'N', 5, 4, 2, {1}, {0}, 1, 0}},
     ON_DEVICE},
    {"no problem", 2,
     {{'N', 'N', 5, 4, 3, {1}, {.5}, 0, 0}, {'N', 'N', 5, 4, 3, {1}, {0}, 0, 0}}, EMPTY},
    {"no group", 0, {{'N', 'N', 5, 4, 3, {1}, {.5}, 0, 0}}, EMPTY},
    {"empty problems", 1, {{'N', 'N', 5, 0, 3, {1}, {.5}, 2, 0}}, EMPTY},
    {"less than no group", -1, {{'N', 'N', 5, 4, 3, {1}, {.5}, 1, 0}}, EMPTY},
    {"a group of -1", 3,
     {{'N', 'N', 5, 4, 3, {1}, {.5}, 2, 0}, {'N', 'N', 5, 4, 3, {1}, {0}, -1, 0},
      {'N', 'N', 3, 4, 2, {1}, {0}, 1, 0}},
     ILLEGAL},
    {"an illegal m", 2,
     {{'N', 'N', 5, 4, 3, {1}, {.5}, 2, 0}, {'N', 'N', 5, 4, 3, {1}, {0}, 1, 'm'}}, ILLEGAL},
    {"an illegal ldc", 2,
     {{'N', 'N', 5, 4, 3, {1}, {.5}, 1, 'c'}, {'N', 'N', 5, 4, 3, {1}, {0}, 1, 0}}, ILLEGAL},
    {"an illegal flag", 1, {{'N', 'N', 5, 4, 3, {1}, {.5}, 2, 't'}}, ILLEGAL},
};

/* ---- the matrices of a batch, one behind the other with gaps ---- */

enum { ROOM = 1 << 16, GAP = 5 };

struct pile {
    unsigned char bytes[ROOM];
    size_t used;
};

static struct matrix take(struct pile *pile, enum dtype dtype, bool rows, int64_t m, int64_t n,
                          int64_t gap)
{
    struct matrix x = {.dtype = dtype, .lines = rows ? m : n, .length = rows ? n : m};
    x.ld = (x.length > 0 ? x.length : 1) + gap;
    x.first = pile->bytes + pile->used;
    pile->used += (size_t)(x.lines * x.ld + GAP) * element_bytes(dtype);
    if (pile->used > ROOM)
        exit(2);
    return x;
}

struct problem {
    struct gemm gemm;
    struct matrix a, b, c, before;
};

struct work {
    struct pile a, b, c, c_before;
    struct problem problem[MOST_PROBLEMS];
    int problems;
};

static bool is_n(char trans)
{
    return trans == 'N';
}

static void add_problem(struct work *w, const struct level3 *l, const struct group *g,
                        uint64_t *seed)
{
    bool rows = l->interface == ROWS;
    struct problem *p = &w->problem[w->problems++];
    *p = (struct problem){
        .gemm = {.dtype = l->dtype, .interface = l->interface, .transa = g->transa,
                 .transb = g->transb, .m = g->m, .n = g->n, .k = g->k,
                 .alpha = {g->alpha[0]}, .beta = {g->beta[0]}},
        .a = take(&w->a, l->dtype, rows, is_n(g->transa) ? g->m : g->k,
                  is_n(g->transa) ? g->k : g->m, 2),
        .b = take(&w->b, l->dtype, rows, is_n(g->transb) ? g->k : g->n,
                  is_n(g->transb) ? g->n : g->k, 0),
        .c = take(&w->c, l->dtype, rows, g->m, g->n, 1),
    };
    p->before = p->c;
    p->before.first = w->c_before.bytes + ((unsigned char *)p->c.first - w->c.bytes);
    if (g->alpha[0] != 0) {
        matrix_random(&p->a, seed);
        matrix_random(&p->b, seed);
    }
    if (g->beta[0] != 0)
        matrix_random(&p->c, seed);
}

static struct work *make_work(const struct level3 *l, const struct batch *batch, uint64_t seed)
{
    static struct work w;
    memset(&w, 0xff, sizeof w); /* NaN */
    w.a.used = w.b.used = w.c.used = 16;
    w.problems = 0;
    for (int64_t g = 0; g < batch->count; g++)
        for (int64_t i = 0; i < batch->group[g].size; i++)
            add_problem(&w, l, &batch->group[g], &seed);
    memcpy(w.c_before.bytes, w.c.bytes, ROOM);
    return &w;
}

/* Each element is right; then it is taken out, and the rest of the pile is as before. */
static void check(struct sweep *sweep, const struct level3 *l, const struct batch *batch,
                  struct work *w)
{
    bool rows = l->interface == ROWS;
    for (int p = 0; p < w->problems && batch->fate != ILLEGAL; p++) {
        struct problem *x = &w->problem[p];
        for (int64_t i = 0; i < x->gemm.m; i++)
            for (int64_t j = 0; j < x->gemm.n; j++) {
                struct wanted wanted =
                    product_element(&x->gemm, &x->a, &x->b, &x->before, i, j);
                if (!element_is_near(&x->c, rows, i, j, &wanted)) {
                    sweep_fail(sweep, l, batch->what);
                    return;
                }
            }
        matrix_fill(&x->c, 0, 0);
        matrix_fill(&x->before, 0, 0);
    }
    if (memcmp(w->c.bytes, w->c_before.bytes, ROOM) != 0) {
        sweep_fail(sweep, l, batch->what);
        sweep_fail(sweep, l, "bytes around C, or C of an illegal call, were written to");
    }
}

/* ---- the calls ---- */

struct group_arrays {
    int transa[MOST_GROUPS], transb[MOST_GROUPS];
    BLAS_INT m[MOST_GROUPS], n[MOST_GROUPS], k[MOST_GROUPS], size[MOST_GROUPS];
    BLAS_INT lda[MOST_GROUPS], ldb[MOST_GROUPS], ldc[MOST_GROUPS];
    _Alignas(16) unsigned char alpha[MOST_GROUPS * 16], beta[MOST_GROUPS * 16];
    const void *a[MOST_PROBLEMS], *b[MOST_PROBLEMS];
    void *c[MOST_PROBLEMS];
};

static void put_scalar(unsigned char *place, enum dtype dtype, const double x[2])
{
    float single[2] = {(float)x[0], (float)x[1]};
    if (is_single(dtype))
        memcpy(place, single, element_bytes(dtype));
    else
        memcpy(place, x, element_bytes(dtype));
}

static int64_t leading(bool rows, int64_t m, int64_t n, int64_t gap)
{
    int64_t length = rows ? n : m;
    return (length > 0 ? length : 1) + gap;
}

static void set_group(struct group_arrays *x, const struct level3 *l, const struct group *g,
                      int i)
{
    bool rows = l->interface == ROWS, na = is_n(g->transa), nb = is_n(g->transb);
    size_t element = element_bytes(l->dtype);
    x->transa[i] = g->spoilt == 't' ? 99 : flag_enum(g->transa, "NTC", 111);
    x->transb[i] = flag_enum(g->transb, "NTC", 111);
    x->m[i] = (BLAS_INT)(g->spoilt == 'm' ? -1 : g->m);
    x->n[i] = (BLAS_INT)g->n;
    x->k[i] = (BLAS_INT)g->k;
    x->size[i] = (BLAS_INT)g->size;
    x->lda[i] = (BLAS_INT)leading(rows, na ? g->m : g->k, na ? g->k : g->m, 2);
    x->ldb[i] = (BLAS_INT)leading(rows, nb ? g->k : g->n, nb ? g->n : g->k, 0);
    x->ldc[i] = (BLAS_INT)leading(rows, g->m, g->n, g->spoilt == 'c' ? -1 : 1);
    put_scalar(x->alpha + (size_t)i * element, l->dtype, g->alpha);
    put_scalar(x->beta + (size_t)i * element, l->dtype, g->beta);
}

static void call_batch(const struct level3 *l, const struct batch *batch, const struct work *w)
{
    struct group_arrays x;
    memset(&x, 0xff, sizeof x); /* what is not filled is not to be read */
    for (int g = 0; g < batch->count; g++)
        set_group(&x, l, &batch->group[g], g);
    for (int p = 0; p < w->problems; p++) {
        x.a[p] = w->problem[p].a.first;
        x.b[p] = w->problem[p].b.first;
        x.c[p] = w->problem[p].c.first;
    }
    ((void (*)(int, const int *, const int *, const BLAS_INT *, const BLAS_INT *,
               const BLAS_INT *, const void *, const void **, const BLAS_INT *, const void **,
               const BLAS_INT *, const void *, void **, const BLAS_INT *, BLAS_INT,
               const BLAS_INT *))level3_linked(BATCH, l->dtype, l->interface))(
        l->interface == ROWS ? 101 : 102, x.transa, x.transb, x.m, x.n, x.k, x.alpha, x.a, x.lda,
        x.b, x.ldb, x.beta, x.c, x.ldc, (BLAS_INT)batch->count, x.size);
}

#define CALL_STRIDED(type, alpha_argument, beta_argument)                                     \
    ((void (*)(int, int, int, BLAS_INT, BLAS_INT, BLAS_INT, type, const void *, BLAS_INT,     \
               BLAS_INT, const void *, BLAS_INT, BLAS_INT, type, void *, BLAS_INT, BLAS_INT,  \
               BLAS_INT))level3_linked(STRIDED, l->dtype, l->interface))(                     \
        l->interface == ROWS ? 101 : 102, x.transa[0], x.transb[0], x.m[0], x.n[0], x.k[0],   \
        alpha_argument, first->a.first, x.lda[0], stride(w, 'a'), first->b.first, x.ldb[0],   \
        stride(w, 'b'), beta_argument, first->c.first, x.ldc[0], stride(w, 'c'), x.size[0])

/* Elements from one problem's matrix to the next one's. */
static BLAS_INT stride(const struct work *w, char which)
{
    const struct problem *p = w->problem;
    const char *first = which == 'a' ? p->a.first : which == 'b' ? p->b.first : p->c.first;
    const char *next = first;
    if (w->problems > 1)
        next = which == 'a' ? p[1].a.first : which == 'b' ? p[1].b.first : p[1].c.first;
    return (BLAS_INT)((size_t)(next - first) / element_bytes(p->a.dtype));
}

static void call_strided(const struct level3 *l, const struct batch *batch, const struct work *w)
{
    struct group_arrays x;
    const struct problem *first = &w->problem[0];
    set_group(&x, l, &batch->group[0], 0);
    if (l->dtype == S)
        CALL_STRIDED(float, *(const float *)(const void *)x.alpha,
                     *(const float *)(const void *)x.beta);
    else if (l->dtype == D)
        CALL_STRIDED(double, *(const double *)(const void *)x.alpha,
                     *(const double *)(const void *)x.beta);
    else
        CALL_STRIDED(const void *, x.alpha, x.beta);
}

static bool is_empty(const struct group *g)
{
    return g->m * g->n * g->k == 0 || g->alpha[0] == 0;
}

static void run_batch(struct sweep *sweep, const struct level3 *l, const struct batch *batch)
{
    struct work *w = make_work(l, batch, sweep_seed(sweep));
    unsigned long *fates = sweep->fates[l->family][l->dtype];
    (l->family == BATCH ? call_batch : call_strided)(l, batch, w);
    check(sweep, l, batch, w);
    if (batch->fate != ON_DEVICE)
        fates[batch->fate]++;
    for (int64_t g = 0; batch->fate == ON_DEVICE && g < batch->count; g++)
        fates[is_empty(&batch->group[g]) ? EMPTY : ON_DEVICE] +=
            (unsigned long)batch->group[g].size;
}

void sweep_batches(struct sweep *sweep, enum family family, enum dtype dtype,
                   enum interface interface)
{
    struct level3 l = {.family = family, .dtype = dtype, .interface = interface};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        if (sweep->few && batches[i].fate == EMPTY)
            continue;
        else if ((family == BATCH || batches[i].count == 1) && sweep_wants_always(sweep))
            run_batch(sweep, &l, &batches[i]);
}
