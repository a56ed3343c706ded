/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of the unit test (cases_*.inc) share.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "client.h"

#ifndef FAKECUDA_PATH
#define FAKECUDA_PATH "build/fakecuda"
#endif
#define LIBCUDA FAKECUDA_PATH "/libcuda.so.1"
#define LIBCUBLAS FAKECUDA_PATH "/libcublas.so.13"

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1); \
        } \
    } while (0)
#define EXPECT_STATUS(call, expected) \
    do { \
        int got = (call); \
        if (got != (expected)) { \
            fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, got); \
            _exit(1); \
        } \
    } while (0)
#define OK(call) EXPECT_STATUS(call, 0)

/* cmocka's handlers would go on with the next case in the child. */
static void default_signals(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    alarm(120);
}

/* Runs a case in a child, with NAME=value pairs in its environment; its wait status. */
static int in_child(void (*body)(void), const char *const *variables)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        default_signals();
        for (; variables && *variables; variables++)
            putenv((char *)*variables);
        body();
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

/* Defines the test of a case, with its NAME=value pairs. */
#define CASE(body, ...) \
    static void test_##body(void **state) \
    { \
        const char *const variables[] = { __VA_ARGS__ __VA_OPT__(,) NULL }; \
        (void)state; \
        assert_int_equal(in_child(body, variables), 0); \
    }

static void begin(void)
{
    start(LIBCUDA, LIBCUBLAS);
}

static void put(CUdeviceptr to, const void *from, size_t bytes)
{
    OK(p_cuMemcpyHtoDAsync_v2(to, from, bytes, stream));
}

static void get(void *to, CUdeviceptr from, size_t bytes)
{
    OK(p_cuMemcpyDtoHAsync_v2(to, from, bytes, stream));
}

static void sync_stream(void)
{
    OK(p_cuStreamSynchronize(stream));
}

static int multiply_1x1(CUdeviceptr d, double alpha, double beta)
{
    double *p = (double *)d; /* a, b, c */
    return p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, &alpha, p, 1, p + 1, 1, &beta, p + 2, 1);
}

static bool all_bytes(const void *memory, unsigned char value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)memory)[i] != value)
            return false;
    return true;
}

static int copy_rows(CUdeviceptr d, const void *from, void *to, size_t width, size_t height,
                     size_t pitch)
{
    CUDA_MEMCPY2D copy = { .srcMemoryType = from ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = from, .srcDevice = d, .srcPitch = from ? pitch : width,
        .dstMemoryType = from ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstHost = to, .dstDevice = d, .dstPitch = from ? width : pitch,
        .WidthInBytes = width, .Height = height };
    return p_cuMemcpy2DAsync_v2(&copy, stream);
}
