# SPDX-License-Identifier: Apache-2.0
"""Field failures around settings files and output streams; one test per case, as in
test_field_cases.py.
"""
import json
import os
import sys

import pytest
from preloaded import REAL, SMALL_RUN, runner  # noqa: F401


def setting_events(outcome):
    """Returns the remarks on settings that the run left."""
    return [event for event in outcome.report["events"] if event.get("code") == "P709"]


BIG_LINE = "MIN_TIME = " + "1" * (1 << 20)
CONFIGS = {
    "empty": ("", 0, ""),
    "only comments": ("# nothing\n\n; here\n", 0, ""),
    "good": ("MIN_SPEEDUP = 1.5\n", 0, ""),
    "unknown key": ("MIN_SPEDUP = 1.5\n", 1, "MIN_SPEDUP"),
    "bad value": ("MIN_TIME = abc\n", 1, "MIN_TIME"),
    "bad size": ("AUDIT_LIMIT = abc\n", 1, "AUDIT_LIMIT"),
    "a line of 1 MB": (BIG_LINE + "\n", 1, ""),
    "no equals sign": ("MIN_TIME\n", 1, ""),
    "binary": ("\x7fELF\1\2\xff" * 50, 1, ""),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_c95_settings_files(runner, tmp_path, name):  # noqa: F811
    """Works, is silent on the streams, and the audit names the file and the key once."""
    text, remarks, key = CONFIGS[name]
    path = tmp_path / "gpushim.conf"
    path.write_bytes(text.encode("latin-1"))
    outcome = runner.python(SMALL_RUN, CONFIG=path)
    assert (outcome.stdout, outcome.stderr) == ("", "")
    assert outcome.gpu_calls("dgemm") == 1
    events = setting_events(outcome)
    assert (len(events) >= 1) == (remarks == 1), events
    if remarks:
        assert len(events) <= 2
        assert str(path) in json.dumps(events) and key in json.dumps(events)


def test_c95_missing_and_unreadable_files(runner, tmp_path):  # noqa: F811
    """No file at all is nothing to speak of; one that was asked for and cannot be read is."""
    outcome = runner.python(SMALL_RUN)
    assert setting_events(outcome) == [] and outcome.gpu_calls() == 1
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path / "missing.conf", tmp_path, fifo):  # root reads files of any mode
        outcome = runner.python(SMALL_RUN, CONFIG=path, timeout=30)
        assert outcome.stderr == "" and outcome.gpu_calls() == 1
        events = setting_events(outcome)
        assert len(events) == 1 and str(path) in json.dumps(events)


def test_c95_current_folder_is_not_searched(runner, tmp_path):  # noqa: F811
    here = tmp_path / "here"
    here.mkdir()
    for name in ("gpushim.conf", ".gpushim.conf", "config"):
        (here / name).write_text("MODE = off\nROUTINES = none\nMIN_TIME = abc\n")
    outcome = runner.python(f"import os\nos.chdir({str(here)!r})" + SMALL_RUN)
    assert outcome.gpu_calls("dgemm") == 1 and setting_events(outcome) == []
    # The same file where it is looked for is used: the test above is not blind.
    config = here / "gpushim"
    config.mkdir()
    (config / "gpushim.conf").write_text("ROUTINES = none\n")
    outcome = runner.python(SMALL_RUN, env={"XDG_CONFIG_HOME": str(here)})
    assert outcome.codes() == {"P702"}


JSON_PROGRAM = """
import json
import numpy as np
a = np.ones((300, 300))
print(json.dumps({"sum": (a @ a).sum(), "two": (a @ a)[0, :3].tolist()}))
"""


@pytest.mark.parametrize("way", ["gpu", "auto", "fallback", "device errors", "no audit folder",
                                 "bad setting"])
def test_c96_streams_are_the_programs(runner, tmp_path, way):  # noqa: F811
    """Byte for byte the same on both streams, also when calls fall back."""
    options = {
        "gpu": {}, "auto": {"mode": "auto"}, "fallback": {"env": {"CUDA_VISIBLE_DEVICES": "99"}},
        "device errors": {"env": {"FAKECUDA_FAIL_AT": "cublasDgemm_v2:1+"}},
        "no audit folder": {"AUDIT_DIR": "/proc/self/nowhere"},
        "bad setting": {"MIN_TIME": "abc", "NONSENSE": "1"},
    }[way]
    if way == "device errors" and REAL:
        pytest.skip("needs the failures that only tests/fakecuda injects")
    program = JSON_PROGRAM + "import sys\nprint('to stderr', file=sys.stderr)\n"
    plain = runner.python(program, preload=False)
    outcome = runner.python(program, **options)
    assert (outcome.stdout, outcome.stderr) == (plain.stdout, plain.stderr)
    if way in ("fallback", "device errors"):
        assert outcome.gpu_calls() == 0 and outcome.calls("cpu", "dgemm") == 2
        assert outcome.codes() <= {"L802", "E901"}
    elif way == "gpu":
        assert outcome.gpu_calls() == 2


def test_c96_standard_error_closed_or_full(runner, tmp_path):  # noqa: F811
    """fd 2 closed: what we open must not become the program's stderr; a full pipe blocks nobody."""
    script = tmp_path / "script.py"
    script.write_text(JSON_PROGRAM)
    plain = runner.python(JSON_PROGRAM, preload=False)
    command = ["bash", "-c", f'exec "{sys.executable}" "{script}" 2>&-']
    for verbose in ("0", "3"):
        outcome = runner.command(command, VERBOSE=verbose)
        assert outcome.stdout == plain.stdout and outcome.gpu_calls() == 2
    command = ["bash", "-c", f'x=$("{sys.executable}" "{script}"); printf %s "$x"']
    outcome = runner.command(command)
    assert outcome.stdout == plain.stdout.rstrip("\n") and outcome.gpu_calls() == 2
    full = tmp_path / "full.py"
    full.write_text("import os\nread, write = os.pipe()\nos.set_blocking(write, False)\n"
                    "try:\n    while True:\n        os.write(write, b'x' * 65536)\n"
                    "except BlockingIOError:\n    pass\n"
                    "os.dup2(write, 2)\n" + JSON_PROGRAM)
    outcome = runner.python(str(full), timeout=30)
    assert outcome.stdout == plain.stdout and outcome.gpu_calls() == 2


def test_c96_audit_written_to_closed_descriptors(runner, tmp_path):  # noqa: F811
    """A program that writes to fd 2 after closing it must not write into our file."""
    script = tmp_path / "closed.py"
    script.write_text(SMALL_RUN + "import os\ntry:\n    os.write(2, b'x' * 4096)\n"
                                  "    print('written')\nexcept OSError:\n    print('closed')\n")
    outcome = runner.command(["bash", "-c", f'exec "{sys.executable}" "{script}" 2>&-'])
    assert outcome.stdout == "closed\n"
    assert outcome.gpu_calls("dgemm") == 1 and outcome.report["complete"]
