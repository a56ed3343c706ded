# SPDX-License-Identifier: Apache-2.0
"""Asks a question in a child process: CUDA and foreign libraries may crash, hang or print."""
import json
import os
import signal
import subprocess
import tempfile

CHILD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "doctor_child.py")
# The current folder, which -c puts first, must not stand in for the program's modules.
START = ("import sys; sys.path[:1] = [p for p in sys.path[:1] if p]; "
         "exec(compile(open({path!r}, encoding='utf-8').read(), {path!r}, 'exec'))")
TIMEOUT_S = 120


def last_line(text):
    """Returns the last line of a text that says something, or ""."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def ending(status, errors):
    """Returns how a child that gave no answer ended, as a phrase."""
    line = last_line(errors)
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"died of {name}" + (f" ({line})" if line else "")
    return line or f"ended with status {status}"


def filled(file, text):
    """Returns a temporary file that reads as text."""
    file.write(text)
    file.seek(0)
    return file


def run_child(command, text, environment):
    """Runs a command with text on stdin; returns (exit status, stderr), or (None, why not)."""
    try:
        # A file, not a pipe: a child that ends without reading would end us by SIGPIPE.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as stdin, \
                subprocess.Popen(command, env=environment, stdin=filled(stdin, text),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 encoding="utf-8", errors="replace",
                                 start_new_session=True) as child:
            try:
                errors = child.communicate(timeout=TIMEOUT_S)[1]
                return child.returncode, errors
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                return None, f"gave no answer in {TIMEOUT_S} s"
    except OSError as error:
        return None, str(error)


def ask(python, task, environment=None, **request):
    """Returns (answer, None), or (None, why there is none).

    python: the words that start a Python; task and request: see doctor_child.py.
    """
    with tempfile.TemporaryDirectory(prefix="gpushim-doctor-") as folder:
        answer = os.path.join(folder, "answer.json")
        text = json.dumps(dict(request, task=task, answer=answer))
        status, errors = run_child([*python, "-c", START.format(path=CHILD)], text, environment)
        if os.path.exists(answer):
            with open(answer, encoding="utf-8") as file:
                return json.load(file), None
    return None, errors if status is None else ending(status, errors)
