/* SPDX-License-Identifier: Apache-2.0
 *
 * One engine of bench/level3.py: calls the Fortran names of whatever BLAS is in the process:
 * those of SciPy's wheels (scipy_dgemm_) if that library was preloaded, else the plain ones. Reads lines `routine n threads reps` ("dsymm 2048 1 3") and
 * answers with the seconds of each repetition on one line. With several threads each makes the
 * same call on data of its own, and the time is that of the slowest.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 64 };

typedef void (*function)(void);
/* The argument lists, in Fortran's form. */
typedef const char *flag;
typedef const int *size;
typedef const void *in;
typedef void gemm(flag, flag, size, size, size, in, in, size, in, size, in, void *, size, size_t,
                  size_t);
typedef void sided(flag, flag, size, size, in, in, size, in, size, in, void *, size, size_t,
                   size_t);
typedef void rank_k(flag, flag, size, size, in, in, size, in, void *, size, size_t, size_t);
typedef void rank_2k(flag, flag, size, size, in, in, size, in, size, in, void *, size, size_t,
                     size_t);
typedef void triangular(flag, flag, flag, flag, size, size, in, in, size, void *, size, size_t,
                        size_t, size_t, size_t);

/* One thread's call. */
struct job {
    function call;
    char type;
    const char *op;
    int n;
    void *a, *b, *c;
    double seconds;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t element(char type)
{
    return type == 's' ? 4 : type == 'd' ? 8 : 16;
}

/* Random numbers in [-1, 1) from a linear congruential generator: fresh every time, cheap. */
static void fill(void *out, char type, size_t count)
{
    static _Atomic uint64_t seed = 1;
    uint64_t x = (uint64_t)time(NULL) * 2654435761u + seed++ * 40503u;
    size_t parts = type == 'z' ? 2 * count : count;
    for (size_t i = 0; i < parts; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double value = (double)(int64_t)x * 0x1p-63;
        if (type == 's')
            ((float *)out)[i] = (float)value;
        else
            ((double *)out)[i] = value;
    }
}

/* A diagonal that keeps triangular solves tame. */
static void strengthen(void *a, char type, int n)
{
    for (size_t i = 0; i < (size_t)n; i++) {
        size_t at = i * ((size_t)n + 1);
        if (type == 's')
            ((float *)a)[at] = (float)n;
        else
            ((double *)a)[type == 'z' ? 2 * at : at] = n;
    }
}

static void run(const struct job *j)
{
    static const double one_d[2] = {1, 0}, zero_d[2] = {0, 0};
    static const float one_s = 1, zero_s = 0;
    in one = j->type == 's' ? (in)&one_s : one_d, zero = j->type == 's' ? (in)&zero_s : zero_d;
    size n = &j->n;
    if (strcmp(j->op, "gemm") == 0)
        ((gemm *)j->call)("N", "N", n, n, n, one, j->a, n, j->b, n, zero, j->c, n, 1, 1);
    else if (strcmp(j->op + 2, "mm") == 0 && j->op[0] != 't')
        ((sided *)j->call)("L", "U", n, n, one, j->a, n, j->b, n, zero, j->c, n, 1, 1);
    else if (strcmp(j->op + 2, "rk") == 0)
        ((rank_k *)j->call)("U", "N", n, n, one, j->a, n, zero, j->c, n, 1, 1);
    else if (strcmp(j->op + 2, "r2k") == 0)
        ((rank_2k *)j->call)("U", "N", n, n, one, j->a, n, j->b, n, zero, j->c, n, 1, 1);
    else
        ((triangular *)j->call)("L", "U", "N", "N", n, n, one, j->a, n, j->b, n, 1, 1, 1, 1);
}

static void *timed(void *data)
{
    struct job *j = data;
    double begin = now();
    run(j);
    j->seconds = now() - begin;
    return NULL;
}

/* One repetition: a fresh, untouched result, as NumPy hands one out. Returns the slowest time. */
static double repeat(struct job *jobs, int threads)
{
    pthread_t thread[MOST_THREADS];
    double slowest = 0;
    for (int t = 0; t < threads; t++) {
        size_t count = (size_t)jobs[t].n * (size_t)jobs[t].n;
        free(jobs[t].c);
        jobs[t].c = malloc(count * element(jobs[t].type));
        if (jobs[t].op[0] == 't') /* trmm, trsm: overwritten by the last one */
            fill(jobs[t].b, jobs[t].type, count);
    }
    if (threads == 1)
        timed(&jobs[0]);
    for (int t = 0; t < threads && threads > 1; t++)
        pthread_create(&thread[t], NULL, timed, &jobs[t]);
    for (int t = 0; t < threads && threads > 1; t++)
        pthread_join(thread[t], NULL);
    for (int t = 0; t < threads; t++)
        slowest = jobs[t].seconds > slowest ? jobs[t].seconds : slowest;
    return slowest;
}

/* By name, in the scope of the process: what is preloaded comes first. */
static function find(const char *routine)
{
    char name[32];
    const char *form = dlsym(RTLD_DEFAULT, "scipy_dgemm_") != NULL ? "scipy_%s_" : "%s_";
    snprintf(name, sizeof name, form, routine);
    return (function)dlsym(RTLD_DEFAULT, name);
}

static void answer(const char *name, int n, int threads, int reps)
{
    static struct job jobs[MOST_THREADS];
    function call = find(name); /* NULL: an empty answer */
    size_t count = (size_t)n * (size_t)n, bytes = count * element(name[0]);
    for (int t = 0; call != NULL && t < threads; t++) {
        jobs[t] = (struct job){.call = call, .type = name[0], .op = name + 1, .n = n,
                               .a = malloc(bytes), .b = malloc(bytes)};
        fill(jobs[t].a, name[0], count);
        fill(jobs[t].b, name[0], count);
        strengthen(jobs[t].a, name[0], n);
    }
    for (int r = 0; call != NULL && r < reps; r++)
        printf("%.9f ", repeat(jobs, threads));
    for (int t = 0; call != NULL && t < threads; t++) {
        free(jobs[t].a);
        free(jobs[t].b);
        free(jobs[t].c);
    }
    printf("\n");
    fflush(stdout);
}

int main(void)
{
    char name[32];
    int n, threads, reps;
    while (scanf("%31s %d %d %d", name, &n, &threads, &reps) == 4)
        if (threads >= 1 && threads <= MOST_THREADS)
            answer(name, n, threads, reps);
    return 0;
}
