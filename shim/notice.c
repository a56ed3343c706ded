/* SPDX-License-Identifier: Apache-2.0 */
#include "notice.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_blas(struct dl_phdr_info *info, size_t size, void *data)
{
    static const char *const names[] = {"blas", "libmkl_", "libblis", "libflexiblas"};
    const char *file = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
    (void)size;
    for (size_t i = 0; file != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strstr(file, names[i]) != NULL) {
            *(const char **)data = info->dlpi_name;
            return 1;
        }
    return 0;
}

void gs_notice_nothing_intercepted(uint64_t counted_calls)
{
    const char *verbose = getenv("GPUSHIM_VERBOSE"), *library = NULL;
    long level = verbose != NULL ? strtol(verbose, NULL, 10) : 0;
    char line[512];
    if (counted_calls > 0 || level < 1)
        return;
    dl_iterate_phdr(find_blas, &library);
    if (library == NULL)
        return;
    int length = snprintf(line, sizeof line,
                          "gpushim: preloaded, but not one call of %s was intercepted "
                          "(none made, or made past the preload: static, RTLD_DEEPBIND, dlsym)\n",
                          library);
    if (length > 0) {
        ssize_t ignored = write(STDERR_FILENO, line,
                                (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
        (void)ignored;
    }
}
