/* SPDX-License-Identifier: Apache-2.0
 *
 * Another preload that wraps dgemm_: counts its calls and goes on to the next definition.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "own_blas.h"

OWN_BLAS_EXPORT int wrap_calls;
OWN_BLAS_EXPORT void dgemm_(OWN_BLAS_PARAMETERS(double));

OWN_BLAS_EXPORT void dgemm_(OWN_BLAS_PARAMETERS(double))
{
    void (*next)(OWN_BLAS_PARAMETERS(double)) = (__typeof__(next))dlsym(RTLD_NEXT, "dgemm_");
    wrap_calls++;
    next(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, transa_len, transb_len);
}
