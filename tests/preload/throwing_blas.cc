// SPDX-License-Identifier: Apache-2.0
//
// A BLAS that throws a C++ exception at an illegal lda, as a checked wrapper would.
#include <stdexcept>

#define _Static_assert static_assert
#include "own_blas.h"

extern "C" {

OWN_BLAS_EXPORT void dgemm_(OWN_BLAS_PARAMETERS(double));

OWN_BLAS_ISAMAX

OWN_BLAS_EXPORT void dgemm_(OWN_BLAS_PARAMETERS(double))
{
    if (*lda < *m)
        throw std::invalid_argument("lda");
    OWN_BLAS_PRODUCT();
}

}
