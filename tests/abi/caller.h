/* SPDX-License-Identifier: Apache-2.0
 *
 * One gemm call as caller.c makes it, and what must arrive for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A kind of call. Sizes are what the library of this width is to see; forwarded says that no
 * mode may take the call to a device. */
struct gemm_case {
    const char *what;
    bool forwarded;
    int layout;                    /* CBLAS only */
    int transa, transb;            /* letters; CBLAS gets 111 for 'N' and so on, 'Q' as 119 */
    int64_t m, n, k, lda, ldb, ldc;
    bool alpha_is_zero;
};

/* Arguments of one call. Integers lie in 64-bit slots whose upper halves are poisoned where the
 * library reads only 32 bits. */
struct gemm_arguments {
    char transa[8], transb[8];
    uint64_t layout, enum_a, enum_b;
    uint64_t m, n, k, lda, ldb, ldc;
    _Alignas(16) unsigned char alpha[16], beta[16];
    void *a, *b, *c;
};

/* One exported name. */
struct entry {
    const char *name;
    bool is_cblas;
    unsigned element_bytes;        /* of a scalar: 4 8 8 16 */
    bool by_value;                 /* CBLAS scalars of s and d */
    void (*call)(const struct gemm_arguments *arguments);
    void (*function)(void);
};

extern const struct entry entries[];
extern const unsigned entry_count;

#define FIRST_LENGTH UINT64_C(0x1111111111111111)
#define SECOND_LENGTH UINT64_C(0x2222222222222222)
#define POISON UINT64_C(0xdeadbeef00000000)
