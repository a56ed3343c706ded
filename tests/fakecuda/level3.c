/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas: gemm in four types and two integer widths, computed by a private OpenBLAS. Scalars
 * are in host memory and read at the call; matrices are read and written when the stream runs.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cublas.h"

#define DECLARE_GEMM(name, type) \
    void name(const char *transa, const char *transb, const int *m, const int *n, const int *k, \
              const type *alpha, const type *a, const int *lda, const type *b, const int *ldb, \
              const type *beta, type *c, const int *ldc);
DECLARE_GEMM(sgemm_, float)
DECLARE_GEMM(dgemm_, double)
DECLARE_GEMM(cgemm_, cuComplex)
DECLARE_GEMM(zgemm_, cuDoubleComplex)

union scalar {
    float s;
    double d;
    cuComplex c;
    cuDoubleComplex z;
};

struct matrix {
    CUdeviceptr address;
    int64_t rows, columns, ld; /* as stored */
};

struct gemm {
    struct work work;
    char type; /* s, d, c or z */
    cublasOperation_t transa, transb;
    int64_t m, n, k;
    union scalar alpha, beta;
    struct matrix a, b, c;
    bool reads; /* a and b matter: neither alpha nor k is 0 */
    bool tf32;
};

static size_t size_of(char type)
{
    return type == 's' ? sizeof(float) : type == 'z' ? sizeof(cuDoubleComplex) : sizeof(double);
}

static bool is_single(char type)
{
    return type == 's' || type == 'c';
}

static bool is_zero(char type, const union scalar *x)
{
    switch (type) {
    case 's':
        return x->s == 0;
    case 'd':
        return x->d == 0;
    case 'c':
        return x->c.x == 0 && x->c.y == 0;
    default:
        return x->z.x == 0 && x->z.y == 0;
    }
}

/* ---- execution ---- */

/* Where the device has the matrix; NULL if part of it lies in no allocation. */
static void *locate(const struct gemm *job, const struct matrix *matrix)
{
    size_t elements, bytes;
    if (__builtin_mul_overflow((size_t)matrix->ld, (size_t)matrix->columns - 1, &elements) ||
        __builtin_add_overflow(elements, (size_t)matrix->rows, &elements) ||
        __builtin_mul_overflow(elements, size_of(job->type), &bytes))
        return NULL;
    return fakecuda_memory(job->work.context, matrix->address, bytes, job->work.order);
}

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
static float *rounded_copy(const struct gemm *job, const struct matrix *matrix, const float *from)
{
    size_t parts = size_of(job->type) / sizeof(float);
    size_t rows = (size_t)matrix->rows * parts, pitch = (size_t)matrix->ld * parts;
    float *to = malloc(((size_t)matrix->columns * pitch + parts) * sizeof *to);
    for (size_t j = 0; to && j < (size_t)matrix->columns; j++)
        for (size_t i = 0; i < rows; i++)
            to[j * pitch + i] = round_to_tf32(from[j * pitch + i]);
    return to;
}

static int ld_of(const struct matrix *matrix)
{
    int64_t least = matrix->rows > 1 ? matrix->rows : 1;
    return (int)(matrix->columns > 1 ? matrix->ld : least);
}

static void multiply(const struct gemm *job, int m, int n, const void *a, const void *b, void *c)
{
    const char *ta = &"NTC"[job->transa], *tb = &"NTC"[job->transb];
    int k = (int)job->k, lda = ld_of(&job->a), ldb = ld_of(&job->b), ldc = ld_of(&job->c);
    const union scalar *alpha = &job->alpha, *beta = &job->beta;
    switch (job->type) {
    case 's':
        sgemm_(ta, tb, &m, &n, &k, &alpha->s, a, &lda, b, &ldb, &beta->s, c, &ldc);
        break;
    case 'd':
        dgemm_(ta, tb, &m, &n, &k, &alpha->d, a, &lda, b, &ldb, &beta->d, c, &ldc);
        break;
    case 'c':
        cgemm_(ta, tb, &m, &n, &k, &alpha->c, a, &lda, b, &ldb, &beta->c, c, &ldc);
        break;
    default:
        zgemm_(ta, tb, &m, &n, &k, &alpha->z, a, &lda, b, &ldb, &beta->z, c, &ldc);
    }
}

static CUresult multiply_rounded(const struct gemm *job, int m, int n, const void *a,
                                 const void *b, void *c)
{
    float *ra = rounded_copy(job, &job->a, a), *rb = rounded_copy(job, &job->b, b);
    if (ra && rb)
        multiply(job, m, n, ra, rb, c);
    free(ra);
    free(rb);
    return ra && rb ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static CUresult run_gemm(struct work *work, enum how how)
{
    struct gemm *job = (struct gemm *)work;
    if (how == RUN_AFTER_ERROR)
        return CUDA_SUCCESS;
    const void *a = job->reads ? locate(job, &job->a) : NULL;
    const void *b = job->reads ? locate(job, &job->b) : NULL;
    void *c = locate(job, &job->c);
    int m = (int)job->m, n = (int)job->n;
    if (!c || (job->reads && (!a || !b)))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (how == RUN_HALF && n > 1)
        n /= 2;
    else if (how == RUN_HALF)
        m /= 2;
    double flops = job->type == 's' || job->type == 'd' ? 2 : 8;
    fakecuda_spend(work->context, flops * (double)job->m * (double)job->n * (double)job->k);
    if (job->tf32 && job->reads)
        return multiply_rounded(job, m, n, a, b, c);
    multiply(job, m, n, a, b, c);
    return CUDA_SUCCESS;
}

/* ---- the call ---- */

static bool is_operation(cublasOperation_t operation)
{
    return operation >= CUBLAS_OP_N && operation <= CUBLAS_OP_C;
}

static bool enough_ld(const struct matrix *matrix)
{
    return matrix->ld >= 1 && matrix->ld >= matrix->rows;
}

/* In the order of cuBLAS, which looks at the leading dimensions before it finds nothing to do. */
static cublasStatus_t check(const struct gemm *job)
{
    if (!is_operation(job->transa) || !is_operation(job->transb) || job->m < 0 || job->n < 0 ||
        job->k < 0 || !enough_ld(&job->a) || !enough_ld(&job->b) || !enough_ld(&job->c))
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

static bool fits_int(const struct matrix *matrix)
{
    return matrix->rows <= INT_MAX && matrix->columns <= INT_MAX &&
           (matrix->columns <= 1 || matrix->ld <= INT_MAX);
}

/* Operands: none may be missing, misaligned, or too large for the OpenBLAS inside. */
static cublasStatus_t check_operands(const struct gemm *job)
{
    size_t unit = size_of(job->type);
    if (!job->c.address || (job->reads && (!job->a.address || !job->b.address)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (job->c.address % unit || (job->reads && (job->a.address % unit || job->b.address % unit)) ||
        !fits_int(&job->a) || !fits_int(&job->b) || !fits_int(&job->c))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

static bool wants_tf32(cublasHandle_t handle, char type)
{
    int mode = handle->mode & 15;
    if (!is_single(type) || handle->tf32_forbidden || mode == CUBLAS_PEDANTIC_MATH)
        return false;
    return handle->tf32_forced || mode == CUBLAS_TF32_TENSOR_OP_MATH;
}

static cublasStatus_t start(struct call *call, cublasHandle_t handle, struct gemm *job,
                            const void *alpha, const void *beta)
{
    if (!handle_is_good(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    CUstream stream = fakecuda_stream(handle->stream);
    cublasStatus_t status = check(job);
    if (status || job->m == 0 || job->n == 0)
        return status;
    if (!stream || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&job->alpha, alpha, size_of(job->type));
    memcpy(&job->beta, beta, size_of(job->type));
    job->reads = job->k > 0 && !is_zero(job->type, &job->alpha);
    if (!job->reads) { /* no OpenBLAS kernel may look at a and b, then */
        memset(&job->alpha, 0, sizeof job->alpha);
        job->k = 0;
    }
    status = check_operands(job);
    if (status)
        return status;
    job->tf32 = wants_tf32(handle, job->type);
    job->work.run = run_gemm;
    struct gemm *queued = malloc(sizeof *queued);
    if (!queued)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *queued = *job;
    fakecuda_queue(call, stream, &queued->work);
    return CUBLAS_STATUS_SUCCESS;
}

static struct matrix stored(const void *pointer, cublasOperation_t operation, int64_t rows,
                            int64_t columns, int64_t ld)
{
    bool plain = operation == CUBLAS_OP_N;
    return (struct matrix){ (CUdeviceptr)(uintptr_t)pointer, plain ? rows : columns,
                            plain ? columns : rows, ld };
}

#define DEFINE_GEMM(name, letter, element, integer) \
    FAKE_EXPORT cublasStatus_t name( \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
        integer m, integer n, integer k, const element *alpha, const element *a, integer lda, \
        const element *b, integer ldb, const element *beta, element *c, integer ldc) \
    { \
        struct call call; \
        struct gemm job = { .type = letter, .transa = transa, .transb = transb, \
                            .m = m, .n = n, .k = k, \
                            .a = stored(a, transa, m, k, lda), \
                            .b = stored(b, transb, k, n, ldb), \
                            .c = stored(c, CUBLAS_OP_N, m, n, ldc) }; \
        if (!fakecuda_enter(&call, ENTRY_##name, NEEDS_CONTEXT | TAKES_STREAM)) \
            return call.status; \
        return fakecuda_leave(&call, start(&call, handle, &job, alpha, beta)); \
    }
DEFINE_GEMM(cublasSgemm_v2, 's', float, int)
DEFINE_GEMM(cublasDgemm_v2, 'd', double, int)
DEFINE_GEMM(cublasCgemm_v2, 'c', cuComplex, int)
DEFINE_GEMM(cublasZgemm_v2, 'z', cuDoubleComplex, int)
DEFINE_GEMM(cublasSgemm_v2_64, 's', float, int64_t)
DEFINE_GEMM(cublasDgemm_v2_64, 'd', double, int64_t)
DEFINE_GEMM(cublasCgemm_v2_64, 'c', cuComplex, int64_t)
DEFINE_GEMM(cublasZgemm_v2_64, 'z', cuDoubleComplex, int64_t)
