/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways to end a process that has used the device, or is about to.
 *
 *     exit WAY [MILLISECONDS]
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "product.h"

enum { SIDE = 50 };

static int products(int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += product(SIDE, i);
    return wrong;
}

/* What an exit handler finds wrong can only be told by another way out. */
static void late_products(void)
{
    if (products(3) != 0)
        _exit(44);
}

static void *compute(void *unused)
{
    (void)unused;
    for (;;)
        if (product(SIDE, 0) != 0)
            _exit(45);
    return NULL;
}

static void start_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, compute, NULL);
}

static int after_products(const char *way)
{
    int wrong = products(4);
    if (wrong != 0)
        return 1;
    if (strcmp(way, "exit") == 0)
        exit(7);
    if (strcmp(way, "_exit") == 0)
        _exit(8);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(9);
    if (strcmp(way, "SIGKILL") == 0)
        raise(SIGKILL);
    if (strcmp(way, "SIGTERM") == 0)
        raise(SIGTERM);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "pthread_exit") == 0)
        pthread_exit(NULL);
    return 3;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    useconds_t pause = argc > 2 ? (useconds_t)atoi(argv[2]) * 1000 : 0;
    if (strcmp(way, "older handler") == 0) { /* registered before CUDA's own: runs after it */
        atexit(late_products);
        return products(4);
    }
    if (strcmp(way, "newer handler") == 0) {
        int wrong = products(4);
        atexit(late_products);
        return wrong;
    }
    if (strcmp(way, "only in a handler") == 0) {
        atexit(late_products);
        return 0;
    }
    if (strcmp(way, "beside a thread") == 0) { /* which is starting the device or computing */
        start_thread();
        usleep(pause);
        return 0;
    }
    if (strcmp(way, "beside many threads") == 0) {
        for (int i = 0; i < 12; i++)
            start_thread();
        usleep(pause);
        return 0;
    }
    if (strcmp(way, "return") == 0)
        return products(4) != 0 ? 1 : 6;
    return after_products(way);
}
