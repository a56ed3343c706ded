# SPDX-License-Identifier: Apache-2.0
"""The folders of runs: which there are, which is the latest, what one holds."""
import json
import os

from . import settings
from .errors import CliError
from .places import xdg_folder

HOW_TO_MAKE_ONE = "make one with: gpushim run python app.py"
LATEST = "last"  # the word that stands for the latest run


def audit_folder(rows):
    """Returns the folder of the runs (rows: the settings of tables.json); it may not exist."""
    chosen = settings.effective(rows).values["AUDIT_DIR"]
    if chosen != "auto":
        return chosen
    state = xdg_folder("XDG_STATE_HOME", os.path.join(".local", "state"))
    if state is None:
        raise CliError("neither HOME nor XDG_STATE_HOME is set: name a run folder")
    return os.path.join(state, "gpushim", "runs")


def files_ending(folder, ending):
    """Returns the sorted paths of the files in folder whose names end so."""
    return sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(ending))


def has_audit_files(folder):
    """Returns whether folder directly holds audit files."""
    return any(entry.name.endswith(".gsl") for entry in os.scandir(folder))


def run_folders(folder):
    """Returns the paths of the runs below an audit folder, the latest first.

    A run is as late as the last process that joined it: creating its file changed the folder.
    """
    if not os.path.isdir(folder):
        return []
    runs = [entry for entry in os.scandir(folder)
            if entry.is_dir(follow_symlinks=False) and has_audit_files(entry.path)]
    runs.sort(key=lambda entry: (entry.stat().st_mtime_ns, entry.name), reverse=True)
    return [entry.path for entry in runs]


def latest_run(folder):
    """Returns the path of the latest run in an audit folder; CliError when there is none."""
    runs = run_folders(folder)
    if not runs:
        raise CliError(f"no runs in {folder} yet: {HOW_TO_MAKE_ONE}")
    return runs[0]


def find_run(name, rows):
    """Returns the folder of the run that name stands for; CliError when there is none.

    name: a run id, the path of a run, the path of a folder of runs, "last" or None (the latest).
    """
    if name is None or name == LATEST:
        return latest_run(audit_folder(rows))
    path = name
    if os.sep not in name and os.path.isdir(os.path.join(audit_folder(rows), name)):
        path = os.path.join(audit_folder(rows), name)
    if not os.path.isdir(path):
        raise CliError(f"no run {name!r} in {audit_folder(rows)}: see gpushim runs")
    if has_audit_files(path):
        return path
    runs = run_folders(path)
    if not runs:
        raise CliError(f"{path} holds no audit file: no call was looked at, or GPUSHIM_AUDIT=off")
    return runs[0]


def read_events(folder):
    """Returns the rare events of a run (dicts, in time order); a torn last line is left out."""
    events = []
    for path in files_ending(folder, ".events.jsonl"):
        with open(path, encoding="utf-8", errors="replace") as file:
            events.extend(filter(None, map(parse_event, file)))
    return sorted(events, key=lambda event: event.get("t_ns") or 0)


def parse_event(line):
    """Returns the event on one line, or None when the line is not whole."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    usable = isinstance(event, dict) and isinstance(event.get("t_ns", 0), (int, float))
    return event if usable else None


def is_being_written(path, pid):
    """Returns whether process pid, on this machine, has the audit file at path mapped."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return os.fsencode(os.path.realpath(path)) in file.read()
    except OSError:
        return False
