/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and opens the CUDA libraries. Always RTLD_LOCAL: their names must not enter the scope of
 * the program.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_backends/cuda/cuda.h"

struct gs_cuda_api gs_cuda;

enum library { CUDA, CUBLAS };
enum need { OPTIONAL, REQUIRED };

/* One row per entry point: where its pointer goes. */
struct symbol {
    enum library library;
    enum need need;
    const char *name;
    void **pointer;
};

static const struct symbol symbols[] = {
#define GS_CUDA_FN(library, need, result, name, parameters) \
    {library, need, #name, (void **)&gs_cuda.name},
#include "api.def"
#undef GS_CUDA_FN
};

/* Newest first. A library of a newer CUDA than the driver's would fail at its first call. */
static const struct {
    const char *name;
    int driver; /* as cuDriverGetVersion has it */
} cublas_versions[] = {{"libcublas.so.13", 13000}, {"libcublas.so.12", 12000}};

/* Folders of NVIDIA's wheels below site-packages. */
static const char *const wheel_folders[] = {"nvidia/cu13/lib", "nvidia/cublas/lib"};

static gs_reason resolve(void *handle, enum library library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        const struct symbol *symbol = &symbols[i];
        if (symbol->library != library)
            continue;
        *symbol->pointer = dlsym(handle, symbol->name);
        if (*symbol->pointer == NULL && symbol->need == REQUIRED)
            return GS_LIB_VERSION;
    }
    return GS_NO_REASON;
}

static void *open_in(const char *folder, size_t folder_length, const char *subfolder,
                     const char *name)
{
    char path[1024];
    int length = snprintf(path, sizeof path, "%.*s/%s%s%s", (int)folder_length, folder, subfolder,
                          *subfolder ? "/" : "", name);
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The folders of a colon-separated list, in order. */
static void *open_in_list(const char *folders, const char *name)
{
    while (*folders != '\0') {
        size_t length = strcspn(folders, ":");
        void *handle = length > 0 ? open_in(folders, length, "", name) : NULL;
        if (handle != NULL)
            return handle;
        folders += length + (folders[length] == ':');
    }
    return NULL;
}

static void *open_mapped(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

/* module is the path of a file somewhere below site-packages (or dist-packages). */
static void *open_in_wheels(const char *module, const char *name)
{
    const char *packages = strstr(module, "-packages/");
    if (packages == NULL)
        return NULL;
    size_t length = (size_t)(packages - module) + strlen("-packages");
    for (size_t i = 0; i < sizeof wheel_folders / sizeof wheel_folders[0]; i++) {
        void *handle = open_in(module, length, wheel_folders[i], name);
        if (handle != NULL)
            return handle;
    }
    return NULL;
}

static void *open_below_variable(const char *variable, const char *subfolder, const char *name)
{
    const char *folder = getenv(variable);
    return folder != NULL && *folder == '/' ? open_in(folder, strlen(folder), subfolder, name)
                                            : NULL;
}

static void *search(const char *module, const char *name)
{
    void *handle = open_mapped(name);
    if (handle == NULL)
        handle = open_in_wheels(module, name);
    if (handle == NULL)
        handle = open_below_variable("CONDA_PREFIX", "lib", name);
    if (handle == NULL)
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        handle = open_below_variable("CUDA_HOME", "lib64", name);
    if (handle == NULL)
        handle = open_in("/usr/local/cuda", strlen("/usr/local/cuda"), "lib64", name);
    return handle;
}

static bool is_auto(const char *path)
{
    return strcmp(path, "auto") == 0;
}

void gs_cuda_note_library(const void *address, char *libraries, size_t size)
{
    Dl_info info;
    size_t used = strlen(libraries);
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL)
        snprintf(libraries + used, size - used, "%s%s", used > 0 ? "\n" : "", info.dli_fname);
}

gs_reason gs_cuda_load_driver(const char *path)
{
    void *handle = is_auto(path) ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)
                                 : open_in_list(path, "libcuda.so.1");
    /* Toolkits and wheels hold no driver: it is the system's. */
    if (handle == NULL && !is_auto(path))
        handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return handle == NULL ? GS_NO_DRIVER : resolve(handle, CUDA);
}

gs_reason gs_cuda_load_cublas(const char *path, const char *module, char *libraries, size_t size)
{
    gs_reason reason = GS_LIB_MISSING;
    int driver = 0;
    if (gs_cuda.cuDriverGetVersion(&driver) != CUDA_SUCCESS)
        driver = 0; /* cuInit will say why */
    for (size_t i = 0; i < sizeof cublas_versions / sizeof cublas_versions[0]; i++) {
        const char *name = cublas_versions[i].name;
        void *handle = is_auto(path) ? search(module, name) : open_in_list(path, name);
        if (handle == NULL)
            continue;
        if (driver != 0 && driver < cublas_versions[i].driver) {
            dlclose(handle);
            reason = GS_DRIVER_TOO_OLD;
            continue;
        }
        reason = resolve(handle, CUBLAS);
        if (reason == GS_NO_REASON) {
            gs_cuda_note_library((const void *)gs_cuda.cublasCreate_v2, libraries, size);
            return reason;
        }
    }
    return reason;
}
