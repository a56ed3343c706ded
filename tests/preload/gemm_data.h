/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices for the gemm driver, each ending exactly at a page that nobody may touch, with gaps and
 * surroundings whose bytes are known; and the plain product they are compared with.
 */
#pragma once

#include "gemm_call.h"

/* A matrix of the interface's layout: lines (columns, or rows in row-major) of length elements,
 * one every ld elements. */
struct matrix {
    enum dtype dtype;
    int64_t lines, length, ld;
    void *first;
};

/* A stretch of memory whose end is followed by a page without access. */
struct arena {
    unsigned char *bytes;
    size_t size;
};

struct arena arena_make(size_t size);

/* Places the matrix so that its last element is the last of the arena, and gives every byte
 * before it and in its gaps the value 0xff (NaN, so that reading a gap shows). */
struct matrix matrix_place(const struct arena *arena, enum dtype dtype, bool row_major,
                           int64_t rows, int64_t cols, int64_t extra_ld);

/* Whether all bytes outside the elements are still as they were placed. */
bool matrix_surroundings_intact(const struct arena *arena, const struct matrix *x);

/* Size of what matrix_place touches, for copies of the whole. */
size_t matrix_span(const struct matrix *x);

void matrix_random(const struct matrix *x, uint64_t *seed);
void matrix_fill(const struct matrix *x, double re, double im);
/* NaN and Inf by turns. */
void matrix_spoil(const struct matrix *x);

/* Element (row, column) of the matrix as the interface sees it. */
void matrix_get(const struct matrix *x, bool row_major, int64_t row, int64_t column,
                long double value[2]);
void matrix_set(const struct matrix *x, bool row_major, int64_t row, int64_t column, double re,
                double im);

double random_unit(uint64_t *seed); /* in [-1, 1) */

/* One element of the exact result and how far a library may be from it: (k + 2) eps
 * (|alpha| |A| |B| + |beta| |C|), elementwise. A complex product of k terms is two real ones of
 * 2 k. c_before is read only where beta is not 0. */
struct wanted {
    long double value[2], bound;
};
struct wanted product_element(const struct gemm *g, const struct matrix *a,
                              const struct matrix *b, const struct matrix *c_before, int64_t i,
                              int64_t j);

/* Whether the element is within its bound; a NaN never is. */
bool element_is_near(const struct matrix *c, bool row_major, int64_t i, int64_t j,
                     const struct wanted *wanted);
