# SPDX-License-Identifier: Apache-2.0
"""gpushim runs and gpushim symbols."""
import mmap
import os

import pytest
from cli_layout import make_layout, preprocess_tables  # noqa: F401
from gsl_writer import GslWriter


@pytest.fixture(name="three_runs")
def make_three_runs(layout):
    """Three runs, a to c, c the latest; returns the Layout."""
    for number, name in enumerate("abc"):
        folder = layout.runs / name
        GslWriter(run_id=name, program=f"/bin/app-{name}").counter("dgemm", 102, 1).write(folder)
        (folder / "run.json").write_text("{}")
        (folder / "testhost.100.events.jsonl").write_text("")
        os.utime(folder, (1000 + number, 1000 + number))
    return layout


def run_ids(layout):
    """Returns the ids that gpushim runs lists, in its order."""
    return [row["run_id"] for row in layout.json("runs")]


def test_list(three_runs):
    rows = three_runs.json("runs")
    assert [row["run_id"] for row in rows] == ["c", "b", "a"]
    assert rows[0]["processes"] == 1 and rows[0]["programs"] == ["app-c"]
    assert rows[0]["started_unix_s"] == 1_800_000_000 and rows[0]["bytes"] > 0
    assert not rows[0]["running"] and rows[0]["folder"] == str(three_runs.runs / "c")
    text = three_runs.ok("runs", "list")
    assert "app-a" in text and f"3 runs in {three_runs.runs}" in text


def test_list_of_nothing(layout):
    assert layout.ok("runs").startswith(f"no runs in {layout.runs} yet")
    assert layout.json("runs") == []


def test_rm(three_runs):
    (three_runs.runs / "b" / "run.json.testhost.100.1").write_text("{")
    assert three_runs.ok("runs", "rm", "b") == "deleted b\n"
    assert run_ids(three_runs) == ["c", "a"] and not (three_runs.runs / "b").exists()


@pytest.mark.parametrize("name", ["d", "..", ".", "/tmp", "../runs/a", ""])
def test_rm_takes_ids_only(three_runs, name):
    done = three_runs.gpushim("runs", "rm", "a", name)
    assert done.returncode == 1 and f"no run {name!r}" in done.stderr
    assert run_ids(three_runs) == ["c", "b", "a"]


def test_rm_leaves_foreign_files(three_runs):
    (three_runs.runs / "b" / "thesis.tex").write_text("x")
    done = three_runs.gpushim("runs", "rm", "b")
    assert done.returncode == 1 and "holds other files and stays" in done.stderr
    assert os.listdir(three_runs.runs / "b") == ["thesis.tex"]


def test_links_are_not_followed(three_runs):
    outside = three_runs.folder / "outside"
    (three_runs.runs / "a").rename(outside)
    (three_runs.runs / "a").symlink_to(outside)
    assert three_runs.gpushim("runs", "rm", "a").returncode == 1
    assert (outside / "run.json").exists()


def test_running_run_is_not_deleted(layout):
    path = GslWriter(flags=0, pid=os.getpid()).counter("dgemm", 102, 1).write(layout.runs / "live")
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0):
        assert layout.json("runs")[0]["running"] and "(running)" in layout.ok("runs")
        done = layout.gpushim("runs", "rm", "live")
        assert done.returncode == 1 and "still being written" in done.stderr
        assert layout.ok("runs", "prune", "--keep", "0").startswith("1 run left")
    assert os.path.exists(path)


def test_prune(three_runs):
    assert three_runs.ok("runs", "prune").startswith("3 runs left")
    assert three_runs.ok("runs", "prune", "--keep", "2").startswith("deleted a\n2 runs left")
    three_runs.ok("runs", "prune", "--max-size", "1K")
    assert run_ids(three_runs) == []


@pytest.mark.parametrize("arguments", [["rm"], ["list", "a"], ["prune", "a"], ["show"],
                                       ["prune", "--keep", "-1"], ["prune", "--max-size", "big"]])
def test_wrong_command_lines(layout, arguments):
    done = layout.gpushim("runs", *arguments)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_symbols_json(layout):
    rows = {row["routine"]: row for row in layout.json("symbols")}
    assert rows["dgemm"]["gpu"] is True and rows["dsyrk"]["gpu"] is False
    assert rows["dgemm"]["operation"] == "gemm" and "name" not in rows["dgemm"]
    assert {"name": "cblas_dgemm", "spelling": "CBLAS_LP64"} in rows["dgemm"]["names"]


def test_symbols_text(layout):
    text = layout.ok("symbols")
    assert "dgemm      GPU yes  C = alpha op(A) op(B) + beta C\n" in text
    assert "  CBLAS_LP64         cblas_dgemm\n" in text
    assert text.endswith("2 routines, 1 of them on the GPU, 4 names\n")
    assert "dgemm" not in layout.ok("symbols", "ds*")
    assert layout.gpushim("symbols", "zz*").returncode == 1


def test_symbols_markdown(layout):
    assert layout.ok("symbols", "--markdown").splitlines() == [
        "| routine | meaning | GPU | F77_LP64 | CBLAS_LP64 | CBLAS_SCIPY_ILP64 |",
        "| --- | --- | --- | --- | --- | --- |",
        "| `dgemm` | C = alpha op(A) op(B) + beta C | yes | `dgemm_` | `cblas_dgemm` | "
        "`scipy_cblas_dgemm64_` |",
        "| `dsyrk` | C = alpha A A' + beta C | no | `dsyrk_` |  |  |"]


def test_symbols_of_the_library(layout):
    layout.write_tables(preprocess_tables())
    rows = {row["routine"]: row for row in layout.json("symbols")}
    names = {entry["name"] for entry in rows["dgemm"]["names"]}
    assert rows["dgemm"]["gpu"] is True
    assert {"dgemm_", "cblas_dgemm", "scipy_cblas_dgemm64_"} <= names
    for form in ((), ("--markdown",)):
        assert "scipy_cblas_dgemm64_" in layout.ok("symbols", *form)
