# SPDX-License-Identifier: Apache-2.0
"""Products in workers of joblib:   joblib_products.py BACKEND first|idle

first: the parent multiplies before the workers are made. Prints the results and the processes.
"""
import json
import os
import sys
import time

import numpy as np
from joblib import Parallel, delayed


def products(seed):
    """Returns the process and a list of two products."""
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((150, 30)), random.standard_normal((150, 20))
    gram, product = a.T @ a, a.T @ b
    time.sleep(0.05)  # or one worker takes all
    return os.getpid(), [gram.tolist(), product.tolist()]


if __name__ == "__main__":
    backend, parent = sys.argv[1:]
    results = products(100)[1] if parent == "first" else []
    found = Parallel(n_jobs=2, backend=backend, batch_size=1, pre_dispatch="all")(
        delayed(products)(seed) for seed in range(8))
    for _, pair in found:
        results += pair
    print(json.dumps({"parent": os.getpid(), "workers": sorted({pid for pid, _ in found}),
                      "results": results}))
