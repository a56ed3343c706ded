/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas: what its sources share.
 */
#pragma once

#include "fake.h"

struct cublasContext {
    struct object object;
    cudaStream_t stream;
    cublasMath_t mode;
    bool tf32_forced, tf32_forbidden; /* by NVIDIA_TF32_OVERRIDE */
};

/* Whether it is a live handle of the current context. */
bool handle_is_good(cublasHandle_t handle);
