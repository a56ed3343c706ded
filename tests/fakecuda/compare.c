/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints how a CUDA driver and cuBLAS answer questions at the edge of their manuals, one line
 * each. Run it on the doubles and on a real device and compare the two outputs:
 *
 *     compare libcuda.so.1 libcublas.so.13
 *
 * Each group of questions runs in a process of its own, so that a broken context stays there.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "compare.h"

const char *cuda_path, *cublas_path;

static void ask_child(const char *group)
{
    start(cuda_path, cublas_path);
    pid_t child = fork();
    if (child) {
        waitpid(child, NULL, 0);
        Q(p_cuStreamSynchronize(stream));
        return;
    }
    int n;
    const char *text;
    size_t a, b;
    CUcontext ctx;
    CUmemPoolProps props = { .allocType = 1, .location = { 1, 0 } };
    CUmemoryPool other;
    cublasHandle_t second;
    Q(p_cuInit(0));
    Q(p_cuDriverGetVersion(&n));
    Q(p_cuGetErrorName(3, &text));
    Q(p_cuDeviceGetCount(&n));
    Q(p_cuDeviceGetAttribute(&n, 16, 0));
    Q(p_cuDevicePrimaryCtxRetain(&ctx, 0));
    Q(p_cuMemGetInfo_v2(&a, &b));
    Q(p_cuMemPoolCreate(&other, &props));
    Q(p_cuCtxPushCurrent_v2(context));
    Q(p_cuCtxPopCurrent_v2(&ctx));
    Q(p_cublasGetVersion_v2(handle, &n));
    Q(p_cublasSetMathMode(handle, 0));
    Q(p_cublasCreate_v2(&second));
    _exit(0);
}

static void ask_child_gemm(const char *group)
{
    start(cuda_path, cublas_path);
    CUdeviceptr d = room(64);
    double *p = (double *)d;
    pid_t child = fork();
    if (child) {
        int status;
        waitpid(child, &status, 0);
        Q(status);
        Q(p_cuStreamSynchronize(stream));
        return;
    }
    Q(p_cublasSetStream_v2(handle, stream));
    Q(p_cublasDgemm_v2(handle, 0, 0, 1, 1, 1, &one, p, 1, p, 1, &zero, p, 1));
    _exit(0);
}

static void ask_destroyed(const char *group)
{
    start(cuda_path, cublas_path);
    Q(p_cuStreamDestroy_v2(stream));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cuStreamDestroy_v2(stream));
}

static void ask_destroyed_event(const char *group)
{
    start(cuda_path, cublas_path);
    CUevent event;
    p_cuEventCreate(&event, 0);
    Q(p_cuEventDestroy_v2(event));
    Q(p_cuEventRecord(event, stream));
    Q(p_cuEventDestroy_v2(event));
}

static void ask_bad_handle(const char *group)
{
    start(cuda_path, cublas_path);
    Q(p_cublasDestroy_v2(handle));
    Q(p_cublasSetMathMode(handle, 0));
}

static void at_the_end(void)
{
    const char *group = "exit";
    int n;
    Q(p_cuDeviceGetCount(&n));
    Q(p_cuStreamSynchronize(stream));
    Q(p_cublasSetMathMode(handle, 0));
}

__attribute__((destructor)) static void in_destructor(void)
{
    if (getenv("COMPARE_EXIT"))
        at_the_end();
}

static void ask_exit(const char *group)
{
    atexit(at_the_end);
    start(cuda_path, cublas_path);
    setenv("COMPARE_EXIT", "1", 1);
    Q(p_cuStreamSynchronize(stream));
    exit(0);
}

static const char *visible;

static void ask_visible(const char *group)
{
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    load(cuda_path, cublas_path);
    int n = -1, status = p_cuInit(0);
    p_cuDeviceGetCount(&n);
    printf("%s: CUDA_VISIBLE_DEVICES='%s' cuInit=%d count=%d\n", group, visible, status, n);
}

static void run(const char *group, void (*questions)(const char *))
{
    fflush(stdout);
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        alarm(60);
        questions(group);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (status)
        printf("%s: ended with %d\n", group, status);
}

int main(int argc, char **argv)
{
    static const char *lists[] = { "", "-1", "0", "0,0", "0,-1", "0,5", "5", "5,0", " 0", "0x0",
        "0abc", "abc", "GPU-bad", "MIG-bad", "NoDevFiles", "00", "+0", ",0", "0, 5" };
    if (argc != 3)
        return 2;
    cuda_path = argv[1], cublas_path = argv[2];
    run("before cuInit", ask_before_init);
    run("no context", ask_no_context);
    run("other thread", ask_other_thread);
    run("copies", ask_copies);
    run("2D copies", ask_2d);
    run("events", ask_events);
    run("pool", ask_pool);
    run("gemm arguments", ask_gemm_arguments);
    run("gemm numbers", ask_gemm_numbers);
    run("level 3 flags", ask_level3_flags);
    run("level 3 operands", ask_level3_operands);
    run("level 3 numbers", ask_level3_numbers);
    run("TF32 override", ask_tf32_override);
    run("TF32 forbidden", ask_tf32_forbidden);
    run("broken context", ask_broken_context);
    run("misaligned", ask_misaligned);
    run("beyond allocation", ask_beyond_allocation);
    run("child", ask_child);
    run("child gemm", ask_child_gemm);
    run("late copy", ask_late_copy);
    run("destroyed stream", ask_destroyed);
    run("destroyed event", ask_destroyed_event);
    run("destroyed handle", ask_bad_handle);
    run("exit", ask_exit);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        visible = lists[i];
        run("visible", ask_visible);
    }
    return 0;
}
