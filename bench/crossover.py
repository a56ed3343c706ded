#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Square products from host memory: NumPy on the CPU, this library, NVBLAS and CuPy in one run.

    bench/crossover.py [--out DIR] [--sizes 64,128] [--reps 5] [--carry DIR] [--budget SECONDS]

Every engine is a process of its own; they take turns, size by size and repetition by repetition, so
that whatever else the machine does meets all of them. Each call gets fresh random operands and a
fresh result, in ordinary memory; its time is the caller's wall time, copies included. Results are
checked on the CPU (C v against A (B v), without BLAS). Prints a table and writes crossover.json.

engine       what is timed
numpy        a @ b, NumPy's own BLAS, no preload, all cores
shim-auto    a @ b under the preload, GPUSHIM_MODE=auto, after start-up was repaid
shim-force   the same, GPUSHIM_MODE=force
nvblas       plain dgemm_/sgemm_ under LD_PRELOAD=libnvblas.so, NVBLAS_AUTOPIN_MEM_ENABLED; needs a
             BLAS with plain names: libopenblas.so.0 in --carry
cupy         asnumpy(asarray(a) @ asarray(b))
"""
import argparse
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
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
DTYPES = ("f64", "f32")
ENGINES = ("numpy", "shim-auto", "shim-force", "nvblas", "cupy")
NVBLAS_PLACES = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib")
QUIET_SECONDS = 0.03  # OpenBLAS's threads spin about this long after their last call


class Engine:
    """One worker process; available is False, with a reason in why, when it cannot run."""

    def __init__(self, name, options, folder):
        self.name = name
        self.medians = {}  # (dtype, n) -> list of seconds
        self.worst_error = 0.0
        self.about = {}
        environment, self.why = engine_environment(name, options, folder)
        self.process = None
        if self.why:
            return
        log = open(os.path.join(folder, name + ".stderr"), "wb")
        self.process = subprocess.Popen(
            [options.python, os.path.join(ROOT, "bench", "crossover_worker.py"), name],
            env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, encoding="utf-8")
        log.close()
        self.about = self.answer()
        if not self.about.pop("ok", False):
            self.why = self.about.get("why") or "died at its start: " + self.last_words(folder)
            self.close()

    def stderr(self, folder):
        """Returns what the worker and its libraries wrote to stderr and to their logs."""
        text = ""
        for name in (self.name + ".stderr", self.name + ".log"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += file.read()
        return text

    def last_words(self, folder):
        """Returns the last line that a worker that has ended wrote to stderr."""
        self.process.wait()
        return (self.stderr(folder).strip().splitlines() or ["no message"])[-1][:300]

    def answer(self):
        """Returns the worker's next answer; {} when it has died."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def run(self, dtype, n, calls, check):
        """Lets the worker do some calls."""
        command = {"dtype": dtype, "n": n, "calls": calls, "check": check}
        try:
            print(json.dumps(command), file=self.process.stdin, flush=True)
            answer = self.answer()
        except BrokenPipeError:
            answer = {}
        if not answer:
            self.why = f"the worker died (status {self.process.wait()}) at {dtype} n={n}"
            return
        self.medians.setdefault((dtype, n), []).extend(answer["seconds"])
        self.worst_error = max(self.worst_error, answer["error"])

    def close(self):
        """Ends the worker in order, so that its audit is whole."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def engine_environment(name, options, folder):
    """Returns (environment, "") of an engine, or (None, why it cannot run)."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("GPUSHIM_", "OPENBLAS_", "OMP_", "NVBLAS_"))
                   and key != "LD_PRELOAD"}
    if name.startswith("shim-"):
        environment.update(
            LD_PRELOAD=os.path.join(options.build, "libgpushim.so"), GPUSHIM_MODE=name[5:],
            GPUSHIM_AUDIT="all", GPUSHIM_AUDIT_DIR=folder, GPUSHIM_RUN_ID=name)
        if options.cuda_path:
            environment["GPUSHIM_CUDA_PATH"] = options.cuda_path
        if options.quick:
            environment["CROSSOVER_WARM_N"] = "256"
    if name == "nvblas":
        return nvblas_environment(environment, options, folder)
    return environment, ""


def nvblas_environment(environment, options, folder):
    """Returns (environment, "") with NVBLAS in front, or (None, why not)."""
    found = [path for place in NVBLAS_PLACES for path in glob.glob(place + "/libnvblas.so.[0-9]*")]
    if not found:
        return None, "no libnvblas.so on this machine"
    blas = os.path.join(options.carry, "libopenblas.so.0") if options.carry else ""
    if not os.path.exists(blas):
        return None, "no BLAS with plain names for it: no libopenblas.so.0 in --carry"
    config = os.path.join(folder, "nvblas.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"NVBLAS_LOGFILE {folder}/nvblas.log\nNVBLAS_CPU_BLAS_LIB {blas}\n"
                   "NVBLAS_GPU_LIST ALL0\nNVBLAS_AUTOPIN_MEM_ENABLED\n")
    library = min(found, key=len)
    environment.update(LD_PRELOAD=library, NVBLAS_CONFIG_FILE=config)
    environment["LD_LIBRARY_PATH"] = ":".join(
        [options.carry, os.path.dirname(library), environment.get("LD_LIBRARY_PATH", "")])
    return environment, ""


def repetitions(n, options):
    """Returns (repetitions, calls in each) for a size."""
    reps = max(3, options.reps - 2) if n >= 8192 else options.reps
    return reps, 8 if n <= 256 else 3 if n <= 1024 else 1


def measure(engines, options):
    """Lets the engines take turns; returns the sizes that the budget did not allow."""
    begin, left_out = time.perf_counter(), []
    for n in options.sizes:
        for dtype in DTYPES:
            reps, calls = repetitions(n, options)
            for rep in range(-1, reps):  # -1: a round that is not counted
                if rep > 0 and time.perf_counter() - begin > options.budget:
                    left_out.append(f"{dtype} n={n}: {rep} of {reps} repetitions")
                    break
                turn_of_all(engines, dtype, n, rep, calls)
    return left_out


def turn_of_all(engines, dtype, n, rep, calls):
    """One repetition of every engine, in an order that changes."""
    running = [engine for engine in engines if not engine.why]
    shift = rep % len(running) if running else 0
    for engine in running[shift:] + running[:shift]:
        time.sleep(QUIET_SECONDS)
        engine.run(dtype, n, 1 if rep < 0 else calls, check=rep <= 0)
        if rep < 0:
            engine.medians.pop((dtype, n), None)


def read_auto(folder, options):
    """Returns {"f64 n": {...}}: predictions, reasons and sides of the calls of shim-auto."""
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    from gpushim_cli import gsl
    with open(os.path.join(options.build, "tables.json"), encoding="utf-8") as file:
        letters = {row["number"]: row["letter"] for row in json.load(file)["reasons"] if row}
    names = ("wall_ns", "m", "n", "k", "predicted_cpu_s", "predicted_gpu_s", "copy_in_s",
             "compute_s", "copy_out_s", "cpu_s", "routine", "reason", "where")
    found = {}
    for path in glob.glob(os.path.join(folder, "shim-auto", "*.gsl")):
        audit = gsl.AuditFile(path)
        for values in audit.records(names):
            row = dict(zip(names, values))
            dtype = {"d": "f64", "s": "f32"}.get(audit.routine(row["routine"])[0])
            if row["m"] == row["n"] == row["k"] and dtype:
                found.setdefault(f"{dtype} {row['n']}", []).append(row)
    return {key: summary_of(rows, letters) for key, rows in found.items()}


def summary_of(rows, letters):
    """Returns what the records of one size say, as medians and counts."""
    summary = {"calls": len(rows), "on_gpu": sum(row["where"] for row in rows), "reasons": {}}
    for row in rows:
        code = f"{letters[row['reason']]}{row['reason']:03}"
        summary["reasons"][code] = summary["reasons"].get(code, 0) + 1
    for name in ("predicted_cpu_s", "predicted_gpu_s", "wall_ns", "copy_in_s", "compute_s",
                 "copy_out_s", "cpu_s"):
        summary[name] = statistics.median(row[name] for row in rows)
    summary["per_call"] = [
        [f"{letters[row['reason']]}{row['reason']:03}", row["where"], row["wall_ns"],
         round(row["predicted_cpu_s"], 7), round(row["predicted_gpu_s"], 7)] for row in rows]
    return summary


def crossover(medians, ours, other):
    """Returns the smallest size from which ours is faster for all larger ones, or None."""
    best = None
    for n in sorted(medians, reverse=True):
        if ours not in medians[n] or other not in medians[n]:
            continue
        if medians[n][ours] >= medians[n][other]:
            break
        best = n
    return best


def machine():
    """Returns what the figures depend on."""
    facts = {"host": platform.node(), "kernel": platform.release(),
             "python": sys.version.split()[0],
             "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
             "cores": len(os.sched_getaffinity(0)), "processor": "", "gpu": "", "driver": "",
             "nvcc": ""}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    facts["processor"] = models[0] if models else platform.machine()
    for name, command in (
            ("gpu", ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]),
            ("driver", ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]),
            ("nvcc", ["/usr/local/cuda/bin/nvcc", "--version"]),
            ("commit", ["git", "-C", ROOT, "rev-parse", "HEAD"])):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  encoding="utf-8", timeout=30, check=False)
            facts[name] = (done.stdout.strip().splitlines() or [""])[-1]
        except (OSError, subprocess.TimeoutExpired):
            facts[name] = ""
    return facts


def document(engines, options, folder, left_out):
    """Returns everything that was found, as it goes into crossover.json."""
    auto = read_auto(folder, options)
    content = {"machine": machine(), "left_out": left_out, "engines": {}, "results": {},
               "crossover": {}}
    for engine in engines:
        content["engines"][engine.name] = {
            **engine.about, "missing": engine.why, "worst_error_in_bounds": engine.worst_error,
            "stderr": engine.stderr(folder)[-1000:]}
    for dtype in DTYPES:
        medians = {}
        for engine in engines:
            for (this, n), seconds in engine.medians.items():
                if this == dtype:
                    medians.setdefault(n, {})[engine.name] = statistics.median(seconds)
        for n, row in sorted(medians.items()):
            base = row.get("numpy")
            content["results"][f"{dtype} {n}"] = {
                "median_s": row,
                "auto": auto.get(f"{dtype} {n}", {"below_floor": "shim-auto" in row}),
                "speedup_over_numpy": {name: base / s for name, s in row.items()} if base else {},
                "samples_s": {engine.name: engine.medians.get((dtype, n)) for engine in engines}}
        content["crossover"][dtype] = {
            f"{ours} over {other}": crossover(medians, ours, other)
            for ours in ("shim-auto", "shim-force") for other in ("numpy", "nvblas", "cupy")}
    return content


def milliseconds(seconds):
    """Returns a table cell."""
    return f"{'-':>11}" if seconds is None else f"{seconds * 1e3:>11.3f}"


def print_table(content):
    """Prints the short table."""
    print(f"milliseconds, medians; {content['machine']['gpu'] or 'no NVIDIA device'}, "
          f"{content['machine']['cores']} cores, {content['machine']['date']}")
    print(f"{'':<10}" + "".join(f"{name:>12}" for name in ENGINES)
          + f"{'auto CPU':>11}{'auto GPU':>11}  auto said")
    for key, row in content["results"].items():
        auto = row["auto"]
        reasons = " ".join(f"{code}x{count}" for code, count in auto.get("reasons", {}).items())
        cells = "".join(f"{row['median_s'][name] * 1e3:>12.3f}" if name in row["median_s"]
                        else f"{'-':>12}" for name in ENGINES)
        print(f"{key:<10}{cells}"
              f"{milliseconds(auto.get('predicted_cpu_s'))}"
              f"{milliseconds(auto.get('predicted_gpu_s'))}"
              f"  {reasons or ('S101 (counted)' if auto['below_floor'] else '-')}")
    for dtype, row in content["crossover"].items():
        for ours in ("shim-auto", "shim-force"):
            wins = [f"{row[f'{ours} over {other}'] or 'never'} ({other})"
                    for other in ("numpy", "nvblas", "cupy")
                    if not content["engines"].get(other, {"missing": "-"})["missing"]]
            print(f"{dtype}: {ours} wins for all n from " + ", ".join(wins))
    for name, row in content["engines"].items():
        if row["missing"]:
            print(f"{name}: not measured: {row['missing']}")
        elif row["worst_error_in_bounds"] > 1:
            print(f"{name}: WRONG, {row['worst_error_in_bounds']:.3g} times the rounding bound")
    for text in content["left_out"]:
        print(f"time was up: {text}")


def parse_options():
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out",
                        default=os.environ.get("OUT") or os.path.join(ROOT, "bench", "results"))
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")],
                        default=list(SIZES))
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--carry", default=os.path.join(ROOT, "carry"),
                        help="folder with libopenblas.so.0 and what it needs")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--cuda-path", default="", help="GPUSHIM_CUDA_PATH of the shim engines")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--budget", type=float, default=240, help="seconds for the measurements")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--quick", action="store_true", help="small sizes, few repetitions")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.reps = [64, 256, 512], 2
    options.carry = os.path.abspath(options.carry)
    return options


def main():
    """Returns the exit status: 1 when a result was wrong or an engine died."""
    options = parse_options()
    with tempfile.TemporaryDirectory() as folder:
        engines = [Engine(name, options, folder) for name in options.engines.split(",")]
        left_out = measure(engines, options)
        for engine in engines:
            if engine.process is not None and engine.process.poll() is None:
                engine.close()
        content = document(engines, options, folder, left_out)
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "crossover.json"), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    print_table(content)
    bad = any(row["worst_error_in_bounds"] > 1 or "died" in row["missing"]
              for row in content["engines"].values())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
