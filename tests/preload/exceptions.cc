// SPDX-License-Identifier: Apache-2.0
//
// Exceptions from a BLAS cross the preload and are caught; later calls are decided as usual.
#include <cstdint>
#include <stdexcept>
#include <vector>

extern "C" void dgemm_(const char *, const char *, const int32_t *, const int32_t *,
                       const int32_t *, const double *, const double *, const int32_t *,
                       const double *, const int32_t *, const double *, double *,
                       const int32_t *, size_t, size_t);

static double corner(int32_t size, int32_t lda)
{
    std::vector<double> a(size * size, 1), b(size * size, 2), c(size * size, 5);
    double one = 1, zero = 0;
    dgemm_("N", "N", &size, &size, &size, &one, a.data(), &lda, b.data(), &size, &zero, c.data(),
           &size, 1, 1);
    return c[size * size - 1];
}

int main()
{
    int caught = 0, wrong = 0;
    for (int i = 0; i < 25; i++) {
        try {
            corner(300, 299);
        } catch (const std::invalid_argument &) {
            caught++;
        }
        wrong += corner(40, 40) != 80;
    }
    return wrong != 0 || caught != 25;
}
