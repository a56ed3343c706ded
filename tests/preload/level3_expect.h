/* SPDX-License-Identifier: Apache-2.0
 *
 * What a level-3 call must leave in C: plain sums in long double, from the definition of each
 * routine in terms of rows and columns, so that no layout, side or flag is ever flipped here.
 */
#pragma once

#include "gemm_data.h"
#include "level3_call.h"

/* The matrices of a call; before: C before the call, in memory of its own. */
struct operands {
    struct matrix a, b, c, before;
};

/* Rows and columns of A, B and C as the interface sees them. */
struct shapes {
    int64_t a_rows, a_cols, b_rows, b_cols, c_rows, c_cols;
};
struct shapes level3_shapes(const struct level3 *l);

/* Whether C(i, j) belongs to what the call writes. */
bool is_written(const struct level3 *l, int64_t i, int64_t j);

/* Whether the call must leave C alone: beta is 1, and nothing is added. */
bool is_quick_return(const struct level3 *l);

/* What is wrong with element (i, j) of C, or NULL. Products are within (terms + 2) eps times the
 * sum of the terms' sizes of the exact value; solutions leave a residual within that bound. */
const char *level3_objection(const struct level3 *l, const struct operands *x, int64_t i,
                             int64_t j);
