/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas: the calls of level 3, in their types and two integer widths. Scalars are in host
 * memory and read at the call; matrices are read and written when the stream runs.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "level3.h"

/* ---- arguments ---- */

static bool enough_ld(const struct matrix *matrix)
{
    return matrix->rows >= 0 && matrix->columns >= 0 && matrix->ld >= 1 &&
           matrix->ld >= matrix->rows;
}

/* A symmetric update of complex type has no adjoint, a Hermitian one no transpose, as in BLAS. */
static bool is_operation(const struct level3 *job, cublasOperation_t operation)
{
    bool hermitian = job->routine == ROUTINE_herk || job->routine == ROUTINE_her2k;
    switch (operation) {
    case CUBLAS_OP_N:
        return true;
    case CUBLAS_OP_T:
        return !hermitian;
    case CUBLAS_OP_C:
        return hermitian || !is_rank_update(job) || !is_complex(job->type);
    default:
        return false;
    }
}

/* Leading dimensions count even where there is nothing to do, as in cuBLAS. */
static cublasStatus_t check(const struct level3 *job)
{
    bool good = is_operation(job, job->trans) && is_operation(job, job->transb) &&
                (unsigned)job->side <= CUBLAS_SIDE_RIGHT &&
                (unsigned)job->uplo <= CUBLAS_FILL_MODE_UPPER &&
                (unsigned)job->diag <= CUBLAS_DIAG_UNIT && job->k >= 0 && enough_ld(&job->a) &&
                (!has_b(job) || enough_ld(&job->b)) && enough_ld(&job->c);
    return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static bool fits_int(const struct matrix *matrix)
{
    return matrix->rows <= INT_MAX && matrix->columns <= INT_MAX &&
           (matrix->columns <= 1 || matrix->ld <= INT_MAX);
}

/* None may be missing, misaligned, or too large for the OpenBLAS inside. */
static cublasStatus_t check_operand(const struct level3 *job, const struct matrix *matrix)
{
    if (!matrix->address)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (matrix->address % size_of(job->type) || !fits_int(matrix))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

/* The result of trmm may be b itself; "no other overlapping is supported", says the manual. */
static bool overlap_is_supported(const struct level3 *job)
{
    if (job->family != FAMILY_trmm || !job->reads)
        return true;
    return job->c.address != job->a.address &&
           (job->c.address != job->b.address || job->c.ld == job->b.ld);
}

static cublasStatus_t check_operands(const struct level3 *job)
{
    cublasStatus_t status = check_operand(job, &job->c);
    if (!status && job->reads)
        status = check_operand(job, &job->a);
    if (!status && job->reads && has_b(job))
        status = check_operand(job, &job->b);
    if (!status && !overlap_is_supported(job))
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    return status;
}

/* ---- the call ---- */

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

static char real_of(char type)
{
    return type == 'c' ? 's' : type == 'z' ? 'd' : type;
}

static bool read_scalars(struct level3 *job)
{
    bool herk = job->routine == ROUTINE_herk, her2k = job->routine == ROUTINE_her2k;
    char alpha_type = herk ? real_of(job->type) : job->type;
    char beta_type = herk || her2k ? real_of(job->type) : job->type;
    if (!job->host_alpha || (!is_triangular(job) && !job->host_beta))
        return false;
    memcpy(&job->alpha, job->host_alpha, size_of(alpha_type));
    if (job->host_beta)
        memcpy(&job->beta, job->host_beta, size_of(beta_type));
    bool has_k = job->family == FAMILY_gemm || is_rank_update(job);
    job->reads = (job->k > 0 || !has_k) && !is_zero(alpha_type, &job->alpha);
    job->keeps = !is_zero(beta_type, &job->beta);
    if (!job->reads) { /* no OpenBLAS kernel may look at a and b, then */
        memset(&job->alpha, 0, sizeof job->alpha);
        job->k = 0;
    }
    return true;
}

static bool wants_tf32(cublasHandle_t handle, char type)
{
    int mode = handle->mode & 15;
    if (real_of(type) == 'd' || handle->tf32_forbidden || mode == CUBLAS_PEDANTIC_MATH)
        return false;
    return handle->tf32_forced || mode == CUBLAS_TF32_TENSOR_OP_MATH;
}

static cublasStatus_t start(struct call *call, cublasHandle_t handle, struct level3 *job)
{
    if (!handle_is_good(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    CUstream stream = fakecuda_stream(handle->stream);
    cublasStatus_t status = check(job);
    if (status || job->c.rows == 0 || job->c.columns == 0)
        return status;
    if (!stream || !read_scalars(job))
        return CUBLAS_STATUS_INVALID_VALUE;
    status = check_operands(job);
    if (status)
        return status;
    job->tf32 = job->reads && wants_tf32(handle, job->type);
    job->work.run = level3_run;
    struct level3 *queued = malloc(sizeof *queued);
    if (!queued)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *queued = *job;
    fakecuda_queue(call, stream, &queued->work);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_call(enum entry entry, cublasHandle_t handle, struct level3 *job)
{
    struct call call;
    if (!fakecuda_enter(&call, entry, NEEDS_CONTEXT | TAKES_STREAM))
        return call.status;
    return fakecuda_leave(&call, start(&call, handle, job));
}

/* ---- the entry points ---- */

static struct matrix stored(const void *pointer, int64_t rows, int64_t columns, int64_t ld)
{
    return (struct matrix){ (CUdeviceptr)(uintptr_t)pointer, rows, columns, ld };
}

/* The matrix of which op(X) is rows x columns. */
static struct matrix under(cublasOperation_t operation, const void *pointer, int64_t rows,
                           int64_t columns, int64_t ld)
{
    return operation == CUBLAS_OP_N ? stored(pointer, rows, columns, ld)
                                    : stored(pointer, columns, rows, ld);
}

/* The square matrix at that side of one that is rows x columns. */
static struct matrix beside(cublasSideMode_t side, const void *pointer, int64_t rows,
                            int64_t columns, int64_t ld)
{
    int64_t order = side == CUBLAS_SIDE_LEFT ? rows : columns;
    return stored(pointer, order, order, ld);
}

#define PARAMETERS_gemm(integer, element, of_alpha, of_beta) \
    (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m, \
     integer n, integer k, const of_alpha *alpha, const element *a, integer lda, \
     const element *b, integer ldb, const of_beta *beta, element *c, integer ldc)
#define MEMBERS_gemm \
    .trans = transa, .transb = transb, .k = k, .host_beta = beta, \
    .a = under(transa, a, m, k, lda), .b = under(transb, b, k, n, ldb), .c = stored(c, m, n, ldc)

#define PARAMETERS_sided(integer, element, of_alpha, of_beta) \
    (cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, integer m, integer n, \
     const of_alpha *alpha, const element *a, integer lda, const element *b, integer ldb, \
     const of_beta *beta, element *c, integer ldc)
#define MEMBERS_sided \
    .side = side, .uplo = uplo, .host_beta = beta, \
    .a = beside(side, a, m, n, lda), .b = stored(b, m, n, ldb), .c = stored(c, m, n, ldc)

#define PARAMETERS_rank_k(integer, element, of_alpha, of_beta) \
    (cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, integer n, integer k, \
     const of_alpha *alpha, const element *a, integer lda, const of_beta *beta, element *c, \
     integer ldc)
#define MEMBERS_rank_k \
    .uplo = uplo, .trans = trans, .k = k, .host_beta = beta, \
    .a = under(trans, a, n, k, lda), .c = stored(c, n, n, ldc)

#define PARAMETERS_rank_2k(integer, element, of_alpha, of_beta) \
    (cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, integer n, integer k, \
     const of_alpha *alpha, const element *a, integer lda, const element *b, integer ldb, \
     const of_beta *beta, element *c, integer ldc)
#define MEMBERS_rank_2k MEMBERS_rank_k, .b = under(trans, b, n, k, ldb)

#define PARAMETERS_trmm(integer, element, of_alpha, of_beta) \
    (cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, \
     cublasOperation_t trans, cublasDiagType_t diag, integer m, integer n, \
     const of_alpha *alpha, const element *a, integer lda, const element *b, integer ldb, \
     element *c, integer ldc)
#define MEMBERS_trmm \
    .side = side, .uplo = uplo, .trans = trans, .diag = diag, \
    .a = beside(side, a, m, n, lda), .b = stored(b, m, n, ldb), .c = stored(c, m, n, ldc)

#define PARAMETERS_trsm(integer, element, of_alpha, of_beta) \
    (cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, \
     cublasOperation_t trans, cublasDiagType_t diag, integer m, integer n, \
     const of_alpha *alpha, const element *a, integer lda, element *b, integer ldb)
#define MEMBERS_trsm \
    .side = side, .uplo = uplo, .trans = trans, .diag = diag, \
    .a = beside(side, a, m, n, lda), .b = stored(b, m, n, ldb), .c = stored(b, m, n, ldb)

#define DEFINE(name, parameters, family_, routine_, small, members) \
    FAKE_EXPORT cublasStatus_t name parameters \
    { \
        struct level3 job = { .family = FAMILY_##family_, .routine = ROUTINE_##routine_, \
                              .type = #small[0], .kernel.family_ = small##routine_##_, \
                              .host_alpha = alpha, members }; \
        return do_call(ENTRY_##name, handle, &job); \
    }
#define LEVEL3(family, routine, letter, small, element, of_alpha, of_beta) \
    kernel_##family small##routine##_; \
    DEFINE(cublas##letter##routine##_v2, PARAMETERS_##family(int, element, of_alpha, of_beta), \
           family, routine, small, MEMBERS_##family) \
    DEFINE(cublas##letter##routine##_v2_64, \
           PARAMETERS_##family(int64_t, element, of_alpha, of_beta), family, routine, small, \
           MEMBERS_##family)
#include "level3_calls.inc"
