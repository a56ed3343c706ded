/* SPDX-License-Identifier: Apache-2.0
 *
 * Two libraries of one name: the one that missing is linked with has the function (WHOLE), the one
 * that it finds when it runs has not.
 */
#include "own_blas.h"

#ifdef WHOLE
OWN_BLAS_EXPORT void scipy_dgemm_64_(void);
OWN_BLAS_EXPORT void scipy_dgemm_64_(void)
{
}
#endif

OWN_BLAS_EXPORT int missing_blas_is_loaded;
