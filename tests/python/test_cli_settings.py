# SPDX-License-Identifier: Apache-2.0
"""gpushim env, against the rules of policy/settings.h."""
import os
import stat

import pytest
from cli_layout import make_layout, preprocess_tables  # noqa: F401
from gsl_writer import TOP  # noqa: F401  (puts tools/ on the path)
from gpushim_cli import names, settings


def row(kind):
    """Returns the row of tables.json of a setting of this kind."""
    return next(row for row in preprocess_tables()["settings"] if row["kind"] == kind)


@pytest.mark.parametrize("kind, words", [
    ("mode", ["auto", "off", "observe", "force", "verify"]), ("precision", ["strict", "tf32"]),
    ("audit", ["off", "counters", "calls", "all"]), ("verbose", ["0", "1", "2", "3"])])
def test_words_come_from_the_meaning(kind, words):
    assert settings.words(row(kind)) == words


@pytest.mark.parametrize("kind, good, bad", [
    ("mode", ["auto", "OFF"], ["fast", " auto"]),
    ("flag", ["0", "yes", "True"], ["2", "y"]),
    ("count", ["0", "17"], ["-1", "1.5", "x", "9" * 20]),
    ("ratio", ["1.2", "2", ".5"], ["0", "0.0", "-1", "1,2", "1e3", "."]),
    ("duration", ["20us", "1.5ms", "2S", "3ns", "0", "0."], ["20", ".", "us", "2 s", "1m"]),
    ("size", ["512M", "2g", "64MiB", "1KB", "100", "7B"],
     ["M", "-1", "1P", "5%", "7iB", "8388608T"]),
    ("share", ["80%", "100%", "2G", "0.5%"], ["101%", "%", "1000%"]),
    ("text", ["x" * 1023], ["x" * 1024])])
def test_values(kind, good, bad):
    for value in good:
        assert settings.is_valid(row(kind), value), value
    for value in bad:
        assert not settings.is_valid(row(kind), value), value


def test_every_default_is_valid():
    for setting in preprocess_tables()["settings"][:-1]:
        assert settings.is_valid(setting, setting["default"]), setting


def test_sizes():
    assert settings.size_bytes("1.5K") == 1536 and settings.size_bytes("2G") == 2 << 30
    assert settings.size_bytes("64MiB") == 64 << 20 and settings.size_bytes("x") is None


def test_nearest():
    known = ["MODE", "DEVICE", "MIN_TIME"]
    assert names.nearest("MDOE", known) == "MODE" and names.nearest("min-time", known) == "MIN_TIME"
    assert names.nearest("COMPLETELY", known) is None
    assert names.edit_distance("kitten", "sitting") == 3


def env(layout, **variables):
    """Returns (settings by name, whole document) of gpushim env --json."""
    variables = {f"GPUSHIM_{name}": value for name, value in variables.items()}
    document = layout.json("env", set=variables)
    return {entry["name"]: entry for entry in document["settings"]}, document


def write_config(path, text):
    """Writes a settings file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_defaults(layout):
    rows, document = env(layout)
    assert rows["GPUSHIM_MODE"]["value"] == "auto" and rows["GPUSHIM_MODE"]["source"] == "default"
    assert rows["GPUSHIM_MIN_TIME"]["default"] == "20us" and rows["GPUSHIM_MIN_TIME"]["meaning"]
    assert document["unknown"] == [] and document["remarks"] == []


def test_layers(layout):
    path = write_config(layout.home / ".config/gpushim/gpushim.conf",
                        "# comment\n; comment\nmode = observe ; why\nGPUSHIM_MIN_TIME: 5us\n"
                        "MIN_SPEEDUP=2\nDEVICE =\nCUDA_PATH = /a:/b\n")
    rows, document = env(layout, MODE="force", MIN_TIME="", MIN_SPEEDUP="none")
    found = {name: (row["value"], row["source"]) for name, row in rows.items()}
    assert found["GPUSHIM_MODE"] == ("force", "environment")
    assert found["GPUSHIM_MIN_TIME"] == ("5us", path)
    assert found["GPUSHIM_MIN_SPEEDUP"] == ("2", path)
    assert found["GPUSHIM_DEVICE"] == ("auto", "default")
    assert found["GPUSHIM_CUDA_PATH"] == ("/a:/b", path)
    assert len(document["remarks"]) == 1 and "GPUSHIM_MIN_SPEEDUP=none" in document["remarks"][0]


def test_config_variable(layout):
    write_config(layout.home / ".config/gpushim/gpushim.conf", "MODE=off\n")
    path = write_config(layout.folder / "my.conf",
                        "MIN_SPEEDUP = 3\nMODEE = x\nCONFIG=/x\nnonsense\n"
                        "[gpushim]\nMODE = force\n")
    rows, document = env(layout, CONFIG=path)
    assert rows["GPUSHIM_MODE"]["value"] == "auto" and rows["GPUSHIM_MIN_SPEEDUP"]["value"] == "3"
    for remark, part in zip(document["remarks"], (
            "MODEE is not a setting; maybe MODE?", "environment only", "NAME = value", "sections")):
        assert part in remark
    for config, part in (("relative.conf", "not an absolute path"),
                         (str(layout.folder / "none"), "No such file"),
                         (str(layout.folder), "not a regular file")):
        assert part in env(layout, CONFIG=config)[1]["remarks"][0]
    os.mkfifo(layout.folder / "pipe")
    assert "not a regular file" in env(layout, CONFIG=str(layout.folder / "pipe"))[1]["remarks"][0]


def test_unknown_names(layout):
    document = env(layout, MOED="x", XYZZYPLUGH="y", LIBDIR=str(layout.build))[1]
    assert document["unknown"] == [{"name": "GPUSHIM_MOED", "nearest": "GPUSHIM_MODE"},
                                   {"name": "GPUSHIM_XYZZYPLUGH", "nearest": None}]
    text = layout.ok("env", set={"GPUSHIM_MOED": "x"})
    assert "unknown: GPUSHIM_MOED is not a setting; maybe GPUSHIM_MODE?" in text


def test_text_and_set_only(layout):
    assert "GPUSHIM_MODE=auto  (default)\n    auto: the GPU where" in layout.ok("env")
    text = layout.ok("env", "--set-only", set={"GPUSHIM_DEVICE": "1"})
    assert text.startswith("GPUSHIM_DEVICE=1  (environment)\n") and "GPUSHIM_MODE" not in text
    assert layout.ok("env", "--set-only") == "every setting has its default\n"


def test_written_file_is_read_back(layout):
    path = layout.folder / "new.conf"
    layout.ok("env", "--write", path, set={"GPUSHIM_MIN_SPEEDUP": "1.7", "GPUSHIM_RUN_ID": "me"})
    assert stat.S_ISREG(path.stat().st_mode)
    text = path.read_text(encoding="utf-8")
    assert "\nMIN_SPEEDUP = 1.7\n" in text and "\n# MODE = auto\n" in text and "RUN_ID" not in text
    rows, document = env(layout, CONFIG=str(path))
    assert rows["GPUSHIM_MIN_SPEEDUP"]["value"] == "1.7" and document["remarks"] == []
    done = layout.gpushim("env", "--write", path)
    assert done.returncode == 1 and "exists and is not replaced" in done.stderr
    done = layout.gpushim("env", "--write", layout.folder / "b.conf",
                          set={"GPUSHIM_ROUTINES": "a ;b"})
    assert done.returncode == 1 and "cannot hold the value" in done.stderr
