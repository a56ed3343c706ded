/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways out of a BLAS call that are not a return, and calls inside calls. The xerbla_ of this
 * program is the one that its BLAS calls.
 *
 *     guard counts | longjmp | exit thread | errno
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>

#include "product.h"

static int reports, argument, jump;
static char routine[7];
static jmp_buf before;

__attribute__((visibility("default"))) void xerbla_(const char *name, const BLAS_INT *info,
                                                    size_t length);

void xerbla_(const char *name, const BLAS_INT *info, size_t length)
{
    (void)length; /* some libraries count a terminator, some pass 6 */
    reports++;
    argument = (int)*info;
    memcpy(routine, name, 6);
    if (jump == 1)
        longjmp(before, 1);
    if (jump == 2)
        pthread_exit(NULL);
}

/* An illegal call that is large enough to be looked at. */
static void illegal(void)
{
    static double x[4] = {5, 5, 5, 5};
    BLAS_INT size = 300, lda = 299;
    double one = 1;
    dgemm_("N", "N", &size, &size, &size, &one, x, &lda, x, &size, &one, x, &size, 1, 1);
}

static void illegal_small(void)
{
    static double x[4] = {5, 5, 5, 5};
    BLAS_INT m = -1, size = 2;
    double one = 1;
    dgemm_("N", "N", &m, &size, &size, &one, x, &size, x, &size, &one, x, &size, 1, 1);
}

static int counts(void)
{
    illegal_small();
    if (reports != 1 || argument != 3 || strcmp(routine, "DGEMM ") != 0)
        return 1;
    illegal();
    return reports != 2 || argument != 8 || product(40, 0);
}

/* The next call comes from a deeper and from a shallower place of the stack than the one that was
 * left, and from the same. */
__attribute__((noinline)) static int deeper(int depth, int seed)
{
    volatile char room[256];
    room[0] = (char)seed;
    return depth > 0 ? deeper(depth - 1, seed) + (room[0] != (char)seed) : product(40, seed);
}

__attribute__((noinline)) static void illegal_from(int depth)
{
    volatile char room[256];
    room[0] = 1;
    if (depth > 0)
        illegal_from(depth - 1);
    else
        illegal();
    room[1] = room[0];
}

static int by_longjmp(void)
{
    volatile int wrong = 0;
    jump = 1;
    for (volatile int i = 0; i < 60; i++) {
        if (setjmp(before) == 0) {
            illegal_from(i % 7);
            return 1; /* came back */
        }
        wrong += deeper(i % 3 * 4, i);
    }
    return wrong + (reports != 60);
}

static void *leave_thread(void *unused)
{
    (void)unused;
    illegal();
    return &reports;
}

/* pthread_exit unwinds through the library's frames. */
static int by_thread_exit(void)
{
    int wrong = 0;
    jump = 2;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result = NULL;
        pthread_create(&thread, NULL, leave_thread, NULL);
        pthread_join(thread, &result);
        wrong += result != NULL || product(40, i) != 0;
    }
    return wrong + (reports != 20);
}

static int keeps_errno(void)
{
    int wrong = 0;
    for (int i = 0; i < 3; i++) {
        errno = 4711;
        wrong += product(i == 1 ? 3 : 150, i) != 0 || errno != 4711;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    int wrong = strcmp(what, "counts") == 0        ? counts()
                : strcmp(what, "longjmp") == 0     ? by_longjmp()
                : strcmp(what, "exit thread") == 0 ? by_thread_exit()
                : strcmp(what, "errno") == 0       ? keeps_errno()
                                                   : 2;
    return wrong != 0;
}
