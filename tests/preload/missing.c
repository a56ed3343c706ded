/* SPDX-License-Identifier: Apache-2.0
 *
 * With an argument, calls a name that no library has, but for the preload.
 */
#include <stdint.h>
#include <stdio.h>

extern void scipy_dgemm_64_(const char *transa, const char *transb, const int64_t *m,
                            const int64_t *n, const int64_t *k, const double *alpha,
                            const double *a, const int64_t *lda, const double *b,
                            const int64_t *ldb, const double *beta, double *c,
                            const int64_t *ldc, size_t transa_len, size_t transb_len);

int main(int argc, char **argv)
{
    const int64_t one = 1;
    double x = 1, c;
    (void)argv;
    printf("before\n");
    fflush(stdout);
    if (argc > 1) {
        scipy_dgemm_64_("N", "N", &one, &one, &one, &x, &x, &one, &x, &one, &x, &c, &one, 1, 1);
        printf("after\n");
    }
    return 0;
}
