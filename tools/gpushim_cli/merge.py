# SPDX-License-Identifier: Apache-2.0
"""The numbers of one run, merged over its processes. Times are seconds, sizes bytes."""
import math
import os

from . import gsl_header, rundir, tables
from .gsl import AuditFile, FormatError
from .output import duration

COUNTER_NAMES = ("calls", "wall_ns", "bytes_in", "bytes_out", "lost_ns", "routine", "reason",
                 "would", "where")
RECORD_NAMES = ("start_ns", "wall_ns", "m", "n", "k", "predicted_cpu_s", "predicted_gpu_s",
                "copy_in_s", "copy_out_s", "cpu_s", "routine", "caller", "provider", "where",
                "options")
ON_GPU = 1
SHAPES_SHOWN = 20
NOT_NAMED = "(not named)"


class Routine:
    """Sums over the calls of one routine."""

    def __init__(self):
        self.gpu_calls = self.cpu_calls = self.small_calls = self.nested_calls = 0
        self.gpu_ns = self.cpu_ns = self.lost_ns = self.bytes_in = self.bytes_out = 0
        self.recorded_gpu_ns = 0
        self.copy_s = 0.0

    def as_dict(self, name, call):
        """Returns the JSON form; call is the call string that took most time, or None.

        cpu_calls includes small_calls (S101) but not nested_calls (A602). copy_s and
        recorded_gpu_s are sums over the recorded GPU calls.
        """
        return {"routine": name, "gpu_calls": self.gpu_calls, "cpu_calls": self.cpu_calls,
                "small_calls": self.small_calls, "nested_calls": self.nested_calls,
                "gpu_s": self.gpu_ns / 1e9, "cpu_s": self.cpu_ns / 1e9,
                "lost_s": self.lost_ns / 1e9, "bytes_in": self.bytes_in,
                "bytes_out": self.bytes_out, "copy_s": self.copy_s,
                "recorded_gpu_s": self.recorded_gpu_ns / 1e9, "costliest_call": call}


class Sums:
    """Calls and nanoseconds under one key."""

    def __init__(self):
        self.calls = self.wall_ns = self.lost_ns = 0
        self.routines = {}

    def add(self, calls, wall_ns, lost_ns=0):
        """Adds some calls."""
        self.calls += calls
        self.wall_ns += wall_ns
        self.lost_ns += lost_ns


class Totals:
    """What all processes of a run did."""

    def __init__(self, facts):
        self.facts = facts         # the Tables
        self.routines = {}         # name -> Routine
        self.reasons = {}          # (reason number, where) -> Sums
        self.would = {}            # (reason number, would number) -> Sums
        self.callers = {}          # module path -> Sums
        self.providers = set()     # paths of the CPU libraries
        self.shapes = {}           # (routine, options, m, n, k) -> [calls, wall_ns]
        self.errors = []           # |predicted - measured| / measured, one per recorded call

    def add_counters(self, file):
        """Adds the counter rows of one AuditFile; returns (calls, nanoseconds) of the process.

        Nested calls are not part of what is returned: their time is in the call around them.
        """
        all_calls = all_ns = 0
        for (calls, wall_ns, bytes_in, bytes_out, lost_ns, routine, reason, would,
             where) in file.counters(COUNTER_NAMES):
            if reason == 0 or calls == 0:
                continue
            name = file.routine(routine)
            if self._add_to_routine(name, reason, where, calls, wall_ns, lost_ns):
                all_calls += calls
                all_ns += wall_ns
            sums = self.routines[name]
            sums.bytes_in += bytes_in
            sums.bytes_out += bytes_out
            by_reason = self.reasons.setdefault((reason, where), Sums())
            by_reason.add(calls, wall_ns, lost_ns)
            by_reason.routines[name] = by_reason.routines.get(name, 0) + calls
            if would != 0:
                self.would.setdefault((reason, would), Sums()).add(calls, wall_ns, lost_ns)
        return all_calls, all_ns

    def _add_to_routine(self, name, reason, where, calls, wall_ns, lost_ns):
        """Adds calls to their routine; returns False for nested ones."""
        sums = self.routines.setdefault(name, Routine())
        reason_name = self.facts.reason(reason)["name"]
        if reason_name == tables.NESTED:
            sums.nested_calls += calls
            return False
        if where == ON_GPU:
            sums.gpu_calls += calls
            sums.gpu_ns += wall_ns
        else:
            sums.cpu_calls += calls
            sums.cpu_ns += wall_ns
            sums.lost_ns += lost_ns
            if reason_name == tables.SMALL:
                sums.small_calls += calls
        return True

    def add_records(self, file):
        """Adds the records of one AuditFile; returns the CLOCK_MONOTONIC ns when the last ended."""
        shapes, callers, providers, errors, end_ns = {}, {}, set(), [], 0
        for (start_ns, wall_ns, m, n, k, predicted_cpu_s, predicted_gpu_s, copy_in_s, copy_out_s,
             cpu_s, routine, caller, provider, where, options) in file.records(RECORD_NAMES):
            end_ns = max(end_ns, start_ns + wall_ns)
            shape = shapes.setdefault((routine, options, m, n, k), [0, 0])
            shape[0] += 1
            shape[1] += wall_ns
            by_caller = callers.setdefault(caller, [0, 0])
            by_caller[0] += 1
            by_caller[1] += wall_ns
            providers.add(provider)
            if where == ON_GPU:
                predicted, measured = predicted_gpu_s, wall_ns * 1e-9
                self._add_copies(file.routine(routine), wall_ns, copy_in_s + copy_out_s)
            else:
                predicted, measured = predicted_cpu_s, cpu_s or wall_ns * 1e-9
            if predicted > 0 and measured > 0:
                errors.append(abs(predicted - measured) / measured)
        self._take_shapes(file, shapes)
        self._take_modules(file, callers, providers)
        self.errors.extend(filter(math.isfinite, errors))
        return end_ns

    def _add_copies(self, routine, wall_ns, copy_s):
        """Adds the copies of one recorded GPU call."""
        sums = self.routines.setdefault(routine, Routine())
        sums.recorded_gpu_ns += wall_ns
        if math.isfinite(copy_s):
            sums.copy_s += copy_s

    def _take_shapes(self, file, shapes):
        """Adds the shapes of one file under the names of its routines."""
        for (routine, *rest), (calls, wall_ns) in shapes.items():
            shape = self.shapes.setdefault((file.routine(routine), *rest), [0, 0])
            shape[0] += calls
            shape[1] += wall_ns

    def _take_modules(self, file, callers, providers):
        """Adds the callers and CPU libraries of one file under their paths."""
        for caller, (calls, wall_ns) in callers.items():
            path = file.module(caller) or NOT_NAMED
            self.callers.setdefault(path, Sums()).add(calls, wall_ns)
        self.providers.update(filter(None, map(file.module, providers)))


def call_string(routine, options, m, n, k):
    """Returns the name of a call used everywhere: "dgemm.NN/512x512x512"."""
    flags = gsl_header.text(options)
    sizes = "x".join(str(size) for size in ((m, n, k) if k else (m, n) if n else (m,)))
    return f"{routine}.{flags}/{sizes}" if flags else f"{routine}/{sizes}"


def percentile(ordered, share):
    """Returns the value of a sorted, non-empty list that this share of the values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def prediction_error(errors):
    """Returns {"p50", "p90", "records"} of the relative errors, or None without any."""
    if not errors:
        return None
    ordered = sorted(errors)
    return {"p50": percentile(ordered, 0.5), "p90": percentile(ordered, 0.9),
            "records": len(ordered)}


def by_time(item):
    """Sort key of (key, Sums) pairs: longest first, then most calls, then by name."""
    key, sums = item
    return -sums.wall_ns, -sums.calls, key


def shape_rows(totals):
    """Returns all shapes as {"call", "routine", "calls", "seconds"}, longest first."""
    rows = [{"call": call_string(*key), "routine": key[0], "calls": calls, "seconds": ns / 1e9}
            for key, (calls, ns) in totals.shapes.items()]
    return sorted(rows, key=lambda row: (-row["seconds"], row["call"]))


def routine_rows(totals, shapes):
    """Returns the "routines" of the report, longest first."""
    costliest = {}
    for row in shapes:
        costliest.setdefault(row["routine"], row["call"])
    rows = [sums.as_dict(name, costliest.get(name)) for name, sums in totals.routines.items()]
    return sorted(rows, key=lambda row: (-row["gpu_s"] - row["cpu_s"], row["routine"]))


def reason_row(facts, number, where, sums):
    """Returns one of the "reasons" of the report."""
    row = facts.reason(number)
    timed = row["name"] not in tables.UNTIMED
    lost = timed and where != ON_GPU
    return {"code": row["code"], "name": row["name"], "where": "gpu" if where == ON_GPU else "cpu",
            "class": row["class"], "severity": row["severity"], "calls": sums.calls,
            "seconds": sums.wall_ns / 1e9 if timed else None,
            "lost_s": sums.lost_ns / 1e9 if lost else None,
            "routines": dict(sorted(sums.routines.items())),
            "when": row["when"], "remedy": row["remedy"]}


def reason_rows(totals):
    """Returns the "reasons" of the report: most time lost first, then longest, then most calls."""
    rows = [reason_row(totals.facts, number, where, sums)
            for (number, where), sums in totals.reasons.items()]
    return sorted(rows, key=lambda row: (-(row["lost_s"] or 0), -(row["seconds"] or 0),
                                         -row["calls"], row["code"]))


def would_rows(totals):
    """Returns the "would" of the report: what auto would have decided, and why."""
    rows = []
    for (number, would), sums in sorted(totals.would.items(), key=by_time):
        row = totals.facts.reason(would)
        rows.append({"code": row["code"], "name": row["name"],
                     "where": "gpu" if row["class"] == "gpu" else "cpu",
                     "reason": totals.facts.reason(number)["code"], "calls": sums.calls,
                     "seconds": sums.wall_ns / 1e9, "lost_s": sums.lost_ns / 1e9})
    return rows


def caller_rows(totals):
    """Returns the "callers" of the report, longest first; recorded calls only."""
    return [{"module": path, "calls": sums.calls, "seconds": sums.wall_ns / 1e9}
            for path, sums in sorted(totals.callers.items(), key=by_time)]


def process_row(file, facts, calls, nanoseconds, end_ns):
    """Returns one of the "processes" of the report; end_ns: end of its last record."""
    header = file.header
    span_ns = max(header.end_monotonic_ns, end_ns, header.monotonic_ns) - header.monotonic_ns
    state = header.device_state_reason
    return {"pid": header.pid, "ppid": header.ppid, "host": header.host,
            "program": header.program, "mode": header.mode_name,
            "started_unix_s": header.realtime_ns / 1e9,
            "ended_unix_s": (header.realtime_ns + span_ns) / 1e9, "device": header.device_name,
            "cuda_libraries": header.cuda_libraries.split("\n") if header.cuda_libraries else [],
            "partial": gsl_header.partial_names(header), "flags": gsl_header.flag_names(header),
            "device_state": facts.reason(state)["code"] if state else None,
            "closed": file.closed,
            "running": not file.closed and rundir.is_being_written(file.path, header.pid),
            "truncated": file.truncated, "records_dropped": header.records_dropped,
            "record_floor_s": header.record_floor_ns / 1e9, "startup_s": header.startup_ns / 1e9,
            "overhead_s": header.overhead_ns / 1e9, "calls": calls, "seconds": nanoseconds / 1e9,
            "version": header.version}


def missing_text(row):
    """Returns what the numbers of a process lack, as a list of sentences."""
    who = f"process {row['pid']}"
    missing = []
    if row["running"]:
        missing.append(f"{who} is still running: this is what it did so far")
    elif not row["closed"]:
        missing.append(f"{who} did not end in order: small calls may be missing")
    if row["truncated"]:
        missing.append(f"{who}: its file is cut short, records are missing")
    missing.extend(f"{who}: {meaning.format(floor=duration(row['record_floor_s']))}"
                   for _, name, meaning in gsl_header.PARTIAL if name in row["partial"])
    return missing


def first_of(values):
    """Returns the first value that is not empty, else ""."""
    return next(filter(None, values), "")


def read_file(path, totals):
    """Adds the audit file at path to totals; returns its AuditFile and its row of "processes"."""
    file = AuditFile(path)
    file.check_fields(COUNTER_NAMES, RECORD_NAMES)
    calls, nanoseconds = totals.add_counters(file)
    end_ns = totals.add_records(file)
    return file, process_row(file, totals.facts, calls, nanoseconds, end_ns)


def merge(folder, facts):
    """Returns the report of the run in folder as the dict that gpushim report --json prints."""
    totals, headers, processes, modules, unreadable = Totals(facts), [], [], set(), []
    for path in rundir.files_ending(folder, ".gsl"):
        try:
            file, process = read_file(path, totals)
        except (FormatError, OSError) as error:
            unreadable.append({"file": os.path.basename(path), "why": str(error)})
            continue
        # Not the file itself: the files of a run can be larger than the memory of this machine.
        headers.append(file.header)
        processes.append(process)
        modules.update(filter(None, file.modules))
    processes.sort(key=lambda row: (row["started_unix_s"], row["pid"]))
    missing = [sentence for row in processes for sentence in missing_text(row)]
    missing.extend(f"{row['file']} was not read: {row['why']}" for row in unreadable)
    report = run_facts(folder, headers, processes)
    report.update(call_facts(totals))
    report.update({"processes": processes, "modules": sorted(modules), "unreadable": unreadable,
                   "complete": bool(headers) and not missing, "missing": missing,
                   "overhead_s": sum(row["overhead_s"] for row in processes),
                   "events": rundir.read_events(folder)})
    return report


def run_facts(folder, headers, processes):
    """Returns the part of the report that says which run it is.

    span_s: from the opening of the first file to the last sign of life of any process.
    """
    folder = os.path.abspath(folder)
    started = min((row["started_unix_s"] for row in processes), default=0)
    return {
        "run_id": first_of(header.run_id for header in headers) or os.path.basename(folder),
        "folder": folder,
        "version": first_of(header.version for header in headers),
        "started_unix_s": started,
        "span_s": max((row["ended_unix_s"] for row in processes), default=started) - started,
    }


def call_facts(totals):
    """Returns the part of the report that is about calls."""
    shapes = shape_rows(totals)
    return {
        "routines": routine_rows(totals, shapes),
        "reasons": reason_rows(totals),
        "would": would_rows(totals),
        "prediction_error": prediction_error(totals.errors),
        "callers": caller_rows(totals),
        "providers": sorted(totals.providers),
        "shapes": shapes[:SHAPES_SHOWN],
    }
