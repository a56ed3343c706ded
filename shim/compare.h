/* SPDX-License-Identifier: Apache-2.0
 *
 * How far two results of one call may lie apart: the sum of their rounding errors.
 */
#pragma once

#include "call.h"

/* Largest |real or imaginary part| of an operand's elements. */
double gs_largest(const struct gs_call *call, const struct gs_operand *x);

/* Compares the outputs of call (computed by the CPU) with those of other (the same call with
 * private outputs, computed by the GPU). largest_output: gs_largest of the output before the call,
 * which beta multiplies. Returns the largest difference over its bound: at most 1 when both are
 * rounded correctly, infinite where only one of them is NaN, NaN when there is no memory to tell.
 *
 * Products: each side is within (k + 2) eps (|alpha| |x_i| |y_j| + |beta| |c|) of the exact
 * element, with the 2-norms of row i and column j of the factors (Higham, Accuracy and Stability
 * of Numerical Algorithms, 2nd ed., 3.5, and Cauchy-Schwarz). Complex arithmetic adds a factor
 * below 4. Triangular solves: |op(A) d| <= 2 (k + 2) eps |op(A)| (|x| + |y|) for the difference d
 * of two computed solutions (8.1 there), on at most 64 right-hand sides. */
double gs_compare(const struct gs_call *call, const struct gs_call *other,
                  double largest_output);
