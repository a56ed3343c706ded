/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of calls, and their arguments for each signature.
 */
#include <string.h>

#include "caller.h"

#define L 300, 200, 100
const struct kind kinds[] = {
    {"small", SMALL, 102, "LUNTN", 2, 3, 4, false, 0},
    {"large", LARGE, 102, "RLTNU", 3000, 2000, 1000, false, 0},
    {"large row-major", LARGE, 101, "LUCCN", 3000, 2000, 1000, false, 0},
#if RECORDER_BYTES == 8
    {"over 32 bits", LARGE, 102, "RUNNN", INT64_C(0x100000002), 1, 1, false, 'm'},
    {"over 32 bits, square", LARGE, 102, "LUNNN", 1, INT64_C(0x100000002), 1, false, '1'},
#endif
    {"k = 0", SMALL, 102, "luntn", 7, 5, 0, false, 'k'},
    {"no columns", SMALL, 102, "luntn", 7, 0, 3, false, 0},
    {"no rows", SMALL, 102, "rlntu", 0, 7, 3, false, 'm'},
    {"alpha 0", FORWARDED, 102, "LUNNN", L, true, 0},
    {"bad side", ILLEGAL, 102, "QUNNN", L, false, 'S'},
    {"bad uplo", ILLEGAL, 102, "LQNNN", L, false, 'P'},
    {"bad trans", ILLEGAL, 102, "LUQNN", L, false, 'T'},
    {"bad transb", ILLEGAL, 102, "LUNQN", L, false, 'U'},
    {"bad diag", ILLEGAL, 102, "LUNNQ", L, false, 'D'},
    {"bad layout", ILLEGAL, 100, "LUNNN", L, false, 'L'},
    {"negative m", ILLEGAL, 102, "RUNNN", -1, 200, 100, false, 'm'},
    {"two negatives", ILLEGAL, 102, "RUNNN", -300, -200, 100, false, 'm'},
    {"two other negatives", ILLEGAL, 102, "LUNNN", 300, -200, -100, false, 'k'},
    {"lda too small", ILLEGAL, 102, "LUNNN", L, false, 'A'},
    {"ldb too small", ILLEGAL, 102, "LUNTN", L, false, 'B'},
    {"ldc too small", ILLEGAL, 102, "LUNNN", L, false, 'C'},
    {"last leading dimension 0", ILLEGAL, 102, "LUNNN", L, false, '0'},
    {"conjugate only", FORWARDED, 102, "LURNN", L, false, 'T'},
};
const unsigned kind_count = sizeof kinds / sizeof kinds[0];

static const struct {
    const char *signature, *list;
} lists[] = {
    {"gemm", "TUmnk@aAbB+cC"},       {"symm", "SPmn@aAbB+cC"},
    {"syrk", "PTnk@aA+cC"},          {"herk", "PTnkraAqcC"},
    {"syr2k", "PTnk@aAbB+cC"},       {"her2k", "PTnk@aAbBqcC"},
    {"trmm", "SPTDmn@aAbB"},         {"gemmt", "PTUnk@aAbB+cC"},
    {"gemm_batch", "TUmnk@aAbB+cCgG"}, {"gemm_batch_strided", "TUmnk@aAxbBy+cCzw"},
};

const char *argument_list(const struct entry *entry)
{
    for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (strcmp(lists[i].signature, entry->signature) == 0)
            return lists[i].list;
    return NULL;
}

bool has_groups(const struct entry *entry)
{
    return strchr(argument_list(entry), 'g') != NULL;
}

static bool is_argument(const struct entry *entry, char letter)
{
    return strchr(argument_list(entry), letter) != NULL;
}

bool kind_applies(const struct entry *entry, const struct kind *kind)
{
    switch (kind->spoilt) {
    case 0: case '0': return true;
    case 'L': return entry->is_cblas;
    case '1': return !is_argument(entry, 'm');
    default: return is_argument(entry, kind->spoilt);
    }
}

/* ---- from a kind to arguments ---- */

/* An integer as this library reads it, in a slot of 8 bytes. */
static uint64_t slot(int64_t value)
{
    return RECORDER_BYTES == 8 ? (uint64_t)value : POISON | (uint32_t)value;
}

static uint64_t enum_of(char flag, const char *letters, uint64_t first)
{
    char upper = flag >= 'a' ? (char)(flag - 'a' + 'A') : flag;
    const char *found = upper != '\0' ? strchr(letters, upper) : NULL;
    return POISON | (found != NULL ? first + (uint64_t)(found - letters) : 99);
}

/* One letter counts; CHARACTER*8 holds more. */
static void fill_flag(char place[8], char flag, char rest)
{
    memset(place, rest, 8);
    place[0] = flag;
}

static void fill_scalar(unsigned char *bytes, unsigned size, bool zero, uint64_t pattern)
{
    memset(bytes, 0, 16);
    for (unsigned i = 0; i < size && !zero; i++)
        bytes[i] = (unsigned char)(pattern >> 8 * (i % 8));
}

struct shape {
    int64_t rows, cols;
};

static struct shape op_shape(char trans, int64_t rows, int64_t cols)
{
    bool is_n = trans == 'N' || trans == 'n' || trans == 'R';
    return is_n ? (struct shape){rows, cols} : (struct shape){cols, rows};
}

/* The matrices of a signature, as the BLAS standard has them. */
static void shapes_of(const struct entry *entry, const struct kind *kind, struct shape s[3])
{
    bool left = kind->flags[0] == 'L' || kind->flags[0] == 'l';
    int64_t m = kind->m, n = kind->n, k = kind->k;
    if (is_argument(entry, 'S')) { /* symm, trmm */
        s[0].rows = s[0].cols = left ? m : n;
        s[1] = s[2] = (struct shape){m, n};
        return;
    }
    if (!is_argument(entry, 'm')) /* one size: C is square */
        m = n;
    s[0] = op_shape(kind->flags[2], m, k);
    s[1] = is_argument(entry, 'U') ? op_shape(kind->flags[3], k, n) : s[0];
    s[2] = (struct shape){m, n};
}

static int64_t leading(const struct shape *s, int layout, int64_t extra)
{
    int64_t least = layout == 101 ? s->cols : s->rows;
    return (least > 1 ? least : 1) + extra;
}

static void fill_leading(const struct entry *entry, const struct kind *kind, struct arguments *x)
{
    struct shape s[3];
    int layout = entry->is_cblas ? kind->layout : 102;
    shapes_of(entry, kind, s);
    x->lda = slot(leading(&s[0], layout, kind->spoilt == 'A' ? -1 : 1));
    x->ldb = slot(leading(&s[1], layout, kind->spoilt == 'B' ? -1 : 2));
    x->ldc = slot(leading(&s[2], layout, kind->spoilt == 'C' ? -1 : 0));
    if (kind->spoilt == '0')
        *(is_argument(entry, 'C') ? &x->ldc : &x->ldb) = slot(0);
}

/* Updates of symmetric matrices transpose, those of Hermitian ones conjugate, too. */
static char legal_trans(const struct entry *entry, char flag)
{
    if (flag != 'T' && flag != 'C')
        return flag;
    bool hermitian = strncmp(entry->signature, "her", 3) == 0;
    bool symmetric = strncmp(entry->signature, "syr", 3) == 0;
    return hermitian ? 'C' : symmetric ? 'T' : flag;
}

static void fill_flags(const struct entry *entry, const struct kind *kind, struct arguments *x)
{
    char trans = legal_trans(entry, kind->flags[2]);
    fill_flag(x->side, kind->flags[0], 'v');
    fill_flag(x->uplo, kind->flags[1], 'w');
    fill_flag(x->transa, trans, 'x');
    fill_flag(x->transb, kind->flags[3], 'y');
    fill_flag(x->diag, kind->flags[4], 'z');
    x->enum_side = enum_of(kind->flags[0], "LR", 141);
    x->enum_uplo = enum_of(kind->flags[1], "UL", 121);
    x->enum_a = enum_of(trans, "NTCR", 111);
    x->enum_b = enum_of(kind->flags[3], "NTCR", 111);
    x->enum_diag = enum_of(kind->flags[4], "NU", 131);
}

struct arguments arguments_for(const struct entry *entry, const struct kind *kind)
{
    /* A batch that is decided goes on one by one; of one it arrives as it came. */
    int64_t batch = kind->fate == LARGE || kind->fate == FORWARDED ? 1 : 3;
    struct arguments x = {
        .layout = POISON | (uint32_t)kind->layout,
        .m = slot(kind->m), .n = slot(kind->n), .k = slot(kind->k),
        .stride_a = slot(1001), .stride_b = slot(1002), .stride_c = slot(1003),
        .batch = slot(batch), .groups = slot(1),
        /* Addresses that nobody can read: a forwarded call's arrays are not touched. */
        .a = (void *)(uintptr_t)UINT64_C(0x1a5a000000000a08),
        .b = (void *)(uintptr_t)UINT64_C(0x2b6b000000000b10),
        .c = (void *)(uintptr_t)UINT64_C(0x3c7c000000000c18),
    };
    bool single = entry->real_bytes == 4;
    fill_flags(entry, kind, &x);
    fill_leading(entry, kind, &x);
    /* Signalling NaNs with a payload, which any arithmetic or conversion would change. */
    fill_scalar(x.alpha, entry->element_bytes, kind->alpha_is_zero,
                single ? UINT64_C(0x7f80abcd7f812345) : UINT64_C(0x7ff0123456789abc));
    fill_scalar(x.beta, entry->element_bytes, false,
                single ? UINT64_C(0xff8054327f8a9876) : UINT64_C(0xfff4fedcba987654));
    return x;
}

/* ---- what must arrive ---- */

static uint64_t address(const volatile void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static bool is_flag(char letter)
{
    return strchr("SPTUD", letter) != NULL;
}

static const char *flag_of(const struct arguments *x, char letter)
{
    return letter == 'S' ? x->side : letter == 'P' ? x->uplo : letter == 'T' ? x->transa
           : letter == 'U' ? x->transb : x->diag;
}

static const uint64_t *slot_of(const struct arguments *x, char letter)
{
    switch (letter) {
    case 'S': return &x->enum_side;
    case 'P': return &x->enum_uplo;
    case 'T': return &x->enum_a;
    case 'U': return &x->enum_b;
    case 'D': return &x->enum_diag;
    case 'm': return &x->m;
    case 'n': return &x->n;
    case 'k': return &x->k;
    case 'A': return &x->lda;
    case 'B': return &x->ldb;
    case 'C': return &x->ldc;
    case 'x': return &x->stride_a;
    case 'y': return &x->stride_b;
    case 'z': return &x->stride_c;
    case 'g': return &x->groups;
    default: return &x->batch;
    }
}

static void *const *matrix_of(const struct arguments *x, char letter)
{
    return letter == 'a' ? &x->a : letter == 'b' ? &x->b : letter == 'c' ? &x->c : NULL;
}

static const unsigned char *scalar_of(const struct arguments *x, char letter)
{
    return letter == '@' || letter == 'r' ? x->alpha : letter == '+' || letter == 'q' ? x->beta
                                                                                   : NULL;
}

static void expect_scalar(const struct entry *entry, const unsigned char *scalar, bool real,
                          struct recorder_call *e)
{
    if (real || entry->element_bytes == entry->real_bytes)
        memcpy(&e->value[e->values++], scalar, entry->real_bytes);
    else
        e->slot[e->slots++] = address(scalar);
}

static uint64_t by_address(const struct arguments *x, char letter, bool letters)
{
    if (scalar_of(x, letter) != NULL)
        return address(scalar_of(x, letter));
    if (matrix_of(x, letter) != NULL)
        return letters ? address(*matrix_of(x, letter)) : address(matrix_of(x, letter));
    return is_flag(letter) && letters ? address(flag_of(x, letter)) : address(slot_of(x, letter));
}

struct recorder_call expected_call(const struct entry *entry, const struct arguments *x)
{
    struct recorder_call e = {.slots = 0};
    const char *list = argument_list(entry);
    if (entry->is_cblas)
        e.slot[e.slots++] = (uint32_t)x->layout;
    for (const char *at = list; *at != '\0'; at++)
        if (!entry->is_cblas || (has_groups(entry) && *at != 'g'))
            e.slot[e.slots++] = by_address(x, *at, !entry->is_cblas);
        else if (scalar_of(x, *at) != NULL)
            expect_scalar(entry, scalar_of(x, *at), *at == 'r' || *at == 'q', &e);
        else if (matrix_of(x, *at) != NULL)
            e.slot[e.slots++] = address(*matrix_of(x, *at));
        else
            e.slot[e.slots++] = is_flag(*at) ? (uint32_t)*slot_of(x, *at) : *slot_of(x, *at);
    for (unsigned i = 0; i < length_count(entry); i++)
        e.slot[e.slots++] = LENGTH(i);
    return e;
}

unsigned length_count(const struct entry *entry)
{
    unsigned count = 0;
    for (const char *at = argument_list(entry); !entry->is_cblas && *at != '\0'; at++)
        count += is_flag(*at);
    return count;
}
