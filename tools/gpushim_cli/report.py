# SPDX-License-Identifier: Apache-2.0
"""gpushim report: what ran where in a run, why, and what it cost."""
import os
import time
from collections import Counter

from . import merge, rundir, tables
from .errors import CliError
from .output import Screen, duration, plural, print_json
from .parser import Parser

FAILURE_STATUS = 1
SEVERITY_WORDS = {"expected": "expected", "look": "worth a look", "error": "error"}
CALLERS_SHOWN = 5
PROCESSES_SHOWN = 20
EVENTS_SHOWN = 10
MISSING_SHOWN = 10
SUMMARY = """Shows what ran where in a run, why, and what it cost, merged over its processes."""
EXAMPLE = "  gpushim report\n  gpushim report --json 20261201T140322Z-node7-4711 | jq .reasons"


def make_parser():
    """Returns the parser of the verb."""
    parser = Parser("report", SUMMARY, EXAMPLE)
    parser.add_argument("--json", action="store_true", help="everything, as one JSON document")
    parser.add_argument("--plain", action="store_true", help="no colours, no rich")
    parser.add_argument("run", metavar="RUN|DIR", nargs="?",
                        help="run id or folder; the latest run by default (see gpushim runs)")
    return parser


def dash(value, text=duration):
    """Returns text(value), or "-" for None."""
    return "-" if value is None else text(value)


def percent(part, whole):
    """Returns a share as text."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def module_name(path):
    """Returns the part of a module path that tells it from others: below site-packages, or the
    file name."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rpartition(folder)[2]
    return os.path.basename(path) or path


def print_header(screen, report):
    """Prints which run it is and how its time was spent."""
    processes = report["processes"]
    programs = Counter(os.path.basename(row["program"]) for row in processes)
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(report["started_unix_s"]))
    screen.parts([
        f"run {report['run_id']}", ", ".join(filter(None, programs)), started,
        plural(len(processes), "process", "es"),
        ", ".join(sorted({row["host"] for row in processes if row["host"]})),
        "mode " + ", ".join(sorted({row["mode"] for row in processes})),
        f"libgpushim {report['version']}"])
    for sentence in report["missing"][:MISSING_SHOWN]:
        screen.line(f"INCOMPLETE: {sentence}", indent="  ")
    if len(report["missing"]) > MISSING_SHOWN:
        screen.line(f"INCOMPLETE: and {len(report['missing']) - MISSING_SHOWN} more, see --json")


def print_time(screen, report):
    """Prints the calls and their time."""
    rows = report["routines"]
    gpu_s, cpu_s = sum(row["gpu_s"] for row in rows), sum(row["cpu_s"] for row in rows)
    calls = sum(row["gpu_calls"] + row["cpu_calls"] for row in rows)
    small, nested = (sum(row[key] for row in rows) for key in ("small_calls", "nested_calls"))
    screen.parts([
        f"{duration(gpu_s + cpu_s)} in {plural(calls, 'call')}, {duration(report['span_s'])} from "
        "the first decision to the last",
        f"GPU {duration(gpu_s)} ({percent(gpu_s, gpu_s + cpu_s)})", f"CPU {duration(cpu_s)}",
        f"{plural(small, 'small call')} not timed" if small else "",
        f"{plural(nested, 'nested call')} not added" if nested else ""])


def print_device(screen, report, facts):
    """Prints the device, or why there was none."""
    processes = report["processes"]
    devices = sorted({row["device"] for row in processes if row["device"]})
    states = Counter(row["device_state"] for row in processes if row["device_state"])
    startup_s = max((row["startup_s"] for row in processes), default=0)
    if devices:
        screen.parts(["device: " + ", ".join(devices),
                      f"start-up {duration(startup_s)}" if startup_s else ""])
    elif not states:
        screen.line("device: none was started")
    for code, count in sorted(states.items()):
        row = facts.reason(int(code[1:]))
        some = f" ({count} of {len(processes)} processes)" if count < len(processes) else ""
        screen.line(f"device: CPU only{some}: {code} {row['name']}, {row['when']} -> "
                    f"{row['remedy']}", indent="  ")


def print_routines(screen, report):
    """Prints the table of routines, with their sum."""
    rows = [row for row in report["routines"] if row["gpu_calls"] + row["cpu_calls"] > 0]
    if not rows:
        return
    keys = ("gpu_calls", "cpu_calls", "gpu_s", "copy_s", "recorded_gpu_s", "cpu_s", "lost_s")
    total = {key: sum(row[key] for row in rows) for key in keys}
    total.update(routine="Total", costliest_call=None)
    lines = []
    for row in [*rows, total] if len(rows) > 1 else rows:
        shape = (row["costliest_call"] or "").partition("/")[2]
        on_gpu, on_cpu = row["gpu_calls"] > 0, row["cpu_calls"] > 0
        lines.append([
            row["routine"], shape or "-", row["gpu_calls"] + row["cpu_calls"],
            row["gpu_calls"] or "-", row["cpu_calls"] or "-",
            duration(row["gpu_s"]) if on_gpu else "-",
            percent(row["copy_s"], row["recorded_gpu_s"]) if on_gpu else "-",
            duration(row["cpu_s"]) if on_cpu else "-",
            duration(row["lost_s"]) if on_cpu else "-"])
    screen.table(["routine", "shape*", ">calls", ">GPU", ">CPU", ">GPU time", ">copies",
                  ">CPU time", ">lost*"], lines)
    screen.line("* shape that took most time; lost: CPU time above the predicted GPU time; "
                '"-": none')


def print_reasons(screen, report, where, title):
    """Prints the reasons of the calls that ran there ("cpu" or "gpu")."""
    rows = [row for row in report["reasons"] if row["where"] == where]
    if not rows:
        return
    screen.table([title, "", ">calls", ">time", ">lost", "what to do"],
                 [[f"{row['code']} {row['name']}", SEVERITY_WORDS[row["severity"]], row["calls"],
                   dash(row["seconds"]), dash(row["lost_s"]), row["remedy"]] for row in rows])


def print_would(screen, report):
    """Prints what auto would have decided, for runs in another mode."""
    if report["would"]:
        screen.table(["auto would have run on the", "because", ">calls", ">time", ">lost"],
                     [[row["where"].upper(), f"{row['code']} {row['name']}", row["calls"],
                       duration(row["seconds"]), duration(row["lost_s"])]
                      for row in report["would"]])


def print_callers(screen, report):
    """Prints who called, and the CPU libraries behind the calls."""
    callers = report["callers"]
    if callers:
        screen.table([">recorded calls", ">time", "caller"],
                     [[row["calls"], duration(row["seconds"]), module_name(row["module"])]
                      for row in callers[:CALLERS_SHOWN]])
        if len(callers) > CALLERS_SHOWN:
            screen.line(f"and {len(callers) - CALLERS_SHOWN} more callers, see --json")
    screen.line()
    for path in report["providers"]:
        screen.line(f"CPU library: {path}")


def print_processes(screen, report):
    """Prints the table of processes, when there are several: those with most time."""
    rows = sorted(report["processes"], key=lambda row: -row["seconds"])
    if len(rows) < 2:
        return
    screen.table([">pid", ">parent", ">calls", ">time", "device", "program"],
                 [[row["pid"], row["ppid"], row["calls"], duration(row["seconds"]),
                   row["device"] or row["device_state"] or "-", os.path.basename(row["program"])]
                  for row in rows[:PROCESSES_SHOWN]])
    if len(rows) > PROCESSES_SHOWN:
        screen.line(f"and {len(rows) - PROCESSES_SHOWN} more processes, see --json")
    screen.line()


def print_events(screen, report):
    """Prints the latest rare events."""
    events = report["events"]
    for event in events[-EVENTS_SHOWN:]:
        rest = ", ".join(f"{key} {value}" for key, value in event.items()
                         if key not in ("v", "t_ns", "pid", "event") and value != "")
        screen.line(f"event: {event.get('event')} in process {event.get('pid')}"
                    f"{': ' if rest else ''}{rest}", indent="  ")
    if len(events) > EVENTS_SHOWN:
        screen.line(f"and {len(events) - EVENTS_SHOWN} earlier events, see --json")


def print_flags(screen, report, facts):
    """Prints the flags of the run that are reasons: not calibrated, bad setting."""
    flags = {flag for row in report["processes"] for flag in row["flags"]}
    for row in facts.reasons:
        if row["name"].lower() in flags:
            screen.line(f"note: {row['letter']}{row['number']:03} {row['name']}, {row['when']}"
                        + (f" -> {row['remedy']}" if row["remedy"] != "nothing" else ""),
                        indent="  ")


def print_quality(screen, report):
    """Prints how far the numbers and the tool itself can be trusted."""
    error = report["prediction_error"]
    screen.parts([f"overhead of libgpushim {duration(report['overhead_s'])}",
                  f"prediction error p50 {100 * error['p50']:.0f} %, p90 {100 * error['p90']:.0f} %"
                  f" ({error['records']} recorded calls)" if error else
                  "prediction error: no predicted call was recorded"])


def print_report(screen, report, facts):
    """Prints the text form of a report (the dict of merge.merge)."""
    print_header(screen, report)
    print_time(screen, report)
    print_device(screen, report, facts)
    print_routines(screen, report)
    print_reasons(screen, report, "cpu", "why the CPU")
    print_reasons(screen, report, "gpu", "why the GPU")
    print_would(screen, report)
    print_callers(screen, report)
    print_processes(screen, report)
    print_events(screen, report)
    print_flags(screen, report, facts)
    print_quality(screen, report)


def main(arguments):
    """Runs the verb; returns the exit status."""
    options = make_parser().parse_args(arguments)
    facts = tables.load()
    folder = rundir.find_run(options.run, facts.settings)
    report = merge.merge(folder, facts)
    if not report["processes"]:
        raise CliError(f"{folder}: no audit file could be read: " + "; ".join(report["missing"]))
    if options.json:
        print_json(report)
    else:
        print_report(Screen(options.plain), report, facts)
    return 0
