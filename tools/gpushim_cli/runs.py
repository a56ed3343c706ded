# SPDX-License-Identifier: Apache-2.0
"""gpushim runs: lists recorded runs and deletes them."""
import os
import time

from . import gsl, rundir, tables
from .errors import CliError
from .output import Screen, data_size, plural, print_json
from .parser import Parser
from .settings import size_bytes

FAILURE_STATUS = 1
# The only files that are ever deleted.
OWN_NAMES = ("run.json", "index.sqlite")
OWN_ENDINGS = (".gsl", ".events.jsonl")
OWN_START = "run.json."  # one that a process had not finished writing when it was killed
SUMMARY = """Lists recorded runs, the latest first (list, the default), deletes some (rm), or
deletes the oldest until few enough are left (prune). Runs that are still being written are never
deleted."""
EXAMPLE = "  gpushim runs\n  gpushim runs prune --keep 5"


def make_parser():
    """Returns the parser of the verb."""
    parser = Parser("runs", SUMMARY, EXAMPLE)
    parser.add_argument("action", nargs="?", default="list", choices=("list", "rm", "prune"))
    parser.add_argument("run", nargs="*", metavar="RUN", help="rm: ids of the runs to delete")
    parser.add_argument("--json", action="store_true", help="list: one JSON document")
    parser.add_argument("--keep", type=int, default=20, metavar="N",
                        help="prune: how many runs stay (%(default)s)")
    parser.add_argument("--max-size", default="1G", metavar="SIZE",
                        help="prune: how large they may be together (%(default)s)")
    return parser


def describe(folder):
    """Returns {"run_id", "folder", "started_unix_s", "processes", "bytes", "programs", "running"}
    of a run."""
    headers, running = [], False
    for path in rundir.files_ending(folder, ".gsl"):
        try:
            header = gsl.read_header(path)
        except (gsl.FormatError, OSError):
            continue
        headers.append(header)
        running = running or rundir.is_being_written(path, header.pid)
    return {"run_id": os.path.basename(folder), "folder": folder,
            "started_unix_s": min((header.realtime_ns for header in headers), default=0) / 1e9,
            "processes": len(headers), "bytes": sum(map(disk_bytes, os.scandir(folder))),
            "programs": sorted({os.path.basename(header.program) for header in headers}),
            "running": running}


def disk_bytes(entry):
    """Returns the bytes on disk of a folder entry."""
    return entry.stat(follow_symlinks=False).st_blocks * 512


def print_list(runs, folder):
    """Prints the table of runs."""
    Screen().table(
        ["run", "started", ">processes", ">size", "program"],
        [[row["run_id"],
          time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["started_unix_s"])),
          row["processes"], data_size(row["bytes"]),
          ", ".join(row["programs"]) + (" (running)" if row["running"] else "")]
         for row in runs])
    print(f"\n{plural(len(runs), 'run')} in {folder}")


def is_own(name):
    """Returns whether a file of this name in a run's folder was written by the library or by us."""
    return name in OWN_NAMES or name.startswith(OWN_START) or name.endswith(OWN_ENDINGS)


def delete_run(folder):
    """Deletes the audit files of a run, and its folder when nothing else is in it."""
    for entry in os.scandir(folder):
        if is_own(entry.name):
            os.unlink(entry.path)
    try:
        os.rmdir(folder)
    except OSError as error:
        raise CliError(f"{folder} holds other files and stays") from error


def remove(names, folder):
    """Deletes the runs with these ids."""
    known = {os.path.basename(path): path for path in rundir.run_folders(folder)}
    for name in names:
        if name not in known:
            raise CliError(f"no run {name!r} in {folder}: see gpushim runs")
        if describe(known[name])["running"]:
            raise CliError(f"run {name!r} is still being written")
    for name in names:
        delete_run(known[name])
        print(f"deleted {name}")


def prune(folder, keep, bytes_max):
    """Deletes the oldest runs beyond keep runs or bytes_max bytes in all."""
    kept, kept_bytes, fits = 0, 0, True
    for row in map(describe, rundir.run_folders(folder)):
        fits = fits and kept < keep and kept_bytes + row["bytes"] <= bytes_max
        if fits or row["running"]:
            kept += 1
            kept_bytes += row["bytes"]
        else:
            delete_run(row["folder"])
            print(f"deleted {row['run_id']}")
    print(f"{plural(kept, 'run')} left, {data_size(kept_bytes)}")


def main(arguments):
    """Runs the verb; returns the exit status."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    bytes_max = size_bytes(options.max_size)
    if (options.action == "rm") != bool(options.run):
        parser.error("rm needs the ids of the runs" if options.action == "rm" else
                     f"{options.action} takes no run ids")
    if bytes_max is None or options.keep < 0:
        parser.error("--keep takes a number, --max-size a size such as 512M")
    folder = rundir.audit_folder(tables.load().settings)
    if options.action == "rm":
        remove(options.run, folder)
    elif options.action == "prune":
        prune(folder, options.keep, bytes_max)
    else:
        return list_runs(folder, options.json)
    return 0


def list_runs(folder, as_json):
    """Prints all runs; returns the exit status, 0 also when there are none."""
    runs = [describe(path) for path in rundir.run_folders(folder)]
    if as_json:
        print_json(runs)
    elif runs:
        print_list(runs, folder)
    else:
        print(f"no runs in {folder} yet: {rundir.HOW_TO_MAKE_ONE}")
    return 0
