/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the CPU original of a call site, and the integer width of the library behind it.
 */
#include "originals.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "entries.h"

struct gs_site gs_sites[GS_SITE_SLOTS];

/* A slot being filled: no key looks like this. */
#define CLAIMED UINT64_MAX

/* A library found to provide a name. path is the loader's own string: the library is kept open. */
struct provider {
    gs_function function;
    void *handle;
    const char *path;
    bool is_next; /* found in the global scope, behind us */
};

/* An address inside this library, to recognise ourselves. */
static bool is_ours(const void *address)
{
    Dl_info theirs, ours;
    return dladdr(address, &theirs) != 0 && dladdr((const void *)gs_sites, &ours) != 0 &&
           theirs.dli_fbase == ours.dli_fbase;
}

static struct link_map *map_of(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

/* Opens what is mapped already, which also keeps it: a cached original must stay valid. The main
 * program has no name of its own. */
static void *keep_open(const struct link_map *map)
{
    return map->l_name[0] == '\0' ? dlopen(NULL, RTLD_LAZY)
                                  : dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

/* Objects in front of us in the load order: the main program and preloads before us. One of them
 * that has the name is a wrapper, and calls us as the next definition: never an original. The
 * caller does not tell (a wrapper may jump to us, so that its own caller seems to be ours). */
static bool is_in_front_of_us(const struct link_map *map)
{
    const struct link_map *ours = map_of(gs_sites);
    for (const struct link_map *m = ours != NULL ? ours->l_prev : NULL; m != NULL; m = m->l_prev)
        if (m == map)
            return true;
    return false;
}

/* Completes a provider from the address found; false for none, for our own, for one in front of
 * us, for one that cannot be kept. */
static bool accept(struct provider *provider, void *function)
{
    struct link_map *map;
    if (function == NULL || is_ours(function) || (map = map_of(function)) == NULL ||
        is_in_front_of_us(map))
        return false;
    provider->function = (gs_function)function;
    provider->path = map->l_name;
    provider->is_next = false;
    provider->handle = keep_open(map);
    return provider->handle != NULL;
}

static bool from_callers_scope(struct provider *provider, const char *name,
                               const struct link_map *caller)
{
    void *scope;
    if (caller == NULL || (scope = keep_open(caller)) == NULL)
        return false;
    return accept(provider, dlsym(scope, name));
}

static bool from_next(struct provider *provider, const char *name)
{
    bool found = accept(provider, dlsym(RTLD_NEXT, name));
    provider->is_next = found;
    return found;
}

/* Collected first and opened later: the loader's lock is held while they are walked. */
struct object_list {
    const char *path[1024];
    int count;
};

static int note_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct object_list *list = data;
    (void)size;
    if (info->dlpi_name != NULL && info->dlpi_name[0] == '/' &&
        list->count < (int)(sizeof list->path / sizeof list->path[0]))
        list->path[list->count++] = info->dlpi_name;
    return 0;
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t i = 0, folder = 0;
    for (; a[i] != '\0' && a[i] == b[i]; i++)
        if (a[i] == '/')
            folder = i + 1;
    return folder;
}

/* isamax(n, {1, 3, 2}, 1) with n = 3 in 32 bits and a negative number in 64: a 64-bit library
 * finds nothing to do and answers 0. Harmless: it reads three floats and writes nothing. */
static int width_by_f77(void *function)
{
    static const float x[3] = {1, 3, 2};
    const int64_t n = INT64_C(-0x100000000) + 3, one = 1;
    int (*isamax)(const void *, const float *, const void *) = (__typeof__(isamax))function;
    int found = isamax(&n, x, &one);
    return found == 2 ? 4 : found == 0 ? 8 : 0;
}

static int width_by_cblas(void *function)
{
    static const float x[3] = {1, 3, 2};
    size_t (*isamax)(int64_t, const float *, int64_t) = (__typeof__(isamax))function;
    int found = (int)isamax(INT64_C(-0x100000000) + 3, x, 1);
    return found == 1 ? 4 : found == 0 ? 8 : 0;
}

/* Integer width of a provider in bytes, 0 when it cannot be told. */
static int probe_width(const struct provider *provider, const struct gs_spelling_row *spelling)
{
    void *isamax = dlsym(provider->handle, spelling->isamax);
    if (isamax == NULL && provider->is_next)
        isamax = dlsym(RTLD_NEXT, spelling->isamax); /* a wrapper in front of the library */
    if (isamax == NULL || is_ours(isamax))
        return 0;
    return spelling->interface == GS_CBLAS ? width_by_cblas(isamax) : width_by_f77(isamax);
}

/* Scans the loaded objects for providers of exactly this name: for callers that reached us
 * through another module's function pointer or tail jump (scikit-learn through SciPy's
 * cython_blas). Several are fine as long as they agree on the width; the nearest to the caller's
 * folder is taken. */
static bool from_scan(struct provider *nearest, const struct gs_entry_row *entry,
                      const char *caller_path, bool *agree)
{
    struct object_list *list = calloc(1, sizeof *list);
    size_t best = 0;
    int count = 0, width = 0;
    *agree = true;
    if (list == NULL)
        return false;
    dl_iterate_phdr(note_object, list);
    for (int i = 0; i < list->count; i++) {
        struct provider candidate;
        void *handle = dlopen(list->path[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle == NULL)
            continue;
        void *function = dlsym(handle, entry->name);
        const struct link_map *map = function != NULL ? map_of(function) : NULL;
        bool own = map != NULL && strcmp(map->l_name, list->path[i]) == 0;
        if (own && accept(&candidate, function)) {
            int candidate_width = probe_width(&candidate, &gs_spellings[entry->spelling]);
            *agree = *agree && (count == 0 || candidate_width == width);
            width = candidate_width;
            size_t near = common_prefix(candidate.path, caller_path);
            if (count++ == 0 || near > best) {
                best = near;
                *nearest = candidate;
            } else {
                dlclose(candidate.handle);
            }
        }
        dlclose(handle);
    }
    free(list);
    return count > 0;
}

static void write_text(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

/* No library has the name: without us the loader would not have started the program. */
static void end_like_the_loader(const char *name)
{
    write_text("symbol lookup error: undefined symbol: ");
    write_text(name);
    write_text("\n");
    _exit(127);
}

static bool defines(void *handle, const struct link_map *map, const char *name)
{
    void *address = dlsym(handle, name);
    return address != NULL && map_of(address) == map;
}

/* Whether a module is a BLAS or LAPACK itself: it has the name that it called, or one that every
 * such library has, or it has served another call. */
static bool is_cpu_library(const struct link_map *map, const struct gs_entry_row *entry)
{
    void *handle = map != NULL ? keep_open(map) : NULL;
    if (handle == NULL)
        return false;
    if (defines(handle, map, entry->name) || defines(handle, map, "ilaver_") ||
        defines(handle, map, gs_spellings[entry->spelling].isamax))
        return true;
    for (unsigned i = 0; i < GS_SITE_SLOTS; i++) {
        uint64_t key = atomic_load_explicit(&gs_sites[i].key, memory_order_acquire);
        if (key != 0 && key != CLAIMED && gs_sites[i].provider == map->l_name)
            return true;
    }
    return false;
}

static void find(struct gs_site *site, unsigned entry_id, const void *return_address)
{
    const struct gs_entry_row *entry = &gs_entries[entry_id];
    const struct gs_spelling_row *spelling = &gs_spellings[entry->spelling];
    const struct link_map *caller = map_of(return_address);
    struct provider provider = {.function = NULL};
    bool agree = true;

    site->caller = caller != NULL ? caller->l_name : "";
    if (!from_callers_scope(&provider, entry->name, caller) &&
        !from_next(&provider, entry->name) &&
        !from_scan(&provider, entry, site->caller, &agree))
        end_like_the_loader(entry->name);

    int width = probe_width(&provider, spelling);
    site->original = provider.function;
    site->provider = provider.path;
    site->proven = width != 0 && agree;
    site->from_library = is_cpu_library(caller, entry);
    site->int_bytes = (uint8_t)(width != 0 ? width : spelling->presumed_bytes);
    atomic_store_explicit(&site->modules, 0, memory_order_relaxed);
}

const struct gs_site *gs_site_resolve(unsigned entry, const void *return_address)
{
    static __thread struct gs_site overflow __attribute__((tls_model("initial-exec")));
    uint64_t key = gs_site_key(entry, return_address);
    unsigned slot = gs_site_slot(key);
    for (unsigned i = 0; i < GS_SITE_PROBES; i++) {
        struct gs_site *site = &gs_sites[(slot + i) % GS_SITE_SLOTS];
        uint64_t expected = 0;
        if (!atomic_compare_exchange_strong(&site->key, &expected, CLAIMED))
            continue;
        find(site, entry, return_address);
        atomic_store_explicit(&site->key, key, memory_order_release);
        return site;
    }
    find(&overflow, entry, return_address);
    return &overflow;
}
