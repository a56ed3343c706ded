/* SPDX-License-Identifier: Apache-2.0
 *
 * One call as caller.c makes it, and what must arrive for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "recorder.h"

/* A kind of call, for any signature. Sizes are what the library of this width is to see. */
struct kind {
    const char *what;
    enum {
        SMALL,                     /* counted, passed on */
        LARGE,                     /* a device may take it */
        FORWARDED,                 /* decided, but no mode may take it to a device */
        ILLEGAL,
    } fate;
    int layout;                    /* CBLAS only */
    const char *flags;             /* side, uplo, transa, transb, diag; those that there are */
    int64_t m, n, k;
    bool alpha_is_zero;
    char spoilt;                   /* what is illegal: see arguments_for */
};

/* Arguments of one call. Integers lie in 64-bit slots whose upper halves are poisoned where the
 * library reads only 32 bits. */
struct arguments {
    char side[8], uplo[8], transa[8], transb[8], diag[8];
    uint64_t layout, enum_side, enum_uplo, enum_a, enum_b, enum_diag;
    uint64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch, groups;
    _Alignas(16) unsigned char alpha[16], beta[16];
    void *a, *b, *c;
};

/* One exported name. */
struct entry {
    const char *name;
    const char *signature;         /* as in shim/operations.inc */
    bool is_cblas;
    unsigned element_bytes;        /* 4 8 8 16 */
    unsigned real_bytes;           /* 4 8 4 8 */
    void (*call)(const struct arguments *arguments);
    void (*function)(void);
};

extern const struct entry entries[];
extern const unsigned entry_count;

extern const struct kind kinds[];
extern const unsigned kind_count;

/* Hidden lengths: which of them an argument is can be told. */
#define LENGTH(i) (UINT64_C(0x1111111111111111) * ((i) + 1))
#define POISON UINT64_C(0xdeadbeef00000000)

/* The arguments of a signature in order, one letter each: S side, P uplo, T transa, U transb,
 * D diag; m n k; @ alpha, r a real alpha, + beta, q a real beta; a b c and their leading
 * dimensions A B C; x y z strides, w their batch size; g group count, G group sizes. */
const char *argument_list(const struct entry *entry);

/* Whether the arguments of CBLAS are arrays with an element for each group. */
bool has_groups(const struct entry *entry);

/* Whether this kind exists for the signature: what it spoils must be an argument of it. */
bool kind_applies(const struct entry *entry, const struct kind *kind);

struct arguments arguments_for(const struct entry *entry, const struct kind *kind);

/* What must arrive. Holds addresses inside x: x must stay where it is. */
struct recorder_call expected_call(const struct entry *entry, const struct arguments *x);

/* Number of hidden lengths at the end of a Fortran call. */
unsigned length_count(const struct entry *entry);
