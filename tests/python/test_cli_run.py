# SPDX-License-Identifier: Apache-2.0
"""gpushim run, and what all verbs share."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from cli_layout import make_layout  # noqa: F401
from gsl_writer import GslWriter


def environment(layout, *arguments, **options):
    """Returns the environment that a program under gpushim run sees, read by env(1)."""
    lines = layout.ok("run", *arguments, "env", "-0", **options).split("\0")
    return dict(line.split("=", 1) for line in lines if line)


def test_environment(layout):
    seen = environment(layout)
    assert seen["LD_PRELOAD"] == str(layout.library)
    assert re.fullmatch(r"\d{8}T\d{6}Z-[A-Za-z0-9._-]+-\d+", seen["GPUSHIM_RUN_ID"])
    assert seen["GPUSHIM_VERBOSE"] == "1"
    assert set(seen) - set(layout.environment) == {
        "LD_PRELOAD", "GPUSHIM_RUN_ID", "GPUSHIM_VERBOSE"}


def test_what_is_set_stays(layout):
    other = layout.folder / "other.so"
    shutil.copy(layout.library, other)
    seen = environment(layout, set={
        "GPUSHIM_RUN_ID": "mine", "GPUSHIM_VERBOSE": "3",
        "LD_PRELOAD": f"{other} {layout.library}"})
    assert (seen["GPUSHIM_RUN_ID"], seen["GPUSHIM_VERBOSE"]) == ("mine", "3")
    assert seen["LD_PRELOAD"] == f"{layout.library}:{other}"


@pytest.mark.parametrize("options, expected", [
    (["-v"], {"VERBOSE": "2"}), (["-vv"], {"VERBOSE": "3"}), (["-v", "-v"], {"VERBOSE": "3"}),
    (["-q"], {"VERBOSE": "0"}), (["--mode", "observe"], {"MODE": "observe"}),
    (["--mode=force", "--"], {"MODE": "force"}),
    (["-e", "MIN_TIME=0s", "-e", "GPUSHIM_DEVICE=none"], {"MIN_TIME": "0s", "DEVICE": "none"})])
def test_options(layout, options, expected):
    seen = environment(layout, *options, set={"GPUSHIM_MODE": "off"})
    for name, value in expected.items():
        assert seen["GPUSHIM_" + name] == value


@pytest.mark.parametrize("options, message", [
    (["-e", "MDOE=off", "true"], "'MDOE' is not a setting; maybe MODE?"),
    (["-e", "MODE", "true"], "not of the form NAME=VALUE"),
    (["--mode", "fast", "true"], "one of auto, off, observe, force, verify"),
    (["--mod", "off", "true"], "unrecognized arguments: --mod"),
    (["-v", "-q", "true"], "not allowed with"), ([], "no command given"), (["--"], "no command"),
    (["--mode"], "expected one argument")])
def test_wrong_command_lines(layout, options, message):
    done = layout.gpushim("run", *options)
    assert done.returncode == 125 and done.stdout == ""
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


def test_missing_library(layout):
    layout.library.unlink()
    done = layout.gpushim("run", "true")
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1
    assert "libgpushim.so is not in" in done.stderr and "run make" in done.stderr


def test_library_folder_variable(layout):
    elsewhere = layout.folder / "else where"
    layout.build.rename(elsewhere)
    done = layout.gpushim("run", "true", set={"GPUSHIM_LIBDIR": str(elsewhere)})
    assert done.returncode == 125 and "contains a blank or a colon" in done.stderr
    plain = layout.folder / "lib" / "gpushim"
    plain.parent.mkdir()
    elsewhere.rename(plain)
    assert environment(layout)["LD_PRELOAD"] == str(plain / "libgpushim.so")
    moved = layout.folder / "moved"
    plain.rename(moved)
    assert environment(layout, set={"GPUSHIM_LIBDIR": str(moved)})["LD_PRELOAD"] == str(
        moved / "libgpushim.so")


def test_through_a_symbolic_link(layout):
    link = layout.folder / "home" / "gpushim"
    link.symlink_to(layout.tool)
    assert environment(layout, tool=link)["LD_PRELOAD"] == str(layout.library)


def test_exit_status_and_signal_of_the_program(layout):
    assert layout.gpushim("run", "sh", "-c", "exit 42").returncode == 42
    assert layout.gpushim("run", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_status_when_the_program_cannot_run(layout):
    plain = layout.folder / "plain"
    plain.write_text("x")
    for command, status, message in ((layout.folder / "none", 127, "No such file"),
                                     ("no-such-command-at-all", 127, "No such file"),
                                     (plain, 126, "Permission denied"),
                                     (layout.folder, 126, "Permission denied")):
        done = layout.gpushim("run", command)
        assert done.returncode == status and message in done.stderr


def test_script_without_interpreter_line(layout):
    script = layout.folder / "script"
    script.write_text('echo "$1"\n')
    script.chmod(0o755)
    assert layout.ok("run", script, "hello") == "hello\n"


def test_python_shorthands(layout):
    script = layout.folder / "app.py"
    script.write_text("import sys; print(sys.argv[1:], sys.executable)")
    expected = f"['-v', '--mode', 'x'] {sys.executable}\n"
    for command in ([script], ["--", script], ["-q", script], ["-m", "app"]):
        assert layout.ok("run", *command, "-v", "--mode", "x", cwd=layout.folder) == expected


def test_signals_are_as_before(layout):
    ignored = layout.ok("run", "sh", "-c", "grep SigIgn /proc/self/status").split()[1]
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0


def test_locale_of_python_is_not_passed_on(layout):
    assert "LC_CTYPE" not in environment(layout, set={"LANG": ""})
    assert environment(layout, set={"LC_CTYPE": "C", "LANG": ""})["LC_CTYPE"] == "C"


def test_starts_quickly(layout):
    times = []
    for _ in range(5):
        start = time.perf_counter()
        layout.ok("run", "true")
        times.append(time.perf_counter() - start)
    assert min(times) < 0.060


def test_help(layout):
    text = layout.ok()
    assert text == layout.ok("--help") and "example:" in text
    for verb in ("run", "report", "doctor", "symbols", "env", "runs"):
        assert f"\n  {verb} " in text
        assert "example:" in layout.ok(verb, "--help")
    assert layout.ok("--version") == "gpushim 0.1.0\n"


def test_unknown_verb(layout):
    done = layout.gpushim("reprot")
    assert done.returncode == 2 and "maybe report?" in done.stderr


@pytest.mark.parametrize("arguments", [
    ["report"], ["symbols"], ["env"], ["runs"], ["--version"], ["run", "--mode", "off", "true"]])
def test_missing_or_broken_tables(layout, arguments):
    table = layout.build / "tables.json"
    for content, message in (("{", "cannot be used"), ('{"version": "1"}', "cannot be used"),
                             (None, "tables.json is not in")):
        table.unlink() if content is None else table.write_text(content)
        done = layout.gpushim(*arguments)
        assert done.returncode == (125 if arguments[0] == "run" else 1)
        assert message in done.stderr and len(done.stderr.splitlines()) == 1


def test_closed_pipe(layout):
    GslWriter().counter("dgemm", 102, 1).write(layout.runs / "test-run")
    for verb in ("report", "symbols", "env", "runs"):
        reading, writing = os.pipe()
        os.close(reading)
        with subprocess.Popen([sys.executable, layout.tool, verb], stdout=writing,
                              stderr=subprocess.PIPE, env=layout.environment) as process:
            os.close(writing)
            assert process.communicate()[1] == b""


def test_output_in_a_poor_encoding(layout):
    GslWriter(program="/bin/é").counter("dgemm", 102, 1).write(layout.runs / "test-run")
    done = layout.gpushim("report", set={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and done.stderr == ""


def test_full_disk(layout):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, layout.tool, "env"], stdout=full, check=False,
                              stderr=subprocess.PIPE, env=layout.environment, encoding="utf-8")
    assert done.returncode == 1 and "No space left" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_closed_stdout(layout):
    done = subprocess.run(["sh", "-c", f"{sys.executable} {layout.tool} env >&-"], check=False,
                          stderr=subprocess.PIPE, env=layout.environment, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
