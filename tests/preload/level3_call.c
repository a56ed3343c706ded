/* SPDX-License-Identifier: Apache-2.0 */
#include "level3_call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const family_names[FAMILIES] = {
    "gemm3m", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "trmm", "trsm", "gemmt",
    "gemmtr", "gemm_batch", "gemm_batch_strided"};

const char *routine_name(char *name, enum family family, enum dtype dtype)
{
    snprintf(name, 40, "%c%s", "sdcz"[dtype], family_names[family]);
    return name;
}

const char *entry_name(char *name, enum family family, enum dtype dtype, enum interface interface)
{
    char routine[40];
    routine_name(routine, family, dtype);
    snprintf(name, 40, interface == F77 ? "%.38s_" : "cblas_%.32s", routine);
    return name;
}

static gemm_function look_up(void *where, const char *name)
{
    gemm_function function = (gemm_function)dlsym(where, name);
    if (function == NULL) {
        fprintf(stderr, "%s is not there\n", name);
        exit(2);
    }
    return function;
}

gemm_function level3_linked(enum family family, enum dtype dtype, enum interface interface)
{
    static gemm_function known[FAMILIES][DTYPES][2];
    gemm_function *function = &known[family][dtype][interface != F77];
    char name[40];
    if (*function == NULL)
        *function = look_up(RTLD_DEFAULT, entry_name(name, family, dtype, interface));
    return *function;
}

gemm_function level3_original(enum family family, enum dtype dtype, enum interface interface)
{
    char name[40];
    void *library = dlopen(DRIVER_BLAS, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) {
        fprintf(stderr, DRIVER_BLAS " is not loaded\n");
        exit(2);
    }
    return look_up(library, entry_name(name, family, dtype, interface));
}

int flag_enum(char flag, const char *letters, int first)
{
    char upper = flag >= 'a' ? (char)(flag - 'a' + 'A') : flag;
    const char *found = upper != '\0' ? strchr(letters, upper) : NULL;
    return found != NULL ? first + (int)(found - letters) : 99;
}

/* ---- Fortran ---- */

typedef const char *flag_t;
typedef const BLAS_INT *int_t;
typedef const void *in_t;

static void call_f77(const struct level3 *l, gemm_function f, in_t alpha, in_t beta)
{
    BLAS_INT m = (BLAS_INT)l->m, n = (BLAS_INT)l->n, k = (BLAS_INT)l->k;
    BLAS_INT lda = (BLAS_INT)l->lda, ldb = (BLAS_INT)l->ldb, ldc = (BLAS_INT)l->ldc;
    switch (l->family) {
    case GEMM3M:
        ((void (*)(flag_t, flag_t, int_t, int_t, int_t, in_t, in_t, int_t, in_t, int_t, in_t,
                   void *, int_t, size_t, size_t))f)(&l->transa, &l->transb, &m, &n, &k, alpha,
                                                     l->a, &lda, l->b, &ldb, beta, l->c, &ldc, 1,
                                                     1);
        break;
    case SYMM: case HEMM:
        ((void (*)(flag_t, flag_t, int_t, int_t, in_t, in_t, int_t, in_t, int_t, in_t, void *,
                   int_t, size_t, size_t))f)(&l->side, &l->uplo, &m, &n, alpha, l->a, &lda, l->b,
                                             &ldb, beta, l->c, &ldc, 1, 1);
        break;
    case SYRK: case HERK:
        ((void (*)(flag_t, flag_t, int_t, int_t, in_t, in_t, int_t, in_t, void *, int_t, size_t,
                   size_t))f)(&l->uplo, &l->transa, &n, &k, alpha, l->a, &lda, beta, l->c, &ldc,
                              1, 1);
        break;
    case SYR2K: case HER2K:
        ((void (*)(flag_t, flag_t, int_t, int_t, in_t, in_t, int_t, in_t, int_t, in_t, void *,
                   int_t, size_t, size_t))f)(&l->uplo, &l->transa, &n, &k, alpha, l->a, &lda,
                                             l->b, &ldb, beta, l->c, &ldc, 1, 1);
        break;
    case TRMM: case TRSM:
        ((void (*)(flag_t, flag_t, flag_t, flag_t, int_t, int_t, in_t, in_t, int_t, void *, int_t,
                   size_t, size_t, size_t, size_t))f)(&l->side, &l->uplo, &l->transa, &l->diag,
                                                      &m, &n, alpha, l->a, &lda, l->c, &ldc, 1, 1,
                                                      1, 1);
        break;
    default:
        ((void (*)(flag_t, flag_t, flag_t, int_t, int_t, in_t, in_t, int_t, in_t, int_t, in_t,
                   void *, int_t, size_t, size_t, size_t))f)(
            &l->uplo, &l->transa, &l->transb, &n, &k, alpha, l->a, &lda, l->b, &ldb, beta, l->c,
            &ldc, 1, 1, 1);
    }
}

/* ---- CBLAS ---- */

struct enums {
    int layout, side, uplo, transa, transb, diag;
};

#define INTS(x) ((BLAS_INT)l->x)
#define CALL_GEMM(first, second)                                                              \
    ((void (*)(int, int, int, BLAS_INT, BLAS_INT, BLAS_INT, first, in_t, BLAS_INT, in_t,      \
               BLAS_INT, second, void *, BLAS_INT))f)(                                        \
        e->layout, e->transa, e->transb, INTS(m), INTS(n), INTS(k), SCALAR(first, alpha), l->a, \
        INTS(lda), l->b, INTS(ldb), SCALAR(second, beta), l->c, INTS(ldc))
#define CALL_SYMM(first, second)                                                              \
    ((void (*)(int, int, int, BLAS_INT, BLAS_INT, first, in_t, BLAS_INT, in_t, BLAS_INT,      \
               second, void *, BLAS_INT))f)(e->layout, e->side, e->uplo, INTS(m), INTS(n),    \
                                            SCALAR(first, alpha), l->a, INTS(lda), l->b,      \
                                            INTS(ldb), SCALAR(second, beta), l->c, INTS(ldc))
#define CALL_RANK_K(first, second)                                                            \
    ((void (*)(int, int, int, BLAS_INT, BLAS_INT, first, in_t, BLAS_INT, second, void *,      \
               BLAS_INT))f)(e->layout, e->uplo, e->transa, INTS(n), INTS(k),                  \
                            SCALAR(first, alpha), l->a, INTS(lda), SCALAR(second, beta), l->c, \
                            INTS(ldc))
#define CALL_RANK_2K(first, second)                                                           \
    ((void (*)(int, int, int, BLAS_INT, BLAS_INT, first, in_t, BLAS_INT, in_t, BLAS_INT,      \
               second, void *, BLAS_INT))f)(e->layout, e->uplo, e->transa, INTS(n), INTS(k),  \
                                            SCALAR(first, alpha), l->a, INTS(lda), l->b,      \
                                            INTS(ldb), SCALAR(second, beta), l->c, INTS(ldc))
#define CALL_TRMM(first, second)                                                              \
    ((void (*)(int, int, int, int, int, BLAS_INT, BLAS_INT, first, in_t, BLAS_INT, void *,    \
               BLAS_INT))f)(e->layout, e->side, e->uplo, e->transa, e->diag, INTS(m), INTS(n), \
                            SCALAR(first, alpha), l->a, INTS(lda), l->c, INTS(ldc))
#define CALL_GEMMT(first, second)                                                             \
    ((void (*)(int, int, int, int, BLAS_INT, BLAS_INT, first, in_t, BLAS_INT, in_t, BLAS_INT, \
               second, void *, BLAS_INT))f)(                                                  \
        e->layout, e->uplo, e->transa, e->transb, INTS(n), INTS(k), SCALAR(first, alpha), l->a, \
        INTS(lda), l->b, INTS(ldb), SCALAR(second, beta), l->c, INTS(ldc))

/* By value where the type is one, the address itself where it is in_t. */
#define SCALAR(type, place) SCALAR_##type(place)
#define SCALAR_float(place) (*(const float *)place)
#define SCALAR_double(place) (*(const double *)place)
#define SCALAR_in_t(place) (place)

#define IN_TYPE(call)                                                                         \
    do {                                                                                      \
        if (l->dtype == S)                                                                    \
            call(float, float);                                                               \
        else if (l->dtype == D)                                                               \
            call(double, double);                                                             \
        else                                                                                  \
            call(in_t, in_t);                                                                 \
    } while (0)
#define IN_COMPLEX(call, single_first, single_second, double_first, double_second)            \
    do {                                                                                      \
        if (l->dtype == C)                                                                    \
            call(single_first, single_second);                                                \
        else                                                                                  \
            call(double_first, double_second);                                                \
    } while (0)

static void call_cblas(const struct level3 *l, gemm_function f, in_t alpha, in_t beta,
                       const struct enums *e)
{
    switch (l->family) {
    case GEMM3M: IN_TYPE(CALL_GEMM); break;
    case SYMM: case HEMM: IN_TYPE(CALL_SYMM); break;
    case SYRK: IN_TYPE(CALL_RANK_K); break;
    case HERK: IN_COMPLEX(CALL_RANK_K, float, float, double, double); break;
    case SYR2K: IN_TYPE(CALL_RANK_2K); break;
    case HER2K: IN_COMPLEX(CALL_RANK_2K, in_t, float, in_t, double); break;
    case TRMM: case TRSM: IN_TYPE(CALL_TRMM); break;
    default: IN_TYPE(CALL_GEMMT);
    }
}

void level3_call(const struct level3 *l, gemm_function function)
{
    float alpha_f[2] = {(float)l->alpha[0], (float)l->alpha[1]};
    float beta_f[2] = {(float)l->beta[0], (float)l->beta[1]};
    bool single = is_single(l->dtype);
    const void *alpha = single ? (const void *)alpha_f : l->alpha;
    const void *beta = single ? (const void *)beta_f : l->beta;
    const struct enums enums = {
        .layout = l->layout != 0 ? l->layout : l->interface == ROWS ? 101 : 102,
        .side = flag_enum(l->side, "LR", 141),
        .uplo = flag_enum(l->uplo, "UL", 121),
        .transa = flag_enum(l->transa, "NTC", 111),
        .transb = flag_enum(l->transb, "NTC", 111),
        .diag = flag_enum(l->diag, "NU", 131),
    };
    if (l->interface == F77)
        call_f77(l, function, alpha, beta);
    else
        call_cblas(l, function, alpha, beta, &enums);
}
