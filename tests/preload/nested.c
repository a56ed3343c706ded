/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of a BLAS whose dgemm_ calls sgemm_ three times: one where C overlaps A, which no device
 * may take, and two others.
 */
#include "product.h"

int main(void)
{
    enum { N = 60 };
    static double x[2 * N * N], y[N * N];
    BLAS_INT n = N;
    double one = 1, half = .5;
    for (int i = 0; i < N * N; i++)
        x[i] = 0, y[i] = 1;
    dgemm_("N", "N", &n, &n, &n, &one, x, &n, y, &n, &half, x, &n, 1, 1);
    return x[0] != 0 || product(150, 0) != 0 || product(150, 1) != 0;
}
