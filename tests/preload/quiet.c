/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program's thread may find when a call returns, or in the middle of one: cancellation,
 * an environment that is gone, floating-point flags, a handler that exits, a fork that only exits.
 * Prints what it saw.
 */
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "product.h"

enum { LARGEST = 1000 };
static double a[LARGEST * LARGEST], b[LARGEST * LARGEST], c[LARGEST * LARGEST];

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void multiply(BLAS_INT n, double *out)
{
    double one = 1, zero = 0;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, out, &n, 1, 1);
}

static void *cancelled(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    multiply(300, c);
    pthread_testcancel();
    return NULL;
}

static void cancel(void)
{
    pthread_t thread;
    void *value;
    pthread_create(&thread, NULL, cancelled, NULL);
    pthread_join(thread, &value);
    multiply(300, c);
    printf("cancelled %d, c %g\n", value == PTHREAD_CANCELED, c[0]);
}

static void *keep_multiplying(void *rounds)
{
    static double own[LARGEST * LARGEST];
    for (long i = 0; i < (long)(intptr_t)rounds; i++)
        multiply(500, own);
    return NULL;
}

/* A child that makes no call ends as fast as it would without us. */
static void fork_beside(long rounds, unsigned microseconds)
{
    pthread_t thread;
    int status;
    pthread_create(&thread, NULL, keep_multiplying, (void *)(intptr_t)rounds);
    usleep(microseconds);
    double begin = seconds();
    pid_t child = fork();
    if (child == 0)
        exit(7);
    waitpid(child, &status, 0);
    printf("child %d, %s\n", WEXITSTATUS(status), seconds() - begin < 1 ? "at once" : "late");
    fflush(stdout);
    _exit(0);
}

static void flags(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    multiply(300, c); /* small integers: nothing to raise */
    printf("flags %x\n", (unsigned)fetestexcept(FE_ALL_EXCEPT));
}

static void leave(int signal_number)
{
    (void)signal_number;
    exit(3);
}

static void handler(void)
{
    signal(SIGALRM, leave);
    alarm(1);
    for (;;)
        multiply(LARGEST, c);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < LARGEST * LARGEST; i++) {
        a[i] = (double)(i % 5) - 2;
        b[i] = (double)(i % 7) - 3;
    }
    if (strcmp(what, "cancel") == 0)
        cancel();
    else if (strcmp(what, "clearenv") == 0 && clearenv() == 0)
        multiply(300, c);
    else if (strcmp(what, "fork in start-up") == 0)
        fork_beside(3, 300000);
    else if (strcmp(what, "fork in runs") == 0)
        fork_beside(1000000, 500000);
    else if (strcmp(what, "flags") == 0)
        flags();
    else if (strcmp(what, "handler") == 0)
        handler();
    return 0;
}
