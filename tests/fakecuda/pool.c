/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda: memory pools, as accounts. A pool holds memory of the device until a synchronisation
 * finds more than the release threshold, or the pool is trimmed; memory held is not free for
 * others. The bytes themselves are in memory.c.
 */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static size_t held(int device)
{
    size_t sum = 0;
    for (const struct object *at = objects_first(); at; at = at->next) {
        const struct CUmemPoolHandle_st *pool = (const void *)at;
        if (at->kind == OBJECT_POOL && pool->device == device)
            sum += pool->reserved;
    }
    return sum;
}

bool pool_take(CUmemoryPool pool, size_t bytes)
{
    size_t used = pool->used + bytes;
    size_t growth = used > pool->reserved ? used - pool->reserved : 0;
    if (bytes > settings()->memory || growth > settings()->memory - held(pool->device) ||
        (pool->limit && used > pool->limit))
        return false;
    pool->used = used;
    pool->reserved += growth;
    return true;
}

void pool_free_called(CUmemoryPool pool, size_t bytes)
{
    pool->used -= bytes;
    pool->freeing += bytes;
}

void pool_free_done(CUmemoryPool pool, size_t bytes)
{
    pool->freeing -= bytes;
}

/* Memory whose free the device has not reached is not given back. */
static void release(CUmemoryPool pool, uint64_t keep)
{
    size_t needed = pool->used + pool->freeing;
    if (pool->reserved > needed && pool->reserved > keep)
        pool->reserved = keep > needed ? (size_t)keep : needed;
}

void pools_release(int device)
{
    for (struct object *at = objects_first(); at; at = at->next) {
        CUmemoryPool pool = (CUmemoryPool)at;
        if (at->kind == OBJECT_POOL && pool->device == device)
            release(pool, pool->threshold);
    }
}

FAKE_EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuMemGetInfo_v2, NEEDS_CONTEXT))
        return call.status;
    if (!available || !total)
        return fakecuda_leave(&call, CUDA_ERROR_INVALID_VALUE);
    *total = settings()->memory;
    *available = *total - held(fakecuda_context()->device);
    return fakecuda_leave(&call, CUDA_SUCCESS);
}

static bool good_properties(const CUmemPoolProps *properties)
{
    static const unsigned char zeros[sizeof properties->reserved];
    return properties && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
           properties->handleTypes == 0 &&
           properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           properties->location.id >= 0 && properties->location.id < visible_devices() &&
           memcmp(properties->reserved, zeros, sizeof zeros) == 0;
}

static CUresult create(CUmemoryPool *result, const CUmemPoolProps *properties)
{
    if (!result || !good_properties(properties))
        return CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool pool = calloc(1, sizeof *pool);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->device = properties->location.id;
    pool->limit = properties->maxSize;
    fakecuda_object_add(&pool->object, OBJECT_POOL, context_of_device(pool->device));
    *result = pool;
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuMemPoolCreate, NEEDS_INIT))
        return call.status;
    return fakecuda_leave(&call, create(pool, properties));
}

/* Attributes 1 to 3 choose how freed memory is reused, which makes no difference here. */
static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
    if (!fakecuda_object_is(pool, OBJECT_POOL) || !value || attribute < 1 ||
        attribute > CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        memcpy(&pool->threshold, value, sizeof pool->threshold);
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                           void *value)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuMemPoolSetAttribute, NEEDS_INIT))
        return call.status;
    return fakecuda_leave(&call, set_attribute(pool, attribute, value));
}

FAKE_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    struct call call;
    if (!fakecuda_enter(&call, ENTRY_cuMemPoolTrimTo, NEEDS_INIT))
        return call.status;
    bool good = fakecuda_object_is(pool, OBJECT_POOL);
    if (good)
        release(pool, keep);
    return fakecuda_leave(&call, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
