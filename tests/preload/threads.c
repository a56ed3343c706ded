/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads. Exit status 0: every result was right.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "product.h"

enum { THREADS = 8 };

static int run_threads(int count, void *(*body)(void *))
{
    pthread_t thread[64];
    int wrong[64] = {0}, sum = 0;
    struct task {
        int number, *wrong;
    } task[64];
    for (int i = 0; i < count; i++) {
        task[i] = (struct task){i, &wrong[i]};
        if (pthread_create(&thread[i], NULL, body, &task[i]) != 0)
            return 1;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
        sum += wrong[i];
    }
    return sum;
}

struct task {
    int number, *wrong;
};

/* ---- threads that come and go ---- */

enum { SHORT_THREADS = 1000, AT_ONCE = 50, SMALL_CALLS = 17 };

static void *small_calls(void *argument)
{
    struct task *task = argument;
    for (int i = 0; i < SMALL_CALLS; i++)
        *task->wrong += product(3, i);
    return NULL;
}

static int come_and_go(void)
{
    int wrong = product(300, 0); /* a call that is decided: from here on there is an audit */
    for (int i = 0; i < SHORT_THREADS / AT_ONCE; i++)
        wrong += run_threads(AT_ONCE, small_calls);
    return wrong;
}

/* ---- the device from several threads ---- */

enum { ROUNDS = 30 };

static void *many_products(void *argument)
{
    struct task *task = argument;
    for (int i = 0; i < ROUNDS; i++)
        *task->wrong += product(20 + 5 * task->number + i, task->number * ROUNDS + i);
    return NULL;
}

static pthread_barrier_t barrier;

static void *first_product(void *argument)
{
    struct task *task = argument;
    pthread_barrier_wait(&barrier);
    *task->wrong += product(40 + task->number, task->number);
    return NULL;
}

static int first_use(int count)
{
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    return run_threads(count, first_product);
}

/* ---- bands of one C ---- */

enum { ORDER = 512, BAND = ORDER / THREADS, INNER = 16, BAND_ROUNDS = 40 };

static double whole_c[ORDER * ORDER];

static void *fill_band(void *argument)
{
    struct task *task = argument;
    BLAS_INT m = BAND, n = ORDER, k = INNER, ldc = ORDER;
    double alpha = 1, beta = 0, *c = whole_c + task->number * BAND;
    double *a = malloc(sizeof(double) * (BAND + ORDER) * INNER), *b = a + BAND * INNER;
    for (int round = 0; round < BAND_ROUNDS; round++) {
        int seed = task->number + round;
        for (int p = 0; p < INNER; p++)
            for (int i = 0; i < BAND; i++)
                a[p * BAND + i] = entry_a(i, p, seed);
        for (int j = 0; j < ORDER; j++)
            for (int p = 0; p < INNER; p++)
                b[j * INNER + p] = entry_b(p, j, seed);
        dgemm_("N", "N", &m, &n, &k, &alpha, a, &m, b, &k, &beta, c, &ldc, 1, 1);
        *task->wrong += wrong_elements(c, BAND, ORDER, INNER, ORDER, seed, 0);
    }
    free(a);
    return NULL;
}

/* ---- memory that may not be written ---- */

static double *read_only_pages(size_t count)
{
    double *pages = mmap(NULL, count * sizeof *pages, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static const double *read_only_file(const double *values, size_t count)
{
    char name[] = "/tmp/gs-threads-XXXXXX";
    int file = mkstemp(name);
    ssize_t written = file < 0 ? -1 : write(file, values, count * sizeof *values);
    unlink(name);
    if (written != (ssize_t)(count * sizeof *values))
        return NULL;
    const double *map = mmap(NULL, count * sizeof *values, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return map == MAP_FAILED ? NULL : map;
}

static int read_only_inputs(void)
{
    enum { N = 64 };
    BLAS_INT n = N;
    double alpha = 1, beta = 0, c[N * N], values[N * N];
    double *a = read_only_pages(N * N);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            a[j * N + i] = entry_a(i, j, 1);
            values[j * N + i] = entry_b(i, j, 1);
        }
    const double *b = read_only_file(values, N * N);
    if (b == NULL || mprotect(a, N * N * sizeof *a, PROT_READ) != 0)
        return 1;
    dgemm_("N", "N", &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n, 1, 1);
    return wrong_elements(c, N, N, N, N, 1, 0);
}

/* ---- results are final when the call returns (C99) ---- */

static int gone_at_once(void)
{
    enum { N = 100 };
    BLAS_INT n = N;
    double alpha = 1, beta = 0;
    int wrong = 0;
    for (int round = 0; round < 200; round++) {
        double *all = read_only_pages(3 * N * N), *a = all, *b = a + N * N, *c = b + N * N;
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) {
                a[j * N + i] = entry_a(i, j, round);
                b[j * N + i] = entry_b(i, j, round);
            }
        dgemm_("N", "N", &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n, 1, 1);
        wrong += c[N * N - 1] != entry_ab(N - 1, N - 1, N, round);
        memset(a, 0xff, 2 * N * N * sizeof *a);
        wrong += c[0] != entry_ab(0, 0, N, round);
        munmap(all, 3 * N * N * sizeof *all);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    int wrong = strcmp(what, "come and go") == 0 ? come_and_go()
                : strcmp(what, "killed") == 0    ? come_and_go() || raise(SIGKILL)
                : strcmp(what, "products") == 0  ? run_threads(THREADS, many_products)
                : strcmp(what, "crowd") == 0     ? run_threads(40, many_products)
                : strcmp(what, "first") == 0     ? first_use(THREADS)
                : strcmp(what, "bands") == 0     ? run_threads(THREADS, fill_band)
                : strcmp(what, "read only") == 0 ? read_only_inputs()
                : strcmp(what, "gone") == 0      ? gone_at_once()
                                                 : 2;
    return wrong != 0;
}
