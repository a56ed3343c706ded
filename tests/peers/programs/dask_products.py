# SPDX-License-Identifier: Apache-2.0
"""Products, a decomposition and a solution in Dask's threaded scheduler; prints the results."""
import json
import os
import threading

import dask
import dask.array as da
import numpy as np

THREADS = set()


def noted(block):
    """Returns the block; notes the thread."""
    THREADS.add(threading.get_ident())
    return block


random = np.random.default_rng(5)
x = da.from_array(random.standard_normal((400, 80)), chunks=(100, 40))
y = da.from_array(random.standard_normal((80, 120)), chunks=(40, 60))
tall = da.from_array(random.standard_normal((400, 20)), chunks=(100, 20))
square = da.from_array(random.standard_normal((90, 90)) + 90 * np.eye(90), chunks=(30, 30))
with dask.config.set(scheduler="threads", num_workers=4):
    q, r = da.linalg.qr(tall)
    results = dask.compute(
        (x @ y).map_blocks(noted), x.T @ x, da.tensordot(x, y, axes=1), q @ r,
        da.linalg.svd(tall)[1], da.linalg.inv(square), da.linalg.cholesky(square @ square.T))
print(json.dumps({"parent": os.getpid(), "threads": len(THREADS),
                  "results": [result.tolist() for result in results]}))
