/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin with a BLAS of its own, as extension modules of Python have: both are opened
 * RTLD_LOCAL.
 */
#include "gemm_call.h"
#include "product.h"

__attribute__((visibility("default"))) int plugin_product(int n, int seed);

int plugin_product(int n, int seed)
{
    double *c = calloc((size_t)n * (size_t)n, 3 * sizeof *c), *a = c + n * n, *b = a + n * n;
    struct gemm g = {.dtype = D, .interface = COLUMNS, .transa = 'N', .transb = 'N', .m = n,
                     .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .alpha = {1}, .a = a, .b = b,
                     .c = c};
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            a[j * n + i] = entry_a(i, j, seed);
            b[j * n + i] = entry_b(i, j, seed);
        }
    gemm_call(&g, gemm_linked(D, COLUMNS));
    int wrong = wrong_elements(c, n, n, n, n, seed, 0);
    free(c);
    return (wrong != 0) + product(n, seed);
}
