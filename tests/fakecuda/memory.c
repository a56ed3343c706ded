/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda: the bytes of the device. Each allocation is one shared memory object mapped twice: the
 * address handed out has no access rights, so that a host access faults; work of the device uses
 * the other view. New memory is full of NaN. After a free the address stays reserved for a while,
 * so that a stale pointer hits nothing instead of its successor. After that, the two views of a
 * small block serve the next block of its size: making and removing them costs more than all the
 * rest of a small call.
 *
 * The second view comes from mremap with an old size of 0, not from a memfd: growing a file, even
 * one in memory, is subject to RLIMIT_FSIZE and its signal.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

enum { QUARANTINE = 256, GRANULE = 512, SPARE = 64, SMALL = 1 << 20, KEPT = 32 << 20 };

enum state { PENDING, LIVE, FREED };

struct block {
    struct block *next;
    CUdeviceptr address;
    char *view; /* readable and writable */
    size_t bytes, mapped, charged;
    enum state state;           /* as the device sees it */
    unsigned long freed_before; /* order from which no work may use it; 0: not freed */
    CUmemoryPool pool;
};

static struct block *blocks; /* that the device has not freed */
static struct block *freed;  /* whose address is still reserved, oldest first */
static struct block **freed_end = &freed;
static unsigned freed_count;
static struct block *spare; /* small ones whose views may be used again */
static unsigned spare_count;
static size_t kept; /* bytes of the views of freed and spare blocks */

static bool contains(const struct block *block, CUdeviceptr address, size_t bytes)
{
    return address >= block->address && address - block->address <= block->bytes &&
           bytes <= block->bytes - (address - block->address);
}

static struct block *find(CUdeviceptr address, size_t bytes)
{
    for (struct block *block = blocks; block; block = block->next)
        if (contains(block, address, bytes))
            return block;
    return NULL;
}

void *fakecuda_memory(CUcontext context, CUdeviceptr address, size_t bytes, unsigned long order)
{
    const struct block *block = find(address, bytes);
    if (!block || block->state != LIVE || block->pool->device != context->device ||
        (block->freed_before && order > block->freed_before))
        return NULL;
    return block->view + (address - block->address);
}

bool memory_known(CUdeviceptr address, size_t bytes)
{
    const struct block *block = find(address, bytes);
    return block && !block->freed_before;
}

unsigned long memory_live(size_t *bytes)
{
    unsigned long count = 0;
    *bytes = 0;
    for (const struct block *block = blocks; block; block = block->next) {
        count += !block->freed_before;
        *bytes += block->freed_before ? 0 : block->bytes;
    }
    return count;
}

static bool map_new_views(struct block *block)
{
    int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    void *view = mmap(NULL, block->mapped, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (view == MAP_FAILED)
        return false;
    void *face = mremap(view, 0, block->mapped, MREMAP_MAYMOVE);
    if (face == MAP_FAILED || mprotect(face, block->mapped, PROT_NONE)) {
        munmap(view, block->mapped);
        return false;
    }
    madvise(view, block->mapped, MADV_DONTFORK);
    madvise(face, block->mapped, MADV_DONTFORK);
    block->view = view;
    block->address = (CUdeviceptr)(uintptr_t)face;
    return true;
}

static bool take_spare_views(struct block *block)
{
    for (struct block **at = &spare; *at; at = &(*at)->next) {
        struct block *found = *at;
        if (found->mapped != block->mapped)
            continue;
        block->view = found->view;
        block->address = found->address;
        *at = found->next;
        free(found);
        spare_count--;
        kept -= block->mapped;
        return true;
    }
    return false;
}

static bool map_views(struct block *block)
{
    if (!take_spare_views(block) && !map_new_views(block))
        return false;
    memset(block->view, FAKE_POISON, block->bytes);
    return true;
}

static struct block *make_block(CUmemoryPool pool, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->bytes = bytes;
    block->mapped = (bytes + page - 1) / page * page;
    block->charged = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    block->pool = pool;
    if (!pool_take(pool, block->charged)) {
        free(block);
        return NULL;
    }
    if (!map_views(block)) {
        pool->used -= block->charged;
        free(block);
        return NULL;
    }
    block->next = blocks;
    blocks = block;
    return block;
}

static void unmap_view(struct block *block)
{
    madvise(block->view, block->mapped, MADV_REMOVE);
    munmap(block->view, block->mapped);
    block->view = NULL;
}

/* The oldest of the freed loses its address, or becomes spare. */
static void end_quarantine(void)
{
    struct block *block = freed;
    freed = block->next;
    freed_count--;
    if (block->view && spare_count < SPARE) {
        block->next = spare;
        spare = block;
        spare_count++;
        return;
    }
    if (block->view) {
        kept -= block->mapped;
        unmap_view(block);
    }
    munmap((void *)(uintptr_t)block->address, block->mapped);
    free(block);
}

/* Takes the block out of the list of usable ones. */
static void bury(struct block *block)
{
    struct block **at = &blocks;
    while (*at != block)
        at = &(*at)->next;
    *at = block->next;
    if (block->mapped > SMALL || block->mapped > KEPT - kept)
        unmap_view(block);
    else
        kept += block->mapped;
    block->next = NULL;
    *freed_end = block;
    freed_end = &block->next;
    if (++freed_count > QUARANTINE)
        end_quarantine();
}

/* Work that begins or ends the life of a block in stream order, whatever failed before it. */
struct block_work {
    struct work work;
    struct block *block;
};

static CUresult run_alloc(struct work *work, enum how how)
{
    struct block *block = ((struct block_work *)work)->block;
    (void)how;
    if (block->state == PENDING)
        block->state = LIVE;
    return CUDA_SUCCESS;
}

static CUresult run_free(struct work *work, enum how how)
{
    struct block *block = ((struct block_work *)work)->block;
    (void)how;
    bool early = block->state != LIVE; /* freed in a stream that ran ahead of the allocation */
    pool_free_done(block->pool, block->charged);
    block->state = FREED;
    if (!early)
        bury(block);
    return early ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult alloc(struct call *call, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                      CUstream handle)
{
    CUstream stream = fakecuda_stream(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pointer || !fakecuda_object_is(pool, OBJECT_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) {
        *pointer = 0;
        return CUDA_SUCCESS;
    }
    struct block_work *job = calloc(1, sizeof *job);
    struct block *block = job ? make_block(pool, bytes) : NULL;
    if (!block) {
        free(job);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    job->work.run = run_alloc;
    job->block = block;
    *pointer = block->address;
    fakecuda_queue(call, stream, &job->work);
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes,
                                             CUmemoryPool pool, CUstream stream)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuMemAllocFromPoolAsync, NEEDS_CONTEXT | TAKES_STREAM))
        return call.status;
    return fakecuda_leave(&call, alloc(&call, pointer, bytes, pool, stream));
}

static CUresult release(struct call *call, CUdeviceptr pointer, CUstream handle)
{
    CUstream stream = fakecuda_stream(handle);
    struct block *block = find(pointer, 1);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (pointer == 0)
        return CUDA_SUCCESS;
    if (!block || block->address != pointer || block->freed_before)
        return CUDA_ERROR_INVALID_VALUE;
    struct block_work *job = calloc(1, sizeof *job);
    if (!job)
        return CUDA_ERROR_OUT_OF_MEMORY;
    job->work.run = run_free;
    job->block = block;
    fakecuda_queue(call, stream, &job->work);
    block->freed_before = job->work.order;
    pool_free_called(block->pool, block->charged);
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuMemFreeAsync, NEEDS_CONTEXT | TAKES_STREAM | RELEASES))
        return call.status;
    return fakecuda_leave(&call, release(&call, pointer, stream));
}
