/* SPDX-License-Identifier: Apache-2.0
 *
 * One illegal call, by number, with C full of fives; prints C. Whatever else appears is the CPU
 * library's own.
 *
 *     illegal F77|CBLAS NUMBER
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_call.h"

extern void cblas_dgemm(int layout, int transa, int transb, BLAS_INT m, BLAS_INT n, BLAS_INT k,
                        double alpha, const double *a, BLAS_INT lda, const double *b,
                        BLAS_INT ldb, double beta, double *c, BLAS_INT ldc);

enum { SIDE = 40 };

static double a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];

static int make(int number, struct gemm *g)
{
    static const struct gemm legal = {.dtype = D, .transa = 'N', .transb = 'N', .m = SIDE,
                                      .n = SIDE, .k = SIDE, .lda = SIDE, .ldb = SIDE,
                                      .ldc = SIDE, .alpha = {1}, .beta = {1}, .a = a, .b = b,
                                      .c = c};
    *g = legal;
    switch (number) {
    case 0: g->lda = SIDE - 1; return 1;
    case 1: g->ldb = SIDE - 1; return 1;
    case 2: g->ldc = SIDE - 1; return 1;
    case 3: g->transa = 'Q'; return 1;
    case 4: g->transb = 'Q'; return 1;
    case 5: g->m = -1; return 1;
    case 6: g->n = -1; return 1;
    case 7: g->k = -1; return 1;
    case 8: g->lda = 0, g->m = 0; return 1;
    case 9: g->ldc = 0; return 1;
    case 10: g->transa = 'Q', g->m = -1, g->ldc = 0; return 1;
    case 11: g->transa = '\0'; return 1;
    default: return 0;
    }
}

static int trans_enum(char trans)
{
    return trans == 'N' ? 111 : trans == 'T' ? 112 : 99;
}

int main(int argc, char **argv)
{
    struct gemm g;
    if (argc != 3)
        return 2;
    int number = atoi(argv[2]);
    for (int i = 0; i < SIDE * SIDE; i++) {
        a[i] = b[i] = 1;
        c[i] = 5;
    }
    if (strcmp(argv[1], "F77") == 0 && make(number, &g)) {
        g.interface = F77;
        gemm_call(&g, gemm_linked(D, F77));
    } else if (strcmp(argv[1], "CBLAS") == 0 && (number >= 100 ? make(0, &g) : make(number, &g))) {
        int layout = number == 100 ? 99 : number == 101 ? 0 : 102;
        if (number >= 100)
            g.lda = SIDE;
        cblas_dgemm(layout, trans_enum(g.transa), trans_enum(g.transb), (BLAS_INT)g.m,
                    (BLAS_INT)g.n, (BLAS_INT)g.k, 1, a, (BLAS_INT)g.lda, b, (BLAS_INT)g.ldb, 1,
                    c, (BLAS_INT)g.ldc);
    } else {
        return 2;
    }
    for (int i = 0; i < SIDE * SIDE; i++)
        if (c[i] != 5)
            printf("C[%d] = %g\n", i, c[i]);
    printf("done\n");
    return 0;
}
