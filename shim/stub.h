/* SPDX-License-Identifier: Apache-2.0
 *
 * What every entry stub does before and after the decision, inline: find the original, keep the
 * guard, count the calls that are too small to look at. No lock, clock, system call or allocation
 * here, and no cache line that another thread writes.
 */
#pragma once

#include "call.h"
#include "dispatch.h"
#include "originals.h"
#include "thread.h"

#define GS_EXPORT __attribute__((visibility("default")))

/* Calls the original through the stub's own prototype, so that it is never written twice. */
#define GS_ORIGINAL(name, site) ((__typeof__(&name))(site)->original)

enum { GS_ROW_MAJOR = 101, GS_COL_MAJOR = 102, GS_SIDE_LEFT = 141 };

/* From CBLAS enumerations to Fortran letters; '?' is illegal everywhere. */
static inline char gs_side_letter(int side)
{
    return side == GS_SIDE_LEFT ? 'L' : side == 142 ? 'R' : '?';
}

static inline char gs_uplo_letter(int uplo)
{
    return uplo == 121 ? 'U' : uplo == 122 ? 'L' : '?';
}

static inline char gs_diag_letter(int diag)
{
    return diag == 131 ? 'N' : diag == 132 ? 'U' : '?';
}

/* What a flag becomes when a row-major matrix is read as its column-major transpose. */
static inline char gs_flip_side(char side)
{
    return side == 'L' ? 'R' : side == 'R' ? 'L' : side;
}

static inline char gs_flip_uplo(char uplo)
{
    return uplo == 'U' ? 'L' : uplo == 'L' ? 'U' : uplo;
}

/* For symmetric updates: ConjTrans means Trans for real types and is illegal for complex ones. */
static inline char gs_flip_trans(char trans, gs_dtype dtype)
{
    if (trans == 'N')
        return 'T';
    return trans == 'T' || (trans == 'C' && !gs_is_complex(dtype)) ? 'N' : trans;
}

/* For Hermitian updates, where Trans is illegal. */
static inline char gs_flip_conj(char trans)
{
    return trans == 'N' ? 'C' : trans == 'C' ? 'N' : trans;
}

/* Work of a product with a square matrix from the left (m x m) or the right (n x n). */
static inline double gs_sided_work(bool left, int64_t m, int64_t n)
{
    return (double)m * (double)n * (double)(left ? m : n);
}

/* Work of a rank-k update of one triangle of an n x n matrix. */
static inline double gs_rank_k_work(int64_t n, int64_t k)
{
    return (double)n * (double)n * (double)k / 2;
}

/* CblasNoTrans, CblasTrans, CblasConjTrans, CblasConjNoTrans; anything else is no flag. */
static inline char gs_trans_letter(int trans)
{
    return trans == 111 ? 'N' : trans == 112 ? 'T' : trans == 113 ? 'C' : trans == 114 ? 'R' : '?';
}

/* An illegal layout makes the call illegal, whatever else was found. */
static inline void gs_check_layout(struct gs_call *call, int layout)
{
    if (layout != GS_ROW_MAJOR && layout != GS_COL_MAJOR)
        call->objection = GS_BAD_ARGUMENT;
}

/* An integer argument of a Fortran stub, in the width the CPU library was found to have. */
static inline int64_t gs_load_int(const struct gs_site *site, const void *value)
{
    return site->int_bytes == 8 ? *(const int64_t *)value : *(const int32_t *)value;
}

/* An integer argument of a CBLAS stub. */
static inline int64_t gs_value_int(const struct gs_site *site, int64_t value)
{
    return site->int_bytes == 8 ? value : (int32_t)value;
}

/* Element i of an array of integers of the CPU library's width: its address, its value. */
static inline const void *gs_place_of(const struct gs_site *site, const void *array, int64_t i)
{
    return (const char *)array + i * site->int_bytes;
}

static inline int64_t gs_int_at(const struct gs_site *site, const void *array, int64_t i)
{
    return gs_load_int(site, gs_place_of(site, array, i));
}

/* Work of the largest product of a batch; 0 when it has none. */
static inline double gs_largest_work(const struct gs_site *site, int64_t groups,
                                     const void *group_size, const void *m, const void *n,
                                     const void *k)
{
    double largest = 0;
    for (int64_t g = 0; g < groups; g++) {
        if (gs_int_at(site, group_size, g) == 0)
            continue;
        double work = (double)gs_int_at(site, m, g) * (double)gs_int_at(site, n, g) *
                      (double)gs_int_at(site, k, g);
        largest = work > largest ? work : largest;
    }
    return largest;
}

/* Opens the frame of a call. Nested calls (made by a CPU library inside a call that is already
 * handled) keep the outer guard. */
static inline const struct gs_site *gs_enter(struct gs_frame *frame, unsigned entry,
                                             const void *return_address)
{
    const struct gs_site *site = gs_site_find(entry, return_address);
    gs_frame_open(frame, site->from_library);
    return site;
}

/* Whether the call is looked at; otherwise it has been counted and goes to the original. */
static inline bool gs_is_decided(const struct gs_frame *frame, unsigned routine, double work)
{
    if (!gs_active)
        return false;
    double floor;
    __atomic_load(&gs_floor_work[routine], &floor, __ATOMIC_RELAXED);
    if (!frame->nested && work > floor)
        return true;
    gs_count_small(routine, frame->nested ? GS_COUNT_NESTED
                            : work == 0   ? GS_COUNT_EMPTY
                                          : GS_COUNT_SMALL);
    return false;
}

/* Closes the frame after the original has returned; attempt is NULL where nothing was decided. */
static inline void gs_leave(struct gs_frame *frame, struct gs_attempt *attempt)
{
    if (__builtin_expect(attempt != NULL, 0))
        gs_dispatch_done(attempt);
    gs_frame_close(frame);
}
