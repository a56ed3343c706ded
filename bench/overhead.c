/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls gemm many times and says what one call costs.
 *
 *   overhead ENTRY N CALLS THREADS REPEATS     one line: "min_ns median_ns", then the addresses'
 *                                              owner of the entry (which library was called)
 *   overhead ENTRY N CALLS                     only makes the calls: for counting instructions
 *
 * ENTRY is dgemm_ or cblas_dgemm. Linked against bench/overhead_stub.c's library, whose gemm does
 * nothing, so that what is in front of it can be seen; the same program runs with and without the
 * preload, and with a real BLAS in the stub's place (LD_LIBRARY_PATH).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc, size_t transa_len, size_t transb_len);
void cblas_dgemm(int layout, int transa, int transb, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);

enum { LARGEST = 16 };

/* A matrix of its own for every thread, on cache lines of its own. */
struct matrices {
    double a[LARGEST * LARGEST], b[LARGEST * LARGEST], c[LARGEST * LARGEST];
} __attribute__((aligned(128)));

struct job {
    struct matrices matrices;
    int n, is_cblas;
    long calls;
    pthread_barrier_t *start;
    double seconds;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void make_calls(struct matrices *x, int is_cblas, int n, long calls)
{
    const double one = 1, zero = 0;
    if (is_cblas)
        for (long i = 0; i < calls; i++)
            cblas_dgemm(102, 111, 111, n, n, n, one, x->a, n, x->b, n, zero, x->c, n);
    else
        for (long i = 0; i < calls; i++)
            dgemm_("N", "N", &n, &n, &n, &one, x->a, &n, x->b, &n, &zero, x->c, &n, 1, 1);
}

static void *run(void *data)
{
    struct job *job = data;
    make_calls(&job->matrices, job->is_cblas, job->n, 1000); /* resolve, warm up */
    pthread_barrier_wait(job->start);
    double begin = now();
    make_calls(&job->matrices, job->is_cblas, job->n, job->calls);
    job->seconds = now() - begin;
    return NULL;
}

/* ns of one call, the slowest thread's. */
static double measure(struct job *jobs, int threads)
{
    pthread_t thread[64];
    pthread_barrier_t start;
    double slowest = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        jobs[i].start = &start;
        if (pthread_create(&thread[i], NULL, run, &jobs[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        slowest = jobs[i].seconds > slowest ? jobs[i].seconds : slowest;
    }
    pthread_barrier_destroy(&start);
    return slowest * 1e9 / (double)jobs[0].calls;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    Dl_info owner;
    double ns[101];
    int is_cblas = argc > 1 && strcmp(argv[1], "cblas_dgemm") == 0;
    int n = argc > 2 ? atoi(argv[2]) : 2;
    long calls = argc > 3 ? atol(argv[3]) : 1000;
    int threads = argc > 4 ? atoi(argv[4]) : 0, repeats = argc > 5 ? atoi(argv[5]) : 1;
    if (n < 1 || n > LARGEST || threads > 64 || repeats < 1 || repeats > 101)
        return 2;
    struct job *jobs = aligned_alloc(128, sizeof *jobs * (size_t)(threads > 0 ? threads : 1));
    if (jobs == NULL)
        return 2;
    memset(jobs, 0, sizeof *jobs * (size_t)(threads > 0 ? threads : 1));
    if (threads == 0) {
        make_calls(&jobs[0].matrices, is_cblas, n, calls);
        return 0;
    }
    for (int i = 0; i < threads; i++) {
        jobs[i].n = n;
        jobs[i].is_cblas = is_cblas;
        jobs[i].calls = calls;
    }
    for (int i = 0; i < repeats; i++)
        ns[i] = measure(jobs, threads);
    qsort(ns, (size_t)repeats, sizeof ns[0], compare);
    void *entry = is_cblas ? (void *)(uintptr_t)cblas_dgemm : (void *)(uintptr_t)dgemm_;
    printf("%.3f %.3f %s\n", ns[0], ns[repeats / 2],
           dladdr(entry, &owner) != 0 ? owner.dli_fname : "?");
    return 0;
}
