/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks around the first use of the device. Exit status 0: every product was right, in every
 * process. What the processes did is in the audit.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "product.h"

enum { SIDE = 60 };

static int products(int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += product(SIDE, i);
    return wrong;
}

/* Products in the child, then its end: in order or by _exit. */
static void run_child(int count, int in_order)
{
    int wrong = products(count) != 0;
    fflush(stdout);
    if (in_order)
        exit(wrong);
    _exit(wrong);
}

static int status_of(pid_t child)
{
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    return status != 0;
}

static int before(void)
{
    pid_t child = fork();
    if (child == 0)
        run_child(2, 1);
    return products(3) + status_of(child);
}

static int after(void)
{
    int wrong = products(1);
    for (int in_order = 0; in_order < 2; in_order++) {
        pid_t child = fork();
        if (child == 0)
            run_child(3, in_order);
        wrong += products(1) + status_of(child);
    }
    return wrong + products(1);
}

/* As fork, but without any atfork handler. */
static int after_bare(pid_t (*bare_fork)(void))
{
    int wrong = products(1);
    pid_t child = bare_fork();
    if (child == 0)
        run_child(3, 0);
    return wrong + products(1) + status_of(child) + products(1);
}

static pid_t by_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static const char *self;

static int after_vfork(void)
{
    int wrong = products(1);
    pid_t child = vfork();
    if (child == 0) {
        execl(self, self, "one", (char *)NULL);
        _exit(127);
    }
    return wrong + products(1) + status_of(child);
}

static int twice(void)
{
    int wrong = products(1);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0)
            run_child(2, 1);
        _exit(status_of(grandchild));
    }
    return wrong + status_of(child) + products(1);
}

/* A child that starts its own device has a child in turn. */
static int generations(void)
{
    pid_t child = fork();
    if (child == 0) {
        int wrong = products(1);
        pid_t grandchild = fork();
        if (grandchild == 0)
            run_child(2, 1);
        wrong += status_of(grandchild) + products(1);
        exit(wrong != 0);
    }
    return status_of(child) + products(1);
}

static void *fork_in_thread(void *wrong)
{
    pid_t child = fork();
    if (child == 0)
        run_child(2, 0);
    *(int *)wrong = status_of(child) + products(1);
    return NULL;
}

static int from_thread(void)
{
    int wrong = 0, main_wrong = products(1);
    pthread_t thread;
    pthread_create(&thread, NULL, fork_in_thread, &wrong);
    main_wrong += products(1);
    pthread_join(thread, NULL);
    return wrong + main_wrong;
}

static void *first_products(void *wrong)
{
    *(int *)wrong = products(2);
    return NULL;
}

/* While another thread starts the device, which takes its time. */
static int during_start(pid_t (*how)(void))
{
    int wrong = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, first_products, &wrong);
    usleep(150000);
    pid_t child = how();
    if (child == 0)
        run_child(2, 0);
    int child_wrong = status_of(child);
    pthread_join(thread, NULL);
    return wrong + child_wrong + products(1);
}

/* While other threads compute on the device: their locks are held by nobody in the child. */
static volatile int stop;

static void *compute(void *wrong)
{
    while (!stop)
        *(int *)wrong += products(1);
    return NULL;
}

static int during_runs(void)
{
    enum { THREADS = 3, FORKS = 20 };
    pthread_t thread[THREADS];
    int wrong[THREADS] = {0}, sum = products(1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, compute, &wrong[i]);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = i % 2 ? fork() : _Fork();
        if (child == 0)
            _exit(product(SIDE, i)); /* no stdio: another thread may hold its lock */
        sum += status_of(child);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += wrong[i];
    }
    return sum;
}

/* One decided call and small ones, in parent and child. */
static int with_small_calls(pid_t (*how)(void))
{
    enum { LARGE = 300, SMALL = 6 };
    int wrong = product(LARGE, 0);
    for (int i = 0; i < 10; i++)
        wrong += product(SMALL, i);
    pid_t child = how();
    if (child == 0) {
        for (int i = 0; i < 2; i++)
            wrong += product(SMALL, i);
        wrong += product(LARGE, 1);
        for (int i = 0; i < 7; i++)
            wrong += product(SMALL, i);
        fflush(stdout);
        exit(wrong != 0);
    }
    wrong += status_of(child);
    for (int i = 0; i < 6; i++)
        wrong += product(SMALL, i);
    return wrong;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    self = argv[0];
    int wrong = strcmp(what, "one") == 0           ? products(1)
                : strcmp(what, "before") == 0      ? before()
                : strcmp(what, "after") == 0       ? after()
                : strcmp(what, "_Fork") == 0       ? after_bare(_Fork)
                : strcmp(what, "clone") == 0       ? after_bare(by_clone)
                : strcmp(what, "vfork") == 0       ? after_vfork()
                : strcmp(what, "twice") == 0       ? twice()
                : strcmp(what, "generations") == 0 ? generations()
                : strcmp(what, "thread") == 0      ? from_thread()
                : strcmp(what, "starting") == 0    ? during_start(fork)
                : strcmp(what, "starting _Fork") == 0 ? during_start(_Fork)
                : strcmp(what, "small") == 0          ? with_small_calls(fork)
                : strcmp(what, "small _Fork") == 0    ? with_small_calls(_Fork)
                : strcmp(what, "running") == 0     ? during_runs()
                                                   : 2;
    return wrong != 0;
}
