/* SPDX-License-Identifier: Apache-2.0
 *
 * Products while the process may not map any more memory: the copy that protects C (beta = 1) is
 * refused.
 */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "product.h"

enum { N = 600 };

static double a[N * N], b[N * N], c[N * N];

static int run(double beta)
{
    BLAS_INT n = N;
    double alpha = 1;
    for (int i = 0; i < N * N; i++)
        c[i] = beta == 0 ? (double)NAN : 1;
    dgemm_("N", "N", &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n, 1, 1);
    return wrong_elements(c, N, N, N, N, 3, beta) != 0;
}

static rlim_t size_now(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        exit(2);
    fclose(file);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

int main(void)
{
    BLAS_INT n = N;
    double zero = 0;
    struct rlimit before, limit;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            a[j * N + i] = entry_a(i, j, 3);
            b[j * N + i] = entry_b(i, j, 3);
        }
    /* C overlaps A: the CPU library computes, and has its own memory from here on. */
    memcpy(c, a, sizeof c);
    dgemm_("N", "N", &n, &n, &n, &zero, c, &n, b, &n, &zero, c, &n, 1, 1);
    double one = 1;
    dgemm_("N", "N", &n, &n, &n, &one, c, &n, b, &n, &zero, c, &n, 1, 1);

    int wrong = run(0);
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = size_now();
    setrlimit(RLIMIT_AS, &limit);
    wrong += run(1);
    setrlimit(RLIMIT_AS, &before);
    return wrong + run(1) != 0;
}
