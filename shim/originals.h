/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU original of a call site. It belongs to the return address, not to the name: one process
 * holds several BLAS copies under one name, of different integer width.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef void (*gs_function)(void);

/* One call site of one exported name. Immutable once published in gs_sites. */
struct gs_site {
    _Atomic uint64_t key;         /* gs_site_key; 0: free */
    gs_function original;
    uint8_t int_bytes;            /* 4 or 8: integer width to read arguments with */
    bool proven;                  /* the width was found by calling the library: GPU allowed */
    bool from_library;            /* the caller is a CPU library: a call of it may be nested */
    const char *caller;           /* path of the calling module; "" = the main program */
    const char *provider;         /* path of the CPU library */
    _Atomic uint32_t modules;     /* audit indices of provider << 16 | caller, plus 1; 0: not yet */
};

#define GS_SITE_SLOTS 4096u
#define GS_SITE_PROBES 8u

extern struct gs_site gs_sites[GS_SITE_SLOTS];

/* Addresses of user space have at most 48 bits on the machines we run on; the entry goes above. */
static inline uint64_t gs_site_key(unsigned entry, const void *return_address)
{
    return (uint64_t)(uintptr_t)return_address + ((uint64_t)(entry + 1) << 48);
}

static inline unsigned gs_site_slot(uint64_t key)
{
    return (unsigned)((key * 0x9e3779b97f4a7c15u) >> 52); /* 12 bits: GS_SITE_SLOTS */
}

/* Finds and publishes the original for this site: (1) the caller's own scope, (2) RTLD_NEXT,
 * (3) a scan of the loaded objects for a provider of exactly this name; never our own address,
 * nor that of a wrapper loaded in front of us. Probes the integer width on the provider.
 *
 * Caller and provider are kept mapped from then on: a return address or an original that outlived
 * its library would be somebody else's. Lock-free, so that a fork in any state is harmless; two
 * threads may both resolve a site, with the same answer. When the table is full the result is
 * valid until this thread's next call of the function. Without any provider the process ends as
 * the dynamic loader would end it (status 127, "undefined symbol"). */
const struct gs_site *gs_site_resolve(unsigned entry, const void *return_address)
    __attribute__((cold, noinline));

static inline const struct gs_site *gs_site_find(unsigned entry, const void *return_address)
{
    uint64_t key = gs_site_key(entry, return_address);
    unsigned slot = gs_site_slot(key);
    for (unsigned i = 0; i < GS_SITE_PROBES; i++) {
        const struct gs_site *site = &gs_sites[(slot + i) % GS_SITE_SLOTS];
        uint64_t found = atomic_load_explicit(&site->key, memory_order_acquire);
        if (__builtin_expect(found == key, 1))
            return site;
        if (found == 0)
            break;
    }
    return gs_site_resolve(entry, return_address);
}
