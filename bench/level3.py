#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every level-3 family from host memory: CPU library, this library and NVBLAS in one run.

    bench/level3.py [--out DIR] [--sizes 512,1024] [--types d,s,z] [--budget SECONDS] [--carry DIR]

The engines are processes of bench/level3_worker.c; they take turns by routine, size and repetition.
CPU library of all but NVBLAS is the OpenBLAS of SciPy's wheel, under its own names; NVBLAS knows
plain names alone and gets Debian's. Times are the caller's wall times, copies
included, medians of the repetitions; operands are random, results lie in fresh memory. The first
rows let 1, 4 and 16 threads call dgemm n = 2048 at once, each on data of its own; their time is the
slowest thread's. Prints a table and writes level3.json.

engine       what is preloaded
cpu          nothing
shim-auto    libgpushim.so, GPUSHIM_MODE=auto, after the device has been started
shim-force   libgpushim.so, GPUSHIM_MODE=force
nvblas       libnvblas.so with NVBLAS_AUTOPIN_MEM_ENABLED
"""
import argparse
import datetime
import glob
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build")
FAMILIES = ("gemm", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "trmm", "trsm")
ONLY_COMPLEX = ("hemm", "herk", "her2k")
ENGINES = ("cpu", "shim-auto", "shim-force", "nvblas")
QUIET_SECONDS = 0.15  # OpenBLAS threads spin for up to 0.1 s after their last call
NVBLAS = "/usr/local/cuda/lib64/libnvblas.so"


class Engine:
    """One worker process."""

    def __init__(self, name, environment):
        self.name = name
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "bench", "level3_worker")], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def time(self, routine, n, threads=1):
        """Seconds of one repetition, in a list; [] when the worker has ended."""
        time.sleep(QUIET_SECONDS)
        try:
            self.process.stdin.write(f"{routine} {n} {threads} 1\n")
            self.process.stdin.flush()
            return [float(word) for word in self.process.stdout.readline().split()]
        except (OSError, ValueError):
            return []

    def close(self):
        """Lets the worker end; returns its exit status."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        return self.process.wait(60)


def scipy_library():
    """Path of the OpenBLAS in SciPy's wheel (32-bit integers, names scipy_dgemm_)."""
    import scipy
    found = glob.glob(os.path.join(os.path.dirname(os.path.dirname(scipy.__file__)), "scipy.libs",
                                   "libscipy_openblas-*.so"))
    if not found:
        sys.exit("bench/level3.py: needs the SciPy of a wheel, which brings its OpenBLAS")
    return found[0]


def engines(options, folder):
    """The engines that can run here, and why the others cannot."""
    base = {k: v for k, v in os.environ.items()
            if not k.startswith(("GPUSHIM_", "OPENBLAS_", "NVBLAS_")) and k != "LD_PRELOAD"}
    base["LD_LIBRARY_PATH"] = os.pathsep.join(
        filter(None, [options.carry, base.get("LD_LIBRARY_PATH", "")]))
    library = scipy_library()
    shim = dict(base, LD_PRELOAD=f"{os.path.join(BUILD, 'libgpushim.so')} {library}",
                GPUSHIM_RUN_ID="run")
    if options.cuda_path:
        shim["GPUSHIM_CUDA_PATH"] = os.path.abspath(options.cuda_path)
    made = {"cpu": Engine("cpu", dict(base, LD_PRELOAD=library))}
    for mode in ("auto", "force"):
        made[f"shim-{mode}"] = Engine(f"shim-{mode}", dict(
            shim, GPUSHIM_MODE=mode, GPUSHIM_AUDIT_DIR=os.path.join(folder, mode)))
    blas = os.path.join(options.carry, "libopenblas.so.0")
    if not os.path.exists(NVBLAS) or not os.path.exists(blas):
        return made, [f"nvblas: {NVBLAS} or {blas} is missing"]
    configuration = os.path.join(folder, "nvblas.conf")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(f"NVBLAS_CPU_BLAS_LIB {blas}\nNVBLAS_GPU_LIST 0\nNVBLAS_AUTOPIN_MEM_ENABLED\n"
                   f"NVBLAS_LOGFILE {folder}/nvblas.log\n")
    made["nvblas"] = Engine("nvblas", dict(base, LD_PRELOAD=f"{NVBLAS} {blas}",
                                           NVBLAS_CONFIG_FILE=configuration))
    return made, []


def repetitions(kind, n):
    """Few where a call takes long."""
    work = n ** 3 * {"s": 1, "d": 2, "z": 8}[kind]
    return 5 if work < 2e10 else 3 if work < 2e11 else 1


def cases(options):
    """(routine, n, threads) in the order in which they are measured."""
    yield from (("dgemm", options.thread_size, threads) for threads in (1, 4, 16))
    for n in options.sizes:
        for kind in options.types:
            for family in FAMILIES:
                if family not in ONLY_COMPLEX or kind == "z":
                    yield kind + family, n, 1


def measure_case(made, routine, n, threads):
    """One row: medians in ms. The first round, which loads kernels, does not count."""
    reps = repetitions(routine[0], n)
    times = {name: [] for name in made}
    for counted in [False] + reps * [True]:
        for name, engine in made.items():
            if counted or reps > 1 or name != "cpu":
                found = engine.time(routine, n, threads)
                times[name] += found if counted else []
    return {"routine": routine, "n": n, "threads": threads, "repetitions": reps,
            "ms": {name: round(1e3 * statistics.median(found), 3)
                   for name, found in times.items() if found}}


def measure(options, made):
    """Rows of medians until the time is up; warm-up first."""
    for _ in range(12):  # auto starts its device once the savings missed are worth it
        for engine in made.values():
            engine.time("dgemm", options.warm_up)
    rows, begin = [], time.monotonic()
    for routine, n, threads in cases(options):
        if time.monotonic() - begin > options.budget:
            rows.append({"routine": routine, "n": n, "threads": threads,
                         "left_out": "time was up"})
        else:
            rows.append(measure_case(made, routine, n, threads))
    return rows


def machine():
    """What this was measured on."""
    try:
        device = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            check=False).stdout.strip()
    except OSError:
        device = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if "model name" in line), "")
    return {"device": device or "no NVIDIA device", "cpu": model,
            "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "cpu_library": os.path.basename(scipy_library()) + ", one thread a core; NVBLAS: OpenBLAS "
                           "0.3.21 (Debian 12)",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": " ".join(sys.argv)}


def report(folder):
    """What the audit of one engine says: calls by reason, prediction error."""
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "gpushim"), "report",
                           "--json", os.path.join(folder, "run")], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {}
    return {"reasons": {row["code"]: row["calls"] for row in found["reasons"]},
            "prediction_error": found.get("prediction_error")}


def print_table(rows, names):
    """One line a case; the ratio is the CPU library's time over auto's."""
    print("ms, medians         " + "".join(f"{name:>12}" for name in names) + "  cpu/auto")
    for row in rows:
        label = f"{row['routine']} {row['n']}"
        label += f" x{row['threads']}" if row["threads"] > 1 else ""
        if "left_out" in row:
            continue
        cells = "".join(f"{row['ms'].get(name, float('nan')):12.3f}" for name in names)
        ratio = row["ms"].get("cpu", 0) / row["ms"].get("shim-auto", float("inf"))
        print(f"{label:<20}{cells}  {ratio:8.2f}")


def main():
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--out", default=os.environ.get("OUT", BUILD))
    parser.add_argument("--sizes", default="512,1024,2048,4096,8192",
                        type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--types", default="d,s,z", type=lambda text: text.split(","))
    parser.add_argument("--warm-up", type=int, default=4096, metavar="N")
    parser.add_argument("--thread-size", type=int, default=2048, metavar="N")
    parser.add_argument("--budget", type=float, default=200, help="seconds after the warm-up")
    parser.add_argument("--carry", default=os.path.join(ROOT, "carry"),
                        help="folder with libopenblas.so.0")
    parser.add_argument("--cuda-path", default="", help="to try it without a GPU")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made, left_out = engines(options, folder)
        rows = measure(options, made)
        for engine in made.values():
            status = engine.close()
            if status != 0:
                left_out.append(f"{engine.name}: exit status {status}")
        audit = {mode: report(os.path.join(folder, mode)) for mode in ("auto", "force")}
    cut = [f"{row['routine']} {row['n']}" for row in rows if "left_out" in row]
    left_out += [f"time was up: {', '.join(cut)}"] if cut else []
    result = {"machine": machine(), "left_out": left_out, "rows": rows, "audit": audit}
    with open(os.path.join(options.out, "level3.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    print_table(rows, [name for name in ENGINES if name in made])
    print("\n".join(left_out))
    print(json.dumps(audit))
    return 0


if __name__ == "__main__":
    sys.exit(main())
