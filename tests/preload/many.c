/* SPDX-License-Identifier: Apache-2.0
 *
 *     many COUNT [SIZE [PAUSE]]    products of SIZE x SIZE, PAUSE milliseconds apart
 *     many --threads               one each from eight threads at once
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "product.h"

static pthread_barrier_t barrier;

static void *one(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    return product(40, 1) != 0 ? (void *)&barrier : NULL;
}

static int from_threads(void)
{
    pthread_t thread[8];
    int wrong = 0;
    pthread_barrier_init(&barrier, NULL, 8);
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, one, NULL);
    for (int i = 0; i < 8; i++) {
        void *result = NULL;
        pthread_join(thread[i], &result);
        wrong += result != NULL;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0;
    if (argc > 1 && strcmp(argv[1], "--threads") == 0)
        return from_threads() != 0;
    int count = argc > 1 ? atoi(argv[1]) : 1, size = argc > 2 ? atoi(argv[2]) : 40;
    for (int i = 0; i < count; i++) {
        wrong += product(size, i);
        if (argc > 3)
            usleep((useconds_t)atoi(argv[3]) * 1000);
    }
    return wrong != 0;
}
