# SPDX-License-Identifier: Apache-2.0
"""gpushim report against audit files with known numbers."""
import json
import os
import struct
import subprocess
import sys
import time

import pytest
from cli_layout import make_layout  # noqa: F401
from gsl_writer import CPU, GPU, PARTIAL, GslWriter

MS = 1_000_000
UMATH = "/usr/lib/python3/dist-packages/numpy/linalg/_umath_linalg.so"
OPENBLAS = "/usr/lib/x86_64-linux-gnu/libopenblas.so.0"
REPORT_KEYS = {
    "run_id", "routines", "reasons", "overhead_s", "prediction_error", "processes", "callers",
    "providers", "modules", "would", "complete", "missing", "events", "shapes", "unreadable",
    "folder", "version", "started_unix_s", "span_s"}


def two_sided_run(**options):
    """A process with GPU calls, CPU calls, small and nested ones; options as of GslWriter."""
    writer = GslWriter(modules=[UMATH, OPENBLAS], device_name="NVIDIA H200",
                       cuda_libraries="/cuda/libcublas.so.13\n/cuda/libcudart.so.13",
                       overhead_ns=3 * MS, startup_ns=400 * MS, **options)
    writer.counter("dgemm", 1, 2, wall_ns=300 * MS, where=GPU, bytes_in=4096, bytes_out=1024)
    writer.counter("dgemm", 102, 5, wall_ns=50 * MS, lost_ns=20 * MS)
    writer.counter("dsyrk", 301, 1, wall_ns=40 * MS, lost_ns=30 * MS)
    writer.counter("dgemm", 101, 1000)
    writer.counter("dgemm", 602, 77)
    writer.record("dgemm", wall_ns=100 * MS, m=512, n=256, k=128, where=GPU, reason=1,
                  predicted_gpu_s=0.110, copy_in_s=0.03, copy_out_s=0.01, caller=0, provider=1,
                  options=b"NT")
    writer.record("dgemm", wall_ns=200 * MS, m=1024, n=256, k=128, where=GPU, reason=1,
                  predicted_gpu_s=0.150, copy_in_s=0.05, copy_out_s=0.03, caller=0, provider=1,
                  options=b"NN")
    writer.record("dsyrk", wall_ns=40 * MS, m=300, n=300, k=200, where=CPU, reason=301, cpu_s=0.040,
                  predicted_cpu_s=0.020, caller=65535, provider=1, options=b"LN")
    return writer


def by(rows, key):
    """Returns the rows of a list as a dict by one of their keys."""
    return {row[key]: row for row in rows}


def test_json_numbers(layout):
    two_sided_run().write(layout.runs / "test-run")
    report = layout.json("report")
    assert set(report) == REPORT_KEYS
    assert report["run_id"] == "test-run" and report["complete"] and report["missing"] == []
    dgemm = by(report["routines"], "routine")["dgemm"]
    assert (dgemm["gpu_calls"], dgemm["cpu_calls"]) == (2, 1005)
    assert (dgemm["small_calls"], dgemm["nested_calls"]) == (1000, 77)
    assert dgemm["gpu_s"] == pytest.approx(0.3) and dgemm["cpu_s"] == pytest.approx(0.05)
    assert (dgemm["bytes_in"], dgemm["bytes_out"]) == (4096, 1024)
    assert dgemm["copy_s"] == pytest.approx(0.12) and dgemm["lost_s"] == pytest.approx(0.02)
    assert dgemm["costliest_call"] == "dgemm.NN/1024x256x128"
    assert report["overhead_s"] == pytest.approx(0.003)
    assert report["span_s"] == pytest.approx(2.0, abs=1e-5)
    assert report["shapes"][0] == {"call": "dgemm.NN/1024x256x128", "routine": "dgemm", "calls": 1,
                                   "seconds": 0.2}


def test_json_reasons(layout):
    two_sided_run().write(layout.runs / "test-run")
    rows = by(layout.json("report")["reasons"], "code")
    assert {code: row["where"] for code, row in rows.items()} == {
        "R001": "gpu", "S102": "cpu", "U301": "cpu", "S101": "cpu", "A602": "cpu"}
    assert rows["S102"]["class"] == "should_not" and rows["S102"]["calls"] == 5
    assert rows["S102"]["seconds"] == pytest.approx(0.05)
    assert rows["S102"]["lost_s"] == pytest.approx(0.02)
    for code in ("S101", "A602"):
        assert rows[code]["seconds"] is None and rows[code]["lost_s"] is None
    assert rows["R001"]["seconds"] == pytest.approx(0.3) and rows["R001"]["lost_s"] is None
    assert rows["U301"]["name"] == "NOT_IMPLEMENTED" and rows["U301"]["routines"] == {"dsyrk": 1}
    assert rows["U301"]["remedy"] == "see gpushim symbols"


def test_json_records(layout):
    two_sided_run().write(layout.runs / "test-run")
    report = layout.json("report")
    callers = by(report["callers"], "module")
    assert callers[UMATH]["calls"] == 2 and callers[UMATH]["seconds"] == pytest.approx(0.3)
    assert callers["(not named)"]["calls"] == 1
    assert report["providers"] == [OPENBLAS]
    assert report["modules"] == sorted([UMATH, OPENBLAS])
    # Errors 0.1 (0.110 for 0.1 s), 0.25 (0.150 for 0.2 s) and 0.5 (0.020 for 0.040 s).
    assert report["prediction_error"]["p50"] == pytest.approx(0.25)
    assert report["prediction_error"]["p90"] == pytest.approx(0.5)
    assert report["prediction_error"]["records"] == 3


def test_json_process(layout):
    two_sided_run().write(layout.runs / "test-run")
    (process,) = layout.json("report")["processes"]
    assert process["pid"] == 100 and process["ppid"] == 1 and process["mode"] == "auto"
    assert process["program"] == "/usr/bin/app.py" and process["device"] == "NVIDIA H200"
    assert process["cuda_libraries"] == ["/cuda/libcublas.so.13", "/cuda/libcudart.so.13"]
    assert process["partial"] == [] and process["flags"] == ["closed"]
    assert process["device_state"] is None and process["closed"] and not process["running"]
    assert process["startup_s"] == pytest.approx(0.4)
    assert process["calls"] == 1008 and process["seconds"] == pytest.approx(0.39)


def test_text(layout):
    two_sided_run().write(layout.runs / "test-run")
    text = layout.ok("report")
    assert text == layout.ok("report", "--plain")
    assert text.startswith("run test-run · app.py · 2027-01-15 08:00:00 · 1 process · testhost")
    assert "390 ms in 1008 calls" in text
    assert "77 nested calls not added" in text and "1000 small calls not timed" in text
    assert "device: NVIDIA H200 · start-up 400 ms" in text
    assert "prediction error p50 25 %, p90 50 % (3 recorded calls)" in text
    assert "overhead of libgpushim 3.00 ms" in text
    assert "CPU library: " + OPENBLAS in text and "numpy/linalg/_umath_linalg.so" in text
    lines = text.splitlines()
    dgemm = next(line for line in lines if line.startswith("dgemm")).split()
    assert dgemm == ["dgemm", "1024x256x128", "1007", "2", "1005", "300", "ms", "40", "%",
                     "50.0", "ms", "20.0", "ms"]
    assert any(line.startswith("U301 NOT_IMPLEMENTED") and "worth a look" in line
               and line.endswith("see gpushim symbols") for line in lines)
    assert any(line.startswith("S101 SIZE_BELOW_FLOOR") and "expected" in line for line in lines)
    assert "INCOMPLETE" not in text
    assert max(map(len, lines)) <= 100


def test_processes_are_merged(layout):
    folder = layout.runs / "test-run"
    two_sided_run().write(folder)
    child = GslWriter(routines=["dsyrk", "dgemm"], pid=101, ppid=100, device_state_reason=806,
                      flags=4 | 8 | 1, realtime_ns=1_800_000_001_000_000_000, overhead_ns=MS)
    child.counter("dgemm", 806, 3, wall_ns=30 * MS)
    child.write(folder)
    report = layout.json("report")
    assert [row["pid"] for row in report["processes"]] == [100, 101]
    assert report["processes"][1]["device_state"] == "L806"
    assert report["processes"][1]["flags"] == ["not_calibrated", "closed", "forked"]
    dgemm = by(report["routines"], "routine")["dgemm"]
    assert dgemm["cpu_calls"] == 1008 and dgemm["cpu_s"] == pytest.approx(0.08)
    assert report["overhead_s"] == pytest.approx(0.004)
    assert report["span_s"] == pytest.approx(3.0, abs=1e-5) and report["complete"]
    text = layout.ok("report")
    assert "CPU only (1 of 2 processes): L806 FORKED_CHILD" in text
    assert "note: P708 NOT_CALIBRATED" in text


def test_cpu_only_device_line(layout):
    writer = GslWriter(device_state_reason=801)
    writer.counter("dgemm", 801, 1, wall_ns=MS).write(layout.runs / "test-run")
    assert layout.json("report")["processes"][0]["device_state"] == "L801"
    assert ("device: CPU only: L801 NO_DRIVER, no NVIDIA driver library (libcuda.so.1) -> "
            "install the driver") in layout.ok("report")


def test_would(layout):
    writer = GslWriter(mode_name="observe")
    writer.counter("dgemm", 705, 4, wall_ns=80 * MS, lost_ns=60 * MS, would=1)
    writer.counter("dgemm", 705, 2, wall_ns=MS, would=102)
    writer.write(layout.runs / "test-run")
    report = layout.json("report")
    rows = [(row["reason"], row["code"], row["where"], row["calls"]) for row in report["would"]]
    assert rows == [
        ("P705", "R001", "gpu", 4), ("P705", "S102", "cpu", 2)]
    assert report["would"][0]["lost_s"] == pytest.approx(0.06)
    assert by(report["reasons"], "code")["P705"]["calls"] == 6
    assert "auto would have run on the" in layout.ok("report")


def test_partial_files(layout):
    folder = layout.runs / "test-run"
    writer = two_sided_run(flags=0, partial=PARTIAL["limit"] | PARTIAL["floor"],
                           record_floor_ns=80_000)
    writer.write(folder)
    report = layout.json("report")
    assert not report["complete"] and report["processes"][0]["partial"] == ["limit", "floor"]
    assert report["missing"] == [
        "process 100 did not end in order: small calls may be missing",
        "process 100: the file reached its size limit: later calls are only counted",
        "process 100: many calls: those under 80.0 us are only counted"]
    text = layout.ok("report")
    assert "INCOMPLETE: process 100 did not end in order: small calls may be missing" in text


def test_fields_of_a_later_library_are_skipped(layout):
    folder = layout.runs / "test-run"
    two_sided_run().write(folder)
    expected = layout.json("report")
    two_sided_run(extra_fields=[("uint64_t", "novelty")],
                  extra_counter_fields=[("double", "energy_j")]).write(folder)
    assert layout.json("report") == expected


def test_records_being_written_are_skipped(layout):
    writer = GslWriter(flags=0, modules=[UMATH])
    writer.record("dgemm", wall_ns=MS, predicted_cpu_s=0.001)
    writer.record("dgemm", wall_ns=MS, committed=False)
    writer.record("dgemm", wall_ns=MS)
    writer.write(layout.runs / "test-run")
    assert layout.json("report")["shapes"][0]["calls"] == 2


def test_running_process_is_said_to_run(layout):
    import mmap
    path = GslWriter(flags=0, pid=os.getpid()).counter("dgemm", 102, 1).write(
        layout.runs / "test-run")
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0):
        report = layout.json("report")
    assert report["processes"][0]["running"]
    assert report["missing"] == [
        f"process {os.getpid()} is still running: this is what it did so far"]


@pytest.mark.parametrize("cut, why", [
    (0, "no header yet"), (100, "cut short inside its header"),
    (4200, "cut short inside its tables")])
def test_file_cut_short_before_its_records(layout, cut, why):
    folder = layout.runs / "test-run"
    two_sided_run().write(folder)
    whole = two_sided_run(pid=101).content()
    (folder / "testhost.101.1.gsl").write_bytes(whole[:cut])
    report = layout.json("report")
    assert report["unreadable"] == [{"file": "testhost.101.1.gsl", "why": why}]
    assert not report["complete"] and len(report["processes"]) == 1
    assert f"INCOMPLETE: testhost.101.1.gsl was not read: {why}" in layout.ok("report")


def test_file_cut_short_inside_its_records(layout):
    writer = GslWriter().record("dgemm", count=10, wall_ns=MS)
    whole = writer.content()
    end = len(whole) - (1 << 20) + 3 * writer.record_bytes + 60
    folder = layout.runs / "test-run"
    folder.mkdir(parents=True)
    (folder / "testhost.100.1.gsl").write_bytes(whole[:end])
    report = layout.json("report")
    assert report["shapes"][0]["calls"] == 3
    assert report["processes"][0]["truncated"] and not report["complete"]


def test_other_schema_and_foreign_files(layout):
    folder = layout.runs / "test-run"
    GslWriter(schema=2, version="9.0").write(folder)
    done = layout.gpushim("report")
    assert done.returncode == 1 and done.stdout == ""
    assert "schema 2, written by libgpushim 9.0; this gpushim reads schema 1" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    (folder / "x.gsl").write_bytes(b"something else" * 500)
    assert "not an audit file" in layout.gpushim("report").stderr


def test_damaged_headers_never_end_in_a_traceback(layout):
    """Each 32-bit word of the header in turn is made huge, then zero."""
    whole = two_sided_run().content()
    folder = layout.runs / "test-run"
    folder.mkdir(parents=True)
    for number, at in enumerate(range(12, 108, 4)):
        for word in (0xFFFFFFFF, 0):
            data = bytearray(whole)
            struct.pack_into("<I", data, at, word)
            (folder / f"h.{number}.{word}.gsl").write_bytes(data)
    done = layout.gpushim("report", "--json")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 and json.loads(done.stdout)["unreadable"]


def test_no_runs_yet(layout):
    done = layout.gpushim("report")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (f"gpushim report: no runs in {layout.runs} yet: make one with: "
                           "gpushim run python app.py\n")


def test_run_without_audit_files(layout):
    (layout.runs / "empty").mkdir(parents=True)
    done = layout.gpushim("report", "empty")
    assert done.returncode == 1 and "holds no audit file" in done.stderr


def test_which_run(layout):
    for number, name in enumerate(("first", "second")):
        GslWriter(run_id=name).counter("dgemm", 102, number + 1).write(layout.runs / name)
        os.utime(layout.runs / name, (1000 + number, 1000 + number))
    (layout.runs / "third-without-files").mkdir()
    for arguments, expected in (((), "second"), (("last",), "second"), (("first",), "first"),
                                ((layout.runs / "first",), "first"), ((layout.runs,), "second")):
        assert layout.json("report", *arguments)["run_id"] == expected
    done = layout.gpushim("report", "fourth")
    assert done.returncode == 1 and "no run 'fourth'" in done.stderr


def test_audit_folder_settings(layout):
    elsewhere = layout.folder / "elsewhere"
    GslWriter(run_id="there").counter("dgemm", 102, 1).write(elsewhere / "there")
    GslWriter(run_id="state").counter("dgemm", 102, 1).write(elsewhere / "gpushim/runs/state")
    for variables, expected in (({"GPUSHIM_AUDIT_DIR": str(elsewhere)}, "there"),
                                ({"XDG_STATE_HOME": str(elsewhere)}, "state")):
        assert layout.json("report", set=variables)["run_id"] == expected


def test_events(layout):
    folder = layout.runs / "test-run"
    two_sided_run().write(folder)
    (folder / "testhost.100.events.jsonl").write_text(
        '{"v":1,"t_ns":20,"pid":100,"event":"late","n":1}\n'
        '{"v":1,"t_ns":10,"pid":100,"event":"setting","value":"\\u001b[31m"}\n'
        '17\n{"v":1,"t_ns":30,"pi', encoding="utf-8")
    assert [event["event"] for event in layout.json("report")["events"]] == ["setting", "late"]
    text = layout.ok("report")
    assert "event: setting in process 100: value ?[31m" in text and "\033" not in text


def test_colours(layout):
    two_sided_run().write(layout.runs / "test-run")
    assert "\033[33mworth a look\033[0m" in layout.ok("report", set={"FORCE_COLOR": "1"})
    for arguments, variables in (((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}),
                                 (("--plain",), {"FORCE_COLOR": "1"})):
        assert "\033" not in layout.ok("report", *arguments, set=variables)


def test_on_a_terminal(layout):
    """With rich or without it, colours and the same words."""
    two_sided_run().write(layout.runs / "test-run")
    reading, writing = os.openpty()
    environment = dict(layout.environment, TERM="xterm", COLUMNS="100")
    done = subprocess.run([sys.executable, layout.tool, "report"], env=environment, stdout=writing,
                          stdin=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    text = os.read(reading, 1 << 16).decode()
    os.close(reading)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "\033[33mworth a look" in text and "U301 NOT_IMPLEMENTED" in text


def test_a_file_being_made_has_no_header_yet(layout):
    folder = layout.runs / "test-run"
    GslWriter(magic=b"\0PUSHIM1", pid=101).write(folder)
    two_sided_run().write(folder)
    assert layout.json("report")["unreadable"] == [
        {"file": "testhost.101.1.gsl", "why": "no header yet"}]


def test_counter_row_of_the_rest(layout):
    writer = GslWriter(partial=PARTIAL["counters"]).counter("dgemm", 65535, 9, wall_ns=MS)
    struct.pack_into("<H", writer.counter_rows[0], 40, 65535)
    writer.write(layout.runs / "test-run")
    report = layout.json("report")
    assert report["routines"][0]["routine"] == "(several)"
    assert report["reasons"][0]["name"] == "SEVERAL" and not report["complete"]


def test_killed_process_lasted_to_its_last_record(layout):
    writer = GslWriter(flags=0, end_monotonic_ns=0)
    writer.record("dgemm", start_ns=9_000_000_000, wall_ns=500 * MS).write(layout.runs / "test-run")
    assert layout.json("report")["span_s"] == pytest.approx(4.5, abs=1e-5)


def test_reason_of_a_later_library(layout):
    GslWriter().counter("dgemm", 999, 1, wall_ns=MS).write(layout.runs / "test-run")
    assert layout.json("report")["reasons"][0]["code"] == "?999"
    assert "?999 UNKNOWN" in layout.ok("report")


def test_half_a_million_records(layout):
    GslWriter(modules=[UMATH]).record(
        "dgemm", count=500_000, wall_ns=MS, m=8, n=8, k=8, where=GPU, predicted_gpu_s=0.001,
        copy_in_s=0.0005).write(layout.runs / "test-run")
    start = time.perf_counter()
    report = layout.json("report")
    seconds = time.perf_counter() - start
    assert report["shapes"][0]["calls"] == 500_000
    assert seconds < 6, "meant to take under 2 s; three times that on a busy machine"
