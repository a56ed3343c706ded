/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: questions about level 3 beside gemm.
 */
#include <math.h>

#include "compare.h"

static const cuDoubleComplex one_z = { 1, 0 }, zero_z;
static const float one_s = 1, zero_s;

void ask_level3_flags(const char *group)
{
    start(cuda_path, cublas_path);
    CUdeviceptr d = room(1 << 16), e = room(1 << 16), f = room(1 << 16);
    double *a = (double *)d, *b = (double *)e, *c = (double *)f;
    cuDoubleComplex *za = (void *)d, *zb = (void *)e, *zc = (void *)f;
    for (int trans = -1; trans < 5; trans++) {
        Q(trans);
        Q(p_cublasDsyrk_v2(handle, 0, trans, 4, 4, &one, a, 4, &zero, c, 4));
        Q(p_cublasZsyrk_v2(handle, 0, trans, 4, 4, &one_z, za, 4, &zero_z, zc, 4));
        Q(p_cublasZherk_v2(handle, 0, trans, 4, 4, &one, za, 4, &zero, zc, 4));
        Q(p_cublasDsyr2k_v2(handle, 0, trans, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
        Q(p_cublasZsyr2k_v2(handle, 0, trans, 4, 4, &one_z, za, 4, zb, 4, &zero_z, zc, 4));
        Q(p_cublasZher2k_v2(handle, 0, trans, 4, 4, &one_z, za, 4, zb, 4, &zero, zc, 4));
        Q(p_cublasDtrmm_v2(handle, 0, 0, trans, 0, 4, 4, &one, a, 4, b, 4, c, 4));
        Q(p_cublasDtrsm_v2(handle, 0, 0, trans, 0, 4, 4, &one, a, 4, b, 4));
    }
    for (int flag = -1; flag < 4; flag++) {
        Q(flag);
        Q(p_cublasDsymm_v2(handle, flag, 0, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
        Q(p_cublasDsymm_v2(handle, 0, flag, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
        Q(p_cublasDsyrk_v2(handle, flag, 0, 4, 4, &one, a, 4, &zero, c, 4));
        Q(p_cublasDtrmm_v2(handle, 0, 0, 0, flag, 4, 4, &one, a, 4, b, 4, c, 4));
        Q(p_cublasDtrsm_v2(handle, 0, flag, 0, 0, 4, 4, &one, a, 4, b, 4));
    }
    Q(p_cuStreamSynchronize(stream));
}

void ask_level3_operands(const char *group)
{
    start(cuda_path, cublas_path);
    CUdeviceptr d = room(1 << 16), e = room(1 << 16), f = room(1 << 16);
    double *a = (double *)d, *b = (double *)e, *c = (double *)f;
    Q(p_cublasDsymm_v2(handle, 0, 0, 0, 4, &one, a, 0, b, 1, &zero, c, 1));
    Q(p_cublasDsymm_v2(handle, 0, 0, 4, 3, &one, a, 3, b, 4, &zero, c, 4));
    Q(p_cublasDsymm_v2(handle, 1, 0, 4, 3, &one, a, 3, b, 4, &zero, c, 4));
    Q(p_cublasDsymm_v2(handle, 0, 0, 4, 4, &zero, NULL, 4, NULL, 4, &zero, c, 4));
    Q(p_cublasDsyrk_v2(handle, 0, 0, 4, 0, &one, NULL, 4, &zero, c, 4));
    Q(p_cublasDsyrk_v2(handle, 0, 1, 4, 2, &one, a, 2, &zero, c, 4));
    Q(p_cublasDsyrk_v2(handle, 0, 0, 0, 4, NULL, NULL, 1, NULL, NULL, 1));
    Q(p_cublasDsyrk_v2(handle, 0, 0, 4, 4, &one, NULL, 4, &zero, c, 4));
    Q(p_cublasDsyrk_v2(handle, 0, 0, 4, 4, NULL, a, 4, &zero, c, 4));
    Q(p_cublasDtrmm_v2(handle, 0, 0, 0, 0, 4, 4, &zero, NULL, 4, NULL, 4, c, 4));
    Q(p_cublasDtrmm_v2(handle, 0, 0, 0, 0, 4, 4, &one, a, 4, c, 4, c, 4));
    Q(p_cublasDtrmm_v2(handle, 0, 0, 0, 0, 4, 4, &one, a, 4, c, 4, c, 5));
    Q(p_cublasDtrmm_v2(handle, 0, 0, 0, 0, 4, 4, &one, c, 4, b, 4, c, 4));
    Q(p_cublasDtrsm_v2(handle, 0, 0, 0, 0, 4, 4, &zero, NULL, 4, b, 4));
    Q(p_cublasDtrsm_v2(handle, 0, 0, 0, 0, 4, 4, &one, NULL, 4, b, 4));
    Q(p_cuStreamSynchronize(stream));
}

/* The 2 x 2 result of herk with A = 1 and C full of NaN but for real parts of its lower triangle. */
static void ask_herk(const char *group, double alpha, double beta)
{
    cuDoubleComplex a[2] = { { 1, 0 }, { 1, 0 } };
    cuDoubleComplex c[4] = { { 1, NAN }, { 1, 0 }, { NAN, NAN }, { 1, NAN } };
    CUdeviceptr d = room(sizeof a), e = room(sizeof c);
    p_cuMemcpyHtoDAsync_v2(d, a, sizeof a, stream);
    p_cuMemcpyHtoDAsync_v2(e, c, sizeof c, stream);
    Q(p_cublasZherk_v2(handle, 0, 0, 2, 1, &alpha, (void *)d, 2, &beta, (void *)e, 2));
    p_cuMemcpyDtoHAsync_v2(c, e, sizeof c, stream);
    Q(p_cuStreamSynchronize(stream));
    Q(c[0].x);
    Q(isnan(c[0].y));
    Q(isnan(c[3].y));
    Q(isnan(c[2].x));
}

/* Whether NaN in the last row of B reaches the others, which a lower A does not let depend on it. */
static void ask_triangular(const char *group, int size)
{
    CUdeviceptr d = room(size * size * 8), e = room(size * 8);
    double a[64 * 64], b[64];
    for (int i = 0; i < size * size; i++)
        a[i] = i % size == i / size ? 1 : i % size > i / size ? 0.5 : NAN;
    for (int i = 0; i < size; i++)
        b[i] = i == size - 1 ? NAN : 1;
    for (int solve = 0; solve < 2; solve++) {
        double x[64];
        p_cuMemcpyHtoDAsync_v2(d, a, size * size * 8, stream);
        p_cuMemcpyHtoDAsync_v2(e, b, size * 8, stream);
        if (solve)
            p_cublasDtrsm_v2(handle, 0, 0, 0, 0, size, 1, &one, (void *)d, size, (void *)e, size);
        else
            p_cublasDtrmm_v2(handle, 0, 0, 0, 0, size, 1, &one, (void *)d, size, (void *)e, size,
                             (void *)e, size);
        p_cuMemcpyDtoHAsync_v2(x, e, size * 8, stream);
        Q(p_cuStreamSynchronize(stream));
        Q(solve);
        Q(isnan(x[0]));
        Q(isnan(x[size - 2]));
    }
}

/* Whether 1 + 2^-12 was rounded on its way to the diagonal of the result. */
static void ask_tf32(const char *group, int mode)
{
    enum { SIZE = 64 };
    static float block[SIZE * SIZE];
    CUdeviceptr d = room(sizeof block), e = room(sizeof block), f = room(sizeof block);
    float *a = (float *)d, *b = (float *)e, *c = (float *)f, x[4];
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < SIZE; i++)
            block[i * (SIZE + 1)] = which ? 1 + 0x1p-12f : 1;
        p_cuMemcpyHtoDAsync_v2(which ? d : e, block, sizeof block, stream);
    }
    p_cublasSetMathMode(handle, mode);
    p_cublasSsymm_v2(handle, 0, 0, SIZE, SIZE, &one_s, a, SIZE, b, SIZE, &zero_s, c, SIZE);
    p_cuMemcpyDtoHAsync_v2(x, f, 4, stream);
    p_cublasSsyrk_v2(handle, 0, 0, SIZE, SIZE, &one_s, a, SIZE, &zero_s, c, SIZE);
    p_cuMemcpyDtoHAsync_v2(x + 1, f, 4, stream);
    p_cublasStrmm_v2(handle, 0, 0, 0, 0, SIZE, SIZE, &one_s, a, SIZE, b, SIZE, c, SIZE);
    p_cuMemcpyDtoHAsync_v2(x + 2, f, 4, stream);
    p_cublasStrsm_v2(handle, 0, 0, 0, 0, SIZE, SIZE, &one_s, a, SIZE, b, SIZE);
    p_cuMemcpyDtoHAsync_v2(x + 3, e, 4, stream);
    p_cuStreamSynchronize(stream);
    Q(mode);
    Q(x[0] == 1);
    Q(x[1] == 1);
    Q(x[2] == 1);
    Q(x[3] == 1);
}

void ask_level3_numbers(const char *group)
{
    start(cuda_path, cublas_path);
    ask_herk(group, 1, 0);
    ask_herk(group, 1, 1);
    ask_herk(group, 0, 0);
    ask_herk(group, 0, 1);
    ask_herk(group, 0, 2);
    ask_triangular(group, 4);
    ask_triangular(group, 64);
    ask_tf32(group, 0);
    ask_tf32(group, 2);
    ask_tf32(group, 3);
}
