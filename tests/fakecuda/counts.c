/* SPDX-License-Identifier: Apache-2.0
 *
 * FAKECUDA_COUNT_FILE: "key value" lines with the calls made and what was not released. Written
 * beside the path and renamed, so that a reader sees all of it or nothing.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fake.h"

/* A write beyond the limit would raise SIGXFSZ. */
static bool may_write(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= 65536;
}

static void print_counts(FILE *file)
{
    size_t bytes;
    unsigned long allocations = memory_live(&bytes);
    fprintf(file, "calls %lu\nfailures %lu\nsettings.bad %d\n", fakecuda_calls(),
            fakecuda_failures(), settings()->bad);
    for (enum entry i = 0; i < ENTRY_COUNT; i++)
        fprintf(file, "call.%s %lu\n", entry_name(i), entry_calls(i));
    fprintf(file, "live.allocations %lu\nlive.bytes %zu\n", allocations, bytes);
    fprintf(file, "live.streams %lu\nlive.events %lu\nlive.pools %lu\nlive.handles %lu\n",
            objects_live(OBJECT_STREAM), objects_live(OBJECT_EVENT), objects_live(OBJECT_POOL),
            objects_live(OBJECT_HANDLE));
}

void counts_write(void)
{
    const char *path = settings()->count_file;
    char beside[sizeof settings()->count_file + 32];
    if (!*path || !may_write())
        return;
    snprintf(beside, sizeof beside, "%s.%d.tmp", path, (int)getpid());
    FILE *file = fopen(beside, "we");
    if (!file)
        return;
    print_counts(file);
    bool failed = ferror(file) != 0;
    if (fclose(file) || failed || rename(beside, path))
        unlink(beside);
}
