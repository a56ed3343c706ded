# SPDX-License-Identifier: Apache-2.0
"""Programs that have nothing to do with BLAS notice nothing, and a place that cannot be written
to costs the audit alone."""
import os
import re
import resource
import shutil
import statistics
import subprocess
import time

import pytest
from support import (Result, base_environment, check_good, preload_environment, program, run,
                     run_preloaded, sanitizer)

not_instrumented = pytest.mark.skipif(sanitizer() is not None,
                                      reason="a sanitizer's run time opens and costs much more")
IS_ROOT = os.getuid() == 0
NOBODY = 65534


def opened(command, environment, folder):
    """Returns the files that a command and its children open, by strace."""
    trace = os.path.join(str(folder), "trace")
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", trace, "-e",
         "trace=openat,open,creat,socket,clone,clone3,fork,vfork,mkdir,memfd_create", *command],
        env=environment, cwd=str(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0 and done.stderr == b"", done
    with open(trace, encoding="utf-8") as file:
        calls = [re.sub(r"^\d+ +", "", line) for line in file if "ENOENT" not in line]
    return sorted(line.split(" = ")[0].strip() for line in calls)


@not_instrumented
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("mode", ["auto", "force", "off"])
@pytest.mark.parametrize("command", [["/bin/true"], [program("many"), "0"]])
def test_nothing_is_opened(command, mode, tmp_path):
    """The loader opens the library and what it needs; that is all (C73)."""
    environment = preload_environment(tmp_path, mode)
    plain = opened(command, {name: value for name, value in environment.items()
                             if name != "LD_PRELOAD"}, tmp_path)
    preloaded = opened(command, environment, tmp_path)
    more = list(preloaded)
    for line in plain:
        more.remove(line)
    assert len(more) >= 1 and all("libgpushim.so" in line or "/libm.so.6" in line or
                                  "/libc.so.6" in line for line in more), more
    assert not os.path.exists(tmp_path / "audit")


def times(command, environment, count):
    """Returns the seconds of each of count runs of a command."""
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        subprocess.run(command, env=environment, check=True)
        seconds.append(time.perf_counter() - begin)
    return seconds


@not_instrumented
def test_start_of_a_process(tmp_path):
    """Less than a millisecond more, by the median of 50 (C73)."""
    environment = preload_environment(tmp_path, "auto")
    plain = base_environment()
    difference = 1.0
    for _ in range(5):  # other load on the machine is not ours
        difference = min(difference, statistics.median(times(["/bin/true"], environment, 50)) -
                         statistics.median(times(["/bin/true"], plain, 50)))
        if difference < 1e-3:
            break
    assert difference < 1e-3, f"{1e3 * difference:.2f} ms"


@not_instrumented
def test_many_short_processes(tmp_path):
    """200 of them under a preloaded shell take at most 1.3 times as long (C73)."""
    script = ["bash", "-c", "for i in $(seq 200); do /bin/true; done"]
    environment = preload_environment(tmp_path, "auto")
    ratio = 9.0
    for _ in range(6):
        ratio = min(ratio, min(times(script, environment, 3)) /
                    min(times(script, base_environment(), 3)))
        if ratio <= 1.3:
            break
    assert ratio <= 1.3, f"{ratio:.2f}"


# ---- places that cannot be written to ----

def products(environment, folder, **options):
    """Runs eight products; returns the Result, which is good."""
    return check_good(run([program("many"), "8", "60"], environment, folder, **options), "")


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null/x", "/etc/passwd/x", ""])
@pytest.mark.parametrize("mode", ["auto", "force"])
def test_no_place_for_the_audit(place, mode, tmp_path):
    """A path that cannot become a folder."""
    environment = preload_environment(tmp_path, mode, env={"GPUSHIM_AUDIT_DIR": place})
    result = products(environment, tmp_path)
    if mode == "force":
        assert result.counts["call.cublasDgemm_v2"] == 8, result.counts


@pytest.mark.skipif(not IS_ROOT, reason="needs root to become another user")
def test_a_folder_of_somebody_else(tmp_path):
    """The audit folder belongs to root, the program runs as nobody."""
    os.chmod(tmp_path, 0o755)
    environment = preload_environment(tmp_path)
    environment.pop("FAKECUDA_COUNT_FILE")
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & 0o001 and parent != parent.parent:
            os.chmod(parent, parent.stat().st_mode | 0o011)
    result = products(environment, "/", user=NOBODY, group=NOBODY)
    assert not os.path.exists(tmp_path / "audit"), result


@pytest.mark.skipif(not IS_ROOT, reason="needs root to mount a file system")
@pytest.mark.parametrize("size", ["4k", "16k", "64k", "256k", "1200k"])
def test_a_full_disk(size, tmp_path):
    """A file system with room for nothing, or for a part of the audit."""
    disk = tmp_path / "audit"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)],
                             stderr=subprocess.PIPE, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"mount: {mounted.stderr.strip()}")
    try:
        environment = preload_environment(tmp_path)
        result = products(environment, tmp_path)
        assert result.counts["call.cublasDgemm_v2"] == 8, result.counts
        for process in result.report["processes"]:
            assert process["calls"] == 8, process
        assert size != "1200k" or result.reasons() == {"R002": 8}, result
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("limit", [0, 1, 4096, 100000, 300000])
def test_limited_files(limit, tmp_path):
    """ulimit -f, down to nothing: no SIGXFSZ (counters only)."""
    environment = preload_environment(tmp_path)
    result = products(environment, tmp_path, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (limit, limit)))
    for process in result.report["processes"]:
        assert process["calls"] == 8, process


@pytest.mark.skipif(sanitizer() is not None, reason="a sanitizer reserves terabytes of addresses")
def test_no_memory_for_a_kept_copy():
    """Where C cannot be protected the device is not tried; later it is again."""
    result = check_good(run_preloaded([program("limited")]), "")
    assert result.reasons() == {"S103": 1, "U305": 1, "R002": 2, "M404": 1}, result


def test_closed_streams(tmp_path):
    """Without stdin, stdout and stderr nothing is written into a file that took their number."""
    script = "exec <&- >&- 2>&-; exec '%s' 4 60" % program("many")
    for verbose in ("0", "3"):
        environment = preload_environment(tmp_path / verbose, env={"GPUSHIM_VERBOSE": verbose})
        os.mkdir(tmp_path / verbose)
        result = run(["sh", "-c", script], environment, tmp_path / verbose)
        assert result.status == 0 and result.reasons() == {"R002": 4}, result


def test_stderr_that_nobody_reads(tmp_path):
    """A full pipe, or one without a reader: no wait and no SIGPIPE at the default level."""
    script = "'%s' 4 60 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}" % program("many")
    result = run(["bash", "-c", script], preload_environment(tmp_path), tmp_path)
    assert result.status == 0 and result.reasons() == {"R002": 4}, result


# ---- privileged programs ----

@pytest.mark.skipif(not IS_ROOT, reason="needs root to make a setgid copy for another user")
@pytest.mark.parametrize("name", ["many", "linked"])
def test_setgid(name, tmp_path):
    """AT_SECURE: the loader leaves the preload out; where the library is loaded all the same
    (linked), it is inert and follows no variable (C80)."""
    if sanitizer() is not None:
        pytest.skip("a sanitizer's run time is not found by privileged programs")
    for parent in [tmp_path, *tmp_path.parents]:
        if not parent.stat().st_mode & 0o001 and parent != parent.parent:
            os.chmod(parent, parent.stat().st_mode | 0o011)
    copy = tmp_path / "copy"
    shutil.copy(program(name), copy)
    audit = tmp_path / "audit"
    audit.mkdir()
    os.chmod(audit, 0o777)
    environment = preload_environment(tmp_path)
    if name == "linked":
        del environment["LD_PRELOAD"]
    results = {}
    for privileged in (False, True):
        if privileged:
            os.chown(copy, 0, 1)
            os.chmod(copy, 0o2755)
        done = subprocess.run([str(copy), "3", "60"], env=environment, cwd="/", user=NOBODY,
                              group=NOBODY, extra_groups=[], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done
        if not privileged or name == "linked":
            assert done.stderr == "", done
        results[privileged] = Result(0, "", "", 0, str(audit / "run"), "/nonexistent")
        shutil.rmtree(audit / "run", ignore_errors=True)
    assert results[False].reasons() == {"R002": 3}, results[False]
    assert results[True].report["processes"] == [], results[True]


@not_instrumented
def test_programs_of_all_kinds():
    """Shells, editors of text, compilers: status and output as without the preload."""
    for command in (["bash", "-c", "echo hi; exit 3"], ["sh", "-c", "echo a | sed s/a/b/"],
                    ["awk", "BEGIN { print 1 + 1 }"], ["gcc", "--version"]):
        result = run_preloaded(command)
        plain = subprocess.run(command, env=base_environment(), text=True, stdout=subprocess.PIPE,
                               check=False)
        assert (result.status, result.stdout, result.stderr) == (
            plain.returncode, plain.stdout, ""), result
        assert result.report["processes"] == []
