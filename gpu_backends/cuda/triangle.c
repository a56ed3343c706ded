/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of one triangle of a square matrix, in block columns: below (or above) the diagonal
 * blocks lie rectangles, which go directly; the diagonal blocks go through a staging buffer on
 * the host that holds zeros where the other triangle would be.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu_backends/cuda/cuda.h"

/* Small enough that staging is a small part of the matrix, large enough for few copies. */
enum { BLOCK = 256 };

static int64_t width_at(const struct gs_operand *operand, int64_t j)
{
    return operand->cols - j < BLOCK ? operand->cols - j : BLOCK;
}

/* The diagonal blocks one after the other, each BLOCK x BLOCK packed with ld = BLOCK. */
static bool make_staging(gs_dtype dtype, const struct gs_operand *operand,
                         struct gs_device_range *range, struct gs_run *run)
{
    size_t blocks = (size_t)(operand->cols + BLOCK - 1) / BLOCK;
    if (range->staging == NULL)
        range->staging = calloc(blocks, (size_t)BLOCK * BLOCK * gs_element_bytes(dtype));
    if (range->staging == NULL)
        run->reason = GS_MEM_HOST;
    return range->staging != NULL;
}

/* The staged diagonal block of columns j …, as an operand whose element (j, j) is its first. */
static struct gs_operand staged_block(gs_dtype dtype, const struct gs_device_range *range,
                                      int64_t j)
{
    char *block = (char *)range->staging +
                  (size_t)(j / BLOCK) * BLOCK * BLOCK * gs_element_bytes(dtype);
    return (struct gs_operand){.host = block, .rows = BLOCK, .cols = BLOCK, .ld = BLOCK};
}

static void clear_imaginary(gs_dtype dtype, void *element)
{
    if (dtype == GS_C32)
        ((float *)element)[1] = 0;
    else
        ((double *)element)[1] = 0;
}

/* Moves the triangle's part of column j between operand and staging. */
static void move_column(gs_dtype dtype, const struct gs_operand *operand,
                        const struct gs_device_range *range, int64_t j, bool to_staging)
{
    size_t element = gs_element_bytes(dtype);
    int64_t block_start = j / BLOCK * BLOCK;
    int64_t block_end = block_start + width_at(operand, block_start);
    int64_t first = operand->part == GS_LOWER ? j : block_start;
    int64_t end = operand->part == GS_LOWER ? block_end : j + 1;
    struct gs_operand block = staged_block(dtype, range, block_start);
    char *staged = (char *)block.host +
                   (size_t)((first - block_start) + (j - block_start) * BLOCK) * element;
    char *host = (char *)operand->host +
                 ((size_t)j * (size_t)operand->ld + (size_t)first) * element;
    size_t bytes = (size_t)(end - first) * element;
    char *diagonal = staged + (size_t)(j - first) * element;
    if (to_staging)
        memcpy(staged, host, bytes);
    if (operand->hermitian)
        clear_imaginary(dtype, diagonal);
    if (!to_staging)
        memcpy(host, staged, bytes);
}

/* Device range of the diagonal block, its element (j, j) first. */
static struct gs_device_range diagonal_range(gs_dtype dtype, const struct gs_device_range *range,
                                             int64_t j)
{
    struct gs_device_range block = *range;
    block.address += (size_t)(j + j * range->ld) * gs_element_bytes(dtype);
    return block;
}

/* First row and number of rows of the rectangle beside the diagonal block of columns j …. */
static void rectangle_at(const struct gs_operand *operand, int64_t j, int64_t *row, int64_t *rows)
{
    *row = operand->part == GS_LOWER ? j + width_at(operand, j) : 0;
    *rows = operand->part == GS_LOWER ? operand->rows - *row : j;
}

bool gs_triangle_to_device(struct gs_lane *lane, gs_dtype dtype,
                           const struct gs_operand *operand, struct gs_device_range *range,
                           struct gs_run *run)
{
    if (!make_staging(dtype, operand, range, run))
        return false;
    for (int64_t j = 0; j < operand->cols; j++)
        move_column(dtype, operand, range, j, true);
    for (int64_t j = 0; j < operand->cols; j += BLOCK) {
        int64_t row, rows, width = width_at(operand, j);
        struct gs_operand block = staged_block(dtype, range, j);
        struct gs_device_range diagonal = diagonal_range(dtype, range, j);
        rectangle_at(operand, j, &row, &rows);
        if (!gs_copy_block_in(lane, dtype, operand, range, row, j, rows, width, run) ||
            !gs_copy_block_in(lane, dtype, &block, &diagonal, 0, 0, width, width, run))
            return false;
    }
    return true;
}

bool gs_triangle_to_host(struct gs_lane *lane, gs_dtype dtype, const struct gs_operand *operand,
                         struct gs_device_range *range, struct gs_run *run)
{
    if (!make_staging(dtype, operand, range, run))
        return false;
    for (int64_t j = 0; j < operand->cols; j += BLOCK) {
        int64_t row, rows, width = width_at(operand, j);
        struct gs_operand block = staged_block(dtype, range, j);
        struct gs_device_range diagonal = diagonal_range(dtype, range, j);
        rectangle_at(operand, j, &row, &rows);
        if (!gs_copy_block_out(lane, dtype, operand, range, row, j, rows, width, run) ||
            !gs_copy_block_out(lane, dtype, &block, &diagonal, 0, 0, width, width, run))
            return false;
    }
    return true;
}

void gs_triangle_finish(gs_dtype dtype, const struct gs_operand *operand,
                        const struct gs_device_range *range)
{
    if (operand->part == GS_FULL || range->staging == NULL)
        return;
    for (int64_t j = 0; j < operand->cols; j++)
        move_column(dtype, operand, range, j, false);
}
