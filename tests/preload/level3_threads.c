/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that call level-3 routines, each another one at a time. Exit status 0: every result was
 * right.
 *
 *     level3_threads families    eight threads, all families in turn
 *     level3_threads forks       the same, while children are forked that call them, too
 *     level3_threads flood N     four threads, N small products each, in several rounds; prints the
 *                                seconds of the fastest round
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "level3_sweep.h"
#include "product.h"

enum { THREADS = 8, ROUNDS = 6, KINDS = GEMMT - GEMM3M, FLOOD_THREADS = 4, FLOOD_TIMES = 5, CHILDREN = 6 };

static _Atomic int wrong;

static enum dtype type_for(enum family family, int seed)
{
    return family_has(family, D) ? (enum dtype)(seed % DTYPES) : seed % 2 ? C : Z;
}

/* One call, whose sizes and flags depend on the seed. */
static void call_one(struct sweep *sweep, enum family family, int seed)
{
    bool hermitian = is_hermitian(family);
    struct level3 l = {
        .family = family, .dtype = type_for(family, seed),
        .interface = (enum interface)(seed % INTERFACES), .side = "LR"[seed % 2],
        .uplo = "UL"[seed / 2 % 2], .transa = seed % 3 ? 'N' : hermitian ? 'C' : 'T',
        .transb = 'N', .diag = "UN"[seed % 2], .m = 5 + seed % 17, .n = 9 + seed % 23,
        .k = 3 + seed % 7, .alpha = {-1.5}, .beta = {seed % 2 * .5}};
    sweep->number = (unsigned long)seed;
    sweep_case(sweep, &l, seed % 4);
}

static struct sweep *new_sweep(void)
{
    struct sweep *sweep = calloc(1, sizeof *sweep);
    sweep->a = arena_make(1 << 16);
    sweep->b = arena_make(1 << 16);
    sweep->c = arena_make(1 << 16);
    return sweep;
}

static void *all_families(void *argument)
{
    int number = *(const int *)argument;
    struct sweep *sweep = new_sweep();
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < KINDS; i++)
            call_one(sweep, (enum family)(GEMM3M + (i + number) % KINDS),
                     (number * ROUNDS + round) * KINDS + i);
    wrong += (int)sweep->failures;
    return NULL;
}

/* The table of functions is filled before there are threads, and only read by them. */
static void look_names_up(void)
{
    for (enum family f = GEMM3M; f < GEMMT; f++)
        for (enum dtype t = S; t < DTYPES; t++)
            for (enum interface i = F77; i < INTERFACES; i++)
                if (family_has(f, t))
                    level3_linked(f, t, i);
}

static void run_threads(int count, void *(*body)(void *), void (*meanwhile)(void))
{
    static int numbers[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        if (pthread_create(&thread[i], NULL, body, &numbers[i]) != 0)
            exit(2);
    }
    if (meanwhile != NULL)
        meanwhile();
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
}

/* ---- forks ---- */

static void child(void)
{
    struct sweep *sweep = new_sweep();
    for (int i = 0; i < KINDS; i++)
        call_one(sweep, (enum family)(GEMM3M + i), 1000 + i);
    _exit(sweep->failures != 0);
}

static void fork_children(void)
{
    for (int i = 0; i < CHILDREN; i++) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0)
            child();
        wrong += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
    }
}

static void fork_beside(void)
{
    struct sweep *sweep = new_sweep();
    call_one(sweep, SYMM, 1); /* the device is live from here on */
    wrong += (int)sweep->failures;
    run_threads(THREADS, all_families, fork_children);
}

/* ---- a flood ---- */

static int flood_calls;

static void *flood(void *argument)
{
    enum { ORDER = 8 };
    BLAS_INT n = ORDER;
    double alpha = 1, beta = 0, a[ORDER * ORDER], b[ORDER * ORDER], c[ORDER * ORDER];
    int seed = *(const int *)argument;
    for (int j = 0; j < ORDER; j++)
        for (int i = 0; i < ORDER; i++) {
            a[j * ORDER + i] = entry_a(i, j, seed);
            b[j * ORDER + i] = entry_b(i, j, seed);
        }
    for (int i = 0; i < flood_calls; i++) {
        c[i % (ORDER * ORDER)] = 4711;
        dgemm_("N", "N", &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n, 1, 1);
        if (i % 100 == 0)
            wrong += wrong_elements(c, ORDER, ORDER, ORDER, ORDER, seed, 0);
    }
    return NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The first round finds the CPU library and starts cold. */
static double fastest_flood(int calls)
{
    double fastest = 1e9;
    for (int i = 0; i < FLOOD_TIMES; i++) {
        flood_calls = calls / FLOOD_TIMES;
        double begin = now();
        run_threads(FLOOD_THREADS, flood, NULL);
        double seconds = now() - begin;
        fastest = seconds < fastest ? seconds : fastest;
    }
    return fastest;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    look_names_up();
    if (strcmp(what, "families") == 0) {
        run_threads(THREADS, all_families, NULL);
    } else if (strcmp(what, "forks") == 0) {
        fork_beside();
    } else if (strcmp(what, "flood") == 0 && argc == 3) {
        printf("%.6f\n", fastest_flood(atoi(argv[2])));
    } else {
        return 2;
    }
    return wrong != 0;
}
