/* SPDX-License-Identifier: Apache-2.0
 *
 * A BLAS whose dgemm_ calls its own sgemm_, as Debian's LAPACK calls its own BLAS: through the
 * symbol, so that the calls come back through a preload.
 */
#include "own_blas.h"

OWN_BLAS_EXPORT void dgemm_(OWN_BLAS_PARAMETERS(double));
OWN_BLAS_EXPORT void sgemm_(OWN_BLAS_PARAMETERS(float));

OWN_BLAS_ISAMAX

OWN_BLAS_EXPORT void sgemm_(OWN_BLAS_PARAMETERS(float))
{
    OWN_BLAS_PRODUCT();
}

OWN_BLAS_EXPORT void dgemm_(OWN_BLAS_PARAMETERS(double))
{
    static float x[100 * 100], y[100 * 100], z[100 * 100];
    const float one = 1, zero = 0;
    const int32_t size = 100;
    for (int i = 0; i < 3; i++)
        sgemm_("N", "N", &size, &size, &size, &one, x, &size, y, &size, &zero, z, &size, 1, 1);
    OWN_BLAS_PRODUCT();
}
