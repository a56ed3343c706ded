#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The price of "no": what a call that is not looked at costs beyond the bare call.

    bench/overhead.py                  times, with and without the preload in turn
    bench/overhead.py --instructions   instructions per call, which no busy machine changes
    bench/overhead.py --store          writes the instruction counts to overhead_expected.json

Times: an empty gemm (overhead_stub.c), so that the difference is not lost in the work, and a real
BLAS of n = 1..4; from one and from two threads; medians over runs that take turns. Instructions: by
callgrind, as the difference of two loop lengths. tests/python/test_overhead.py holds CI to them.
"""
import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "bench")
EXPECTED = os.path.join(BENCH, "overhead_expected.json")
ENTRIES = ("dgemm_", "cblas_dgemm")
MODES = ("auto", "off")
BLAS_PLACES = ("/usr/lib/*/libblas.so.3", "/usr/lib64/libblas.so.3",
               ROOT + "/carry/libopenblas.so.0")
TOLERANCE = 1.10


def compile_programs(folder, cc=None):
    """Builds the program and the empty BLAS in folder; returns the program's path."""
    cc = cc or os.environ.get("CC", "cc")
    stub, program = os.path.join(folder, "libstub.so"), os.path.join(folder, "overhead")
    for command in (
            [cc, "-O2", "-shared", "-fPIC", "-Wl,-soname,libstub.so", "-o", stub,
             os.path.join(BENCH, "overhead_stub.c")],
            [cc, "-O2", "-pthread", "-o", program, os.path.join(BENCH, "overhead.c"), "-L" + folder,
             "-lstub", "-ldl"]):
        subprocess.run(command, check=True)
    return program


def environment(folder, mode, build):
    """Returns the environment of a run; mode None: without the preload."""
    variables = {key: value for key, value in os.environ.items()
                 if not key.startswith("GPUSHIM_") and key != "LD_PRELOAD"}
    variables["LD_LIBRARY_PATH"] = folder
    variables["OPENBLAS_NUM_THREADS"] = "1"
    if mode:
        variables.update(LD_PRELOAD=os.path.join(build, "libgpushim.so"), GPUSHIM_MODE=mode,
                         GPUSHIM_AUDIT="off")
    return variables


def real_blas(folder):
    """Makes a folder in which the program finds a real BLAS under the stub's name, or None."""
    found = [path for place in BLAS_PLACES for path in glob.glob(place)]
    if not found:
        return None
    place = os.path.join(folder, "real")
    os.makedirs(place, exist_ok=True)
    link = os.path.join(place, "libstub.so")
    if not os.path.exists(link):
        os.symlink(os.path.realpath(found[0]), link)
    return place


def time_once(program, folder, mode, build, entry, n, calls, threads):
    """Returns the nanoseconds of one call: the median of a few loops in one process."""
    done = subprocess.run([program, entry, str(n), str(calls), str(threads), "5"], check=True,
                          env=environment(folder, mode, build), stdout=subprocess.PIPE,
                          encoding="utf-8")
    _, median, owner = done.stdout.split(maxsplit=2)
    assert ("libgpushim" in owner) == bool(mode), owner
    return float(median)


def times(program, folder, build, rounds=9):
    """Returns rows of {"blas", "entry", "n", "threads", "plain_ns", "auto_ns", ...}."""
    places = [("empty", folder, (2,), 2000000), ("real", real_blas(folder), (1, 2, 3, 4), 200000)]
    rows = []
    for blas, place, sizes, calls in places:
        if place is None:
            continue
        for entry in ENTRIES:
            for n in sizes:
                for threads in (1, 2) if blas == "empty" or n == 2 else (1,):
                    found = {mode: [] for mode in (None, *MODES)}
                    for _ in range(rounds):
                        for mode in found:
                            found[mode].append(time_once(program, place, mode, build, entry, n,
                                                         calls, threads))
                    row = {"blas": blas, "entry": entry, "n": n, "threads": threads}
                    row.update({f"{mode or 'plain'}_ns": statistics.median(values)
                                for mode, values in found.items()})
                    # Differences within a round: whatever the machine does meets all three.
                    row.update({f"{mode}_extra_ns": statistics.median(
                        ours - plain for ours, plain in zip(found[mode], found[None]))
                        for mode in MODES})
                    rows.append(row)
    return rows


def count_instructions(program, folder, mode, build, entry, calls):
    """Returns the instructions that callgrind counts in a whole run."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.out", program,
         entry, "2", str(calls)], env=environment(folder, mode, build), check=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    return int(re.search(r"Collected\s*:\s*(\d+)", done.stderr).group(1))


def instructions(program, folder, build):
    """Returns {"dgemm_ auto": instructions beyond the bare call, ...}; None without valgrind."""
    if shutil.which("valgrind") is None:
        return None
    few, many, found = 2000, 12000, {}
    for entry in ENTRIES:
        per_call = {}
        for mode in (None, *MODES):
            counts = [count_instructions(program, folder, mode, build, entry, calls)
                      for calls in (few, many)]
            per_call[mode] = (counts[1] - counts[0]) / (many - few)
        found.update({f"{entry} {mode}": round(per_call[mode] - per_call[None], 2)
                      for mode in MODES})
    return found


def expected():
    """Returns the stored instruction counts."""
    with open(EXPECTED, encoding="utf-8") as file:
        return json.load(file)


def compiler():
    """Returns the compiler's version: another one makes other instructions."""
    done = subprocess.run([os.environ.get("CC", "cc"), "--version"], stdout=subprocess.PIPE,
                          encoding="utf-8", check=True)
    return done.stdout.splitlines()[0]


def print_times(rows):
    """Prints the table of times."""
    print(f"{'BLAS':<7}{'entry':<13}{'n':>2}{'threads':>9}{'plain ns':>10}{'auto ns':>9}"
          f"{'extra':>8}{'ratio':>7}{'off extra':>11}")
    for row in rows:
        print(f"{row['blas']:<7}{row['entry']:<13}{row['n']:>2}{row['threads']:>9}"
              f"{row['plain_ns']:>10.2f}{row['auto_ns']:>9.2f}{row['auto_extra_ns']:>8.2f}"
              f"{row['auto_ns'] / row['plain_ns']:>7.2f}{row['off_extra_ns']:>11.2f}")


def main():
    """Returns the exit status: 1 when the instruction counts are over the stored ones."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--instructions", action="store_true", help="only the instruction counts")
    parser.add_argument("--store", action="store_true", help="store the instruction counts")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = compile_programs(folder)
        if not options.instructions and not options.store:
            print_times(times(program, folder, options.build, options.rounds))
        counts = instructions(program, folder, options.build)
    if counts is None:
        print("instructions: not counted, valgrind is not installed")
        return 0
    if options.store:
        with open(EXPECTED, "w", encoding="utf-8") as file:
            content = {"compiler": compiler(), "extra_instructions_per_call": counts}
            json.dump(content, file, indent=1)
            file.write("\n")
    stored = expected()["extra_instructions_per_call"]
    for key, count in counts.items():
        print(f"instructions beyond the bare call: {key:<18} {count:8.2f}, "
              f"stored {stored[key]:8.2f}")
    return 1 if any(counts[key] > TOLERANCE * stored[key] for key in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
