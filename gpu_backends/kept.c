/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_backends/kept.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* Idle buffers, each slot taken and filled by exchange: no lock that a fork could leave behind. */
enum { SLOTS = 8 };

struct idle {
    void *bytes;
    size_t size;
};
static struct idle idle[SLOTS];
static _Atomic int slot_state[SLOTS]; /* FREE: nothing; HELD: a buffer; BUSY: being changed */
enum { FREE, BUSY, HELD };
static _Atomic size_t idle_bytes;

static size_t round_up(size_t bytes)
{
    const size_t step = (size_t)2 << 20; /* whole huge pages, and fewer distinct sizes */
    return (bytes + step - 1) / step * step;
}

static bool from_pool(struct gs_kept *kept, size_t size)
{
    for (int i = 0; i < SLOTS; i++) {
        int expected = HELD;
        if (!atomic_compare_exchange_strong(&slot_state[i], &expected, BUSY))
            continue;
        if (idle[i].size >= size) {
            kept->bytes = idle[i].bytes;
            kept->size = idle[i].size;
            atomic_fetch_sub(&idle_bytes, kept->size);
            atomic_store(&slot_state[i], FREE);
            return true;
        }
        atomic_store(&slot_state[i], HELD);
    }
    return false;
}

bool gs_kept_take(struct gs_kept *kept, gs_dtype dtype, const struct gs_operand *operand)
{
    double bytes = (double)operand->rows * (double)operand->cols * (double)gs_element_bytes(dtype);
    kept->filled = false;
    kept->bytes = NULL;
    if (bytes > 0x1p46)
        return false;
    size_t size = round_up((size_t)bytes);
    if (from_pool(kept, size))
        return true;
    /* mmap, not malloc: a refusal here must not disturb the program's heap. */
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    madvise(map, size, MADV_HUGEPAGE);
    kept->bytes = map;
    kept->size = size;
    return true;
}

/* Copies the referenced elements of each column between the operand and the packed buffer. */
static void copy_columns(void *buffer, gs_dtype dtype, const struct gs_operand *operand,
                         bool restore)
{
    size_t element = gs_element_bytes(dtype);
    for (int64_t j = 0; j < operand->cols; j++) {
        size_t first = (size_t)gs_first_row(operand, j);
        size_t bytes = ((size_t)gs_end_row(operand, j) - first) * element;
        char *kept = (char *)buffer + ((size_t)j * (size_t)operand->rows + first) * element;
        char *host = (char *)operand->host + ((size_t)j * (size_t)operand->ld + first) * element;
        memcpy(restore ? host : kept, restore ? kept : host, bytes);
    }
}

void gs_kept_fill(struct gs_kept *kept, gs_dtype dtype, const struct gs_operand *operand)
{
    copy_columns(kept->bytes, dtype, operand, false);
    kept->filled = true;
}

void gs_kept_restore(const struct gs_kept *kept, gs_dtype dtype, const struct gs_operand *operand)
{
    if (kept->filled)
        copy_columns(kept->bytes, dtype, operand, true);
}

void gs_kept_give(struct gs_kept *kept)
{
    if (kept->bytes == NULL)
        return;
    for (int i = 0; i < SLOTS && atomic_load(&idle_bytes) + kept->size <= GS_KEPT_POOL_BYTES;
         i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&slot_state[i], &expected, BUSY))
            continue;
        idle[i] = (struct idle){kept->bytes, kept->size};
        atomic_fetch_add(&idle_bytes, kept->size);
        atomic_store(&slot_state[i], HELD);
        kept->bytes = NULL;
        return;
    }
    munmap(kept->bytes, kept->size);
    kept->bytes = NULL;
}
