/* SPDX-License-Identifier: Apache-2.0
 *
 * A program without a BLAS that opens plugins with theirs, and uses them by turns.
 *
 *     host [--pointer] PLUGIN...
 *
 * --pointer: also calls dgemm_ itself, through a pointer, as a tail jump from somewhere else would
 * arrive: nothing in its own scope has the name.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Integers in 64-bit variables are right in either width. */
static int product_by_pointer(void)
{
    typedef void gemm(const char *, const char *, const int64_t *, const int64_t *,
                      const int64_t *, const double *, const double *, const int64_t *,
                      const double *, const int64_t *, const double *, double *, const int64_t *,
                      size_t, size_t);
    gemm *dgemm = (gemm *)dlsym(RTLD_DEFAULT, "dgemm_");
    static double a[2500], b[2500], c[2500];
    const int64_t n = 50;
    const double one = 1, zero = 0;
    if (dgemm == NULL) {
        printf("no dgemm_ in the global scope\n");
        return 1;
    }
    for (int i = 0; i < 2500; i++)
        a[i] = 2, b[i] = 3, c[i] = -1;
    dgemm("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
    return c[0] != 300 || c[2499] != 300;
}

int main(int argc, char **argv)
{
    int (*product[8])(int, int);
    int count = 0, wrong = 0, pointer = 0;
    for (int i = 1; i < argc && count < 8; i++) {
        if (strcmp(argv[i], "--pointer") == 0) {
            pointer = 1;
            continue;
        }
        void *handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        product[count] = handle ? (int (*)(int, int))dlsym(handle, "plugin_product") : NULL;
        if (product[count++] == NULL) {
            printf("%s\n", dlerror());
            return 2;
        }
    }
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < count; i++)
            wrong += product[i](40 + round, round);
    if (pointer)
        wrong += product_by_pointer();
    return wrong != 0;
}
