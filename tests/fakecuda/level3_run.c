/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas: level 3 computed by a private OpenBLAS. What the manual leaves out of a matrix is
 * neither read nor written; where that depends on the OpenBLAS at hand, it is done here.
 */
#include <stdlib.h>
#include <string.h>

#include "level3.h"

/* Where the device has the matrix; NULL if part of it lies in no allocation. */
static void *locate(const struct level3 *job, const struct matrix *matrix)
{
    size_t elements, bytes;
    if (__builtin_mul_overflow((size_t)matrix->ld, (size_t)matrix->columns - 1, &elements) ||
        __builtin_add_overflow(elements, (size_t)matrix->rows, &elements) ||
        __builtin_mul_overflow(elements, size_of(job->type), &bytes))
        return NULL;
    return fakecuda_memory(job->work.context, matrix->address, bytes, job->work.order);
}

/* ---- TF32 ---- */

/* To the ten bits of mantissa that TF32 keeps, ties to even; NaN and infinity stay. */
static float round_to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000) != 0x7f800000)
        bits = (bits + 0xfff + ((bits >> 13) & 1)) & ~(uint32_t)0x1fff;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A rounded copy with the same leading dimension; elements in the gaps are not touched. */
static float *rounded_copy(const struct level3 *job, const struct matrix *matrix, const float *from)
{
    size_t parts = size_of(job->type) / sizeof(float);
    size_t rows = (size_t)matrix->rows * parts, pitch = (size_t)matrix->ld * parts;
    float *to = malloc(((size_t)matrix->columns * pitch + parts) * sizeof *to);
    for (size_t j = 0; to && j < (size_t)matrix->columns; j++)
        for (size_t i = 0; i < rows; i++)
            to[j * pitch + i] = round_to_tf32(from[j * pitch + i]);
    return to;
}

/* ---- the result ---- */

/* Bytes from one column to the next. With one column the ld may be anything, and is not used. */
static size_t pitch_of(const struct level3 *job, const struct matrix *matrix)
{
    return (size_t)(matrix->columns > 1 ? matrix->ld : 0) * size_of(job->type);
}

static void copy_columns(char *to, size_t to_pitch, const char *from, size_t from_pitch,
                         size_t bytes, size_t columns)
{
    for (size_t j = 0; j < columns; j++)
        memcpy(to + j * to_pitch, from + j * from_pitch, bytes);
}

/* Zeros in the part of C that the routine writes: its whole, or one triangle. */
static void clear_result(const struct level3 *job, char *c)
{
    size_t unit = size_of(job->type), rows = (size_t)job->c.rows, pitch = pitch_of(job, &job->c);
    bool lower = is_rank_update(job) && job->uplo == CUBLAS_FILL_MODE_LOWER;
    bool upper = is_rank_update(job) && job->uplo == CUBLAS_FILL_MODE_UPPER;
    for (size_t j = 0; j < (size_t)job->c.columns; j++) {
        size_t first = lower ? j : 0, end = upper ? j + 1 : rows;
        memset(c + j * pitch + first * unit, 0, (end - first) * unit);
    }
}

/* A Hermitian result has a real diagonal, also where BLAS would return at once (alpha 0, beta 1). */
static void clear_imaginary_diagonal(const struct level3 *job, char *c)
{
    size_t unit = size_of(job->type), step = pitch_of(job, &job->c) + unit;
    for (size_t j = 0; j < (size_t)job->c.columns; j++)
        memset(c + j * step + unit / 2, 0, unit / 2);
}

/* ---- arithmetic ---- */

static int ld_of(const struct matrix *matrix)
{
    int64_t least = matrix->rows > 1 ? matrix->rows : 1;
    return (int)(matrix->columns > 1 ? matrix->ld : least);
}

static void call_kernel(const struct level3 *job, const void *a, const void *b, void *c)
{
    const char *side = &"LR"[job->side], *uplo = &"LU"[job->uplo], *diag = &"NU"[job->diag];
    const char *ta = &"NTC"[job->trans], *tb = &"NTC"[job->transb];
    int m = (int)job->c.rows, n = (int)job->c.columns, k = (int)job->k;
    int lda = ld_of(&job->a), ldb = ld_of(&job->b), ldc = ld_of(&job->c);
    const void *alpha = &job->alpha, *beta = &job->beta;
    switch (job->family) {
    case FAMILY_gemm:
        job->kernel.gemm(ta, tb, &m, &n, &k, alpha, a, &lda, b, &ldb, beta, c, &ldc);
        break;
    case FAMILY_sided:
        job->kernel.sided(side, uplo, &m, &n, alpha, a, &lda, b, &ldb, beta, c, &ldc);
        break;
    case FAMILY_rank_k:
        job->kernel.rank_k(uplo, ta, &n, &k, alpha, a, &lda, beta, c, &ldc);
        break;
    case FAMILY_rank_2k:
        job->kernel.rank_2k(uplo, ta, &n, &k, alpha, a, &lda, b, &ldb, beta, c, &ldc);
        break;
    case FAMILY_trmm:
        job->kernel.trmm(side, uplo, ta, diag, &m, &n, alpha, a, &lda, c, &ldc);
        break;
    case FAMILY_trsm:
        job->kernel.trsm(side, uplo, ta, diag, &m, &n, alpha, a, &lda, c, &ldc);
    }
}

/* In place, after b was moved to c. */
static void compute_triangular(const struct level3 *job, const void *a, const void *b, void *c)
{
    if (!job->reads) {
        clear_result(job, c);
        return;
    }
    if (b != c)
        copy_columns(c, pitch_of(job, &job->c), b, pitch_of(job, &job->b),
                     (size_t)job->c.rows * size_of(job->type), (size_t)job->c.columns);
    call_kernel(job, a, b, c);
}

static void compute_update(const struct level3 *job, const void *a, const void *b, void *c)
{
    if (!job->keeps)
        clear_result(job, c);
    if (job->keeps || job->reads)
        call_kernel(job, a, b, c);
    if (job->routine == ROUTINE_herk || job->routine == ROUTINE_her2k)
        clear_imaginary_diagonal(job, c);
}

static void compute(const struct level3 *job, const void *a, const void *b, void *c)
{
    if (is_triangular(job))
        compute_triangular(job, a, b, c);
    else
        compute_update(job, a, b, c);
}

static CUresult compute_as_tf32(const struct level3 *job, const void *a, const void *b, void *c)
{
    float *ra = rounded_copy(job, &job->a, a);
    float *rb = has_b(job) ? rounded_copy(job, &job->b, b) : NULL;
    bool good = ra && (rb || !has_b(job));
    if (good)
        compute(job, ra, rb, c);
    free(ra);
    free(rb);
    return good ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static CUresult compute_in_mode(const struct level3 *job, const void *a, const void *b, void *c)
{
    if (job->tf32)
        return compute_as_tf32(job, a, b, c);
    compute(job, a, b, c);
    return CUDA_SUCCESS;
}

static double flops(const struct level3 *job)
{
    double m = (double)job->c.rows, n = (double)job->c.columns;
    bool has_k = job->family == FAMILY_gemm || is_rank_update(job);
    double each = is_complex(job->type) ? 4 : 1, inner = (double)(has_k ? job->k : job->a.rows);
    bool halved = job->family == FAMILY_rank_k || is_triangular(job);
    return (job->reads ? inner : 0) * m * n * each * (halved ? 1 : 2);
}

/* ---- execution ---- */

/* The second half of C: columns, or rows of the only one. */
static struct matrix second_half(const struct level3 *job)
{
    struct matrix half = job->c;
    if (half.columns > 1)
        half.columns -= half.columns / 2;
    else
        half.rows -= half.rows / 2;
    return half;
}

/* A failure that left only the first half of the result written. */
static CUresult run_half(const struct level3 *job, const void *a, const void *b, char *c)
{
    struct matrix half = second_half(job);
    size_t unit = size_of(job->type), bytes = (size_t)half.rows * unit;
    size_t columns = (size_t)half.columns, pitch = pitch_of(job, &job->c);
    char *at = c + ((size_t)job->c.columns - columns) * pitch +
               (size_t)(job->c.rows - half.rows) * unit;
    char *kept = malloc(bytes * columns);
    if (!kept)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    copy_columns(kept, bytes, at, pitch, bytes, columns);
    CUresult status = compute_in_mode(job, a, b, c);
    copy_columns(at, pitch, kept, bytes, bytes, columns);
    free(kept);
    return status;
}

CUresult level3_run(struct work *work, enum how how)
{
    const struct level3 *job = (struct level3 *)work;
    if (how == RUN_AFTER_ERROR)
        return CUDA_SUCCESS;
    bool reads_b = job->reads && has_b(job);
    const void *a = job->reads ? locate(job, &job->a) : NULL;
    const void *b = reads_b ? locate(job, &job->b) : NULL;
    void *c = locate(job, &job->c);
    if (!c || (job->reads && !a) || (reads_b && !b))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    fakecuda_spend(work->context, flops(job));
    return how == RUN_HALF ? run_half(job, a, b, c) : compute_in_mode(job, a, b, c);
}
