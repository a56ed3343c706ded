# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor, with the real library and the CUDA doubles of build/ (make && make fakecuda)."""
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest
from gsl_writer import TOP  # (puts tools/ on the path)
from gpushim_cli import (doctor_blas, doctor_child, doctor_device, doctor_here, doctor_program,
                         tables)
from gpushim_cli.doctor_elf import Elf, NotElf
from gpushim_cli.doctor_findings import FAIL, NOTE, OK, WARN

BUILD = os.path.join(TOP, "build")
FAKECUDA = os.path.join(BUILD, "fakecuda")
TOOL = os.path.join(TOP, "tools", "gpushim")
AREAS = {"library", "settings", "preload", "capture", "threads", "driver", "device", "libraries",
         "calibration", "log", "limits"}
needs_numpy = pytest.mark.skipif(importlib.util.find_spec("numpy") is None,
                                 reason=f"{sys.executable} has no NumPy")
MY_BLAS = """
void dgemm_(void) {}
int isamax_(const INT *n, const float *x, const INT *step)
{
    return *n < 1 ? 0 : *n == 3 && x[1] == 3 && *step == 1 ? 2 : -1;
}
"""
STUB_DRIVER = "".join(f"int {name}(void) {{ return 34; }}\n" for name in (
    "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute",
    "cuMemPoolCreate", "cuMemAllocFromPoolAsync"))


class Doctor:
    """Runs the verb in an environment without settings, with a home folder of its own."""

    def __init__(self, folder):
        for path in ("libgpushim.so", "tables.json", "fakecuda/libcuda.so.1",
                     "fakecuda12/libcublas.so.12"):
            assert os.path.exists(os.path.join(BUILD, path)), f"no build/{path}: make all fakecuda"
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("GPUSHIM_", "FAKECUDA_", "XDG_", "LD_", "CUDA_", "CONDA_"))
            and name not in doctor_device.LOCAL_RANKS + ("NO_COLOR", "FORCE_COLOR", "PYTHONPATH")}
        self.environment.update(HOME=str(self.home), GPUSHIM_CUDA_PATH=FAKECUDA)

    def run(self, *arguments, **options):
        """Runs doctor; returns the CompletedProcess. set: variables to add; None removes one."""
        environment = dict(self.environment, **options.pop("set", {}))
        environment = {name: value for name, value in environment.items() if value is not None}
        done = subprocess.run([sys.executable, TOOL, "doctor", *map(str, arguments)],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=120, check=False, **options)
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def findings(self, *arguments, **options):
        """Runs doctor --json; returns the findings as tuples, once their form is checked."""
        done = self.run("--json", *arguments, **options)
        assert done.stderr == ""
        rows = json.loads(done.stdout)
        for row in rows:
            assert list(row) == ["status", "area", "code", "text", "remedy"]
            assert row["status"] in (OK, NOTE, WARN, FAIL) and row["area"] in AREAS and row["text"]
            assert row["code"] is None or re.fullmatch(r"[A-Z]\d{3}", row["code"])
            assert bool(row["remedy"]) == (row["status"] in (WARN, FAIL))
        assert done.returncode == (1 if any(row["status"] == FAIL for row in rows) else 0)
        return [tuple(row.values()) for row in rows]

    def areas(self, area, *arguments, **options):
        """Returns (status, code, text) of the findings of one area."""
        return [(status, code, text) for status, found, code, text, _ in
                self.findings(*arguments, **options) if found == area]

    def one(self, area, *arguments, **options):
        """Returns (status, code, text) of the only finding of an area."""
        found, = self.areas(area, *arguments, **options)
        return found

    def file(self, name, text, mode=0o755):
        """Writes a file; returns its path as text."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return str(path)

    def compile(self, name, source, *options):
        """Compiles C; returns the path of the result. Skips without a compiler."""
        if shutil.which("cc") is None:
            pytest.skip("no C compiler")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-x", "c", "-o", str(path), "-", "-x", "none", *options],
                       input=source, encoding="utf-8", check=True)
        return str(path)


@pytest.fixture(name="doctor")
def make_doctor(tmp_path):
    """A Doctor in a fresh folder."""
    return Doctor(tmp_path)


# Here

def test_all_is_well(doctor):
    done = doctor.run()
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"gpushim {tables.load().version}" and lines[-1] == "no problem"
    assert f"  ok    library     {BUILD}/libgpushim.so" in done.stdout
    assert "  ok    device      GPU 0 Fake CUDA device 0" in lines
    assert "  note  calibration no stored profile" in done.stdout and "[P708]" in done.stdout
    assert max(map(len, lines)) <= 100 or BUILD in max(lines, key=len)


def test_text_of_a_failure(doctor):
    done = doctor.run(set={"CUDA_VISIBLE_DEVICES": "", "GPUSHIM_MDOE": "x"})
    assert done.returncode == 1 and done.stdout.endswith("1 problem, 1 warning\n")
    assert ("  FAIL  device      the driver shows no device; CUDA_VISIBLE_DEVICES is empty  "
            "[L802]\n                    -> unset CUDA_VISIBLE_DEVICES\n") in done.stdout
    assert "-> set GPUSHIM_MODE instead?" in done.stdout


def test_colours(doctor):
    assert "\033[32mok  \033[0m" in doctor.run(set={"FORCE_COLOR": "1"}).stdout
    assert "\033" not in doctor.run("--plain", set={"FORCE_COLOR": "1"}).stdout
    assert "\033" not in doctor.run().stdout


@pytest.mark.parametrize("variables, status, code, part", [
    ({"MIN_SPEEDUP": "none"}, WARN, "P709", "GPUSHIM_MIN_SPEEDUP=none (environment)"),
    ({"MOED": "off"}, WARN, "P709", "GPUSHIM_MOED is not a setting"),
    ({"MODE": "off"}, FAIL, "P701", "inert"), ({"MODE": "observe"}, WARN, "P705", "observe"),
    ({"MODE": "verify"}, WARN, "P707", "verify"), ({"MODE": "force"}, OK, None, "MODE=force")])
def test_settings(doctor, variables, status, code, part):
    found = doctor.areas("settings", set={f"GPUSHIM_{k}": v for k, v in variables.items()})
    assert found[-1][:2] == (status, code) and part in found[-1][2]


def test_unknown_names_may_be_left_alone(doctor):
    variables = {"GPUSHIM_MOED": "off", "GPUSHIM_WARN_UNKNOWN": "0"}
    assert doctor.one("settings", set=variables)[0] == OK


def test_audit_folder(doctor):
    status, _, text = doctor.one("log")
    assert status == OK and text.startswith(f"{doctor.home}/.local/state/gpushim/runs (")
    assert os.listdir(doctor.home) == []
    blocked = doctor.file("a file", "") + "/runs"
    status, _, text = doctor.one("log", set={"GPUSHIM_AUDIT_DIR": blocked})
    assert status == WARN and f"{blocked}: Not a directory" in text
    status, _, text = doctor.one("log", set={"GPUSHIM_AUDIT_DIR": "/proc/gpushim"})
    assert status == WARN and text.startswith("/proc/gpushim: ")
    assert doctor.one("log", set={"GPUSHIM_AUDIT": "off"})[0] == NOTE
    assert "neither HOME" in doctor.one("log", set={"HOME": None})[2]


def test_unwritable_audit_folder():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o555)
        child = os.fork()  # root may write everywhere
        if child == 0:
            if os.getuid() == 0:
                os.setuid(65534)
            os._exit(0 if doctor_here.write_problem(folder) == "Permission denied" else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_network_file_systems():
    for kind in ("nfs", "nfs4", "lustre", "cifs", "fuse.sshfs", "9p"):
        assert doctor_here.NETWORK_SYSTEMS.fullmatch(kind)
    for kind in ("ext4", "xfs", "tmpfs", "overlay", "fuse", "zfs", "btrfs"):
        assert not doctor_here.NETWORK_SYSTEMS.fullmatch(kind)
    assert doctor_here.file_system("/proc/self") == "proc"


def test_limits(doctor):
    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    status, _, text = doctor.one("limits", preexec_fn=limit_files)
    assert status == WARN and text == "ulimit -f cuts the audit file at 1.0 MiB"

    def limit_memory():
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    status, code, text = doctor.one("limits", preexec_fn=limit_memory)
    assert (status, code) == (WARN, "L809") and "8.0 GiB" in text


def test_library_problems(doctor):
    folder = doctor.folder / "lib"
    folder.mkdir()
    variables = {"GPUSHIM_LIBDIR": str(folder)}
    done = doctor.run(set=variables)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "tables.json is not in" in done.stderr
    shutil.copy(os.path.join(BUILD, "tables.json"), folder)
    findings = doctor.findings(sys.executable, "x.py", set=variables)
    assert findings[0][:2] == (FAIL, "library") and "libgpushim.so is not in" in findings[0][3]
    assert any(row[:2] == (NOTE, "capture") for row in findings)
    foreign = bytearray(source_bytes(os.path.join(BUILD, "libgpushim.so")))
    foreign[18:20] = b"\x08\0"  # MIPS
    for content, part in ((b"x" * 100, "not an ELF file"), (b"", "not an ELF file"),
                          (foreign[:500], "damaged ELF file"), (foreign, "not for this machine")):
        (folder / "libgpushim.so").write_bytes(content)
        found = doctor.one("library", set=variables)
        assert found[0] == FAIL and part in found[2]


def test_library_that_does_not_load(doctor):
    folder = doctor.folder / "lib"
    doctor.compile("lib/libnone.so", "", "-shared")
    doctor.compile("lib/libgpushim.so", "", "-shared", "-Wl,--no-as-needed",
                   str(folder / "libnone.so"))
    (folder / "libnone.so").unlink()
    shutil.copy(os.path.join(BUILD, "tables.json"), folder)
    found = doctor.one("library", set={"GPUSHIM_LIBDIR": str(folder)})
    assert found[0] == FAIL and "libnone.so" in found[2]
    blank = doctor.folder / "a blank"
    shutil.copytree(folder, blank)
    found = doctor.one("library", set={"GPUSHIM_LIBDIR": str(blank)})
    assert found[0] == FAIL and "contains a blank" in found[2]


def test_exported_preload(doctor):
    library = os.path.join(BUILD, "libgpushim.so")
    found = doctor.areas("library", set={"LD_PRELOAD": library})
    assert [row[0] for row in found] == [OK, NOTE]
    other = doctor.folder / "libgpushim.so"
    shutil.copy(library, other)
    found = doctor.areas("library", set={"LD_PRELOAD": str(other)})
    assert [row[0] for row in found] == [OK, WARN] and str(other) in found[1][2]


# Driver, device, CUDA libraries

def test_no_driver(doctor):
    # A file of that name that is no library ends ld.so's search, also on a machine with a driver.
    doctor.file("broken/libcuda.so.1", "x" * 100)
    variables = {"GPUSHIM_CUDA_PATH": None, "LD_LIBRARY_PATH": str(doctor.folder / "broken")}
    status, code, _ = doctor.one("driver", set=variables)
    assert (status, code) == (FAIL, "L801")


def test_no_driver_at_all(doctor):
    done = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"],
                          stderr=subprocess.DEVNULL, env=doctor.environment, check=False)
    if done.returncode == 0:
        pytest.skip("this machine has a driver")
    done = doctor.run(set={"GPUSHIM_CUDA_PATH": None})
    assert done.returncode == 1 and "no driver library libcuda.so.1" in done.stdout
    assert "[L801]" in done.stdout and "-> install the driver" in done.stdout


@pytest.mark.parametrize("variables, area, code, part", [
    ({"CUDA_VISIBLE_DEVICES": ""}, "device", "L802", "CUDA_VISIBLE_DEVICES is empty"),
    ({"CUDA_VISIBLE_DEVICES": "7"}, "device", "L802", "CUDA_VISIBLE_DEVICES is '7'"),
    ({"FAKECUDA_DEVICES": "0"}, "device", "L802", "no device"),
    ({"GPUSHIM_DEVICE": "none"}, "device", "L802", "GPUSHIM_DEVICE=none"),
    ({"GPUSHIM_DEVICE": "1"}, "device", "L802", "devices 0 to 0"),
    ({"FAKECUDA_INIT_STATUS": "803"}, "driver", "L803", "CUresult 803"),
    ({"FAKECUDA_INIT_STATUS": "34"}, "driver", "L801", "CUresult 34"),
    ({"FAKECUDA_INIT_STATUS": "999"}, "driver", "L809", "CUresult 999")])
def test_no_device(doctor, variables, area, code, part):
    status, found, text = doctor.one(area, set=variables)
    assert (status, found) == (FAIL, code) and part in text


@pytest.mark.parametrize("variables, index", [
    ({}, 0), ({"GPUSHIM_DEVICE": "2"}, 2), ({"SLURM_LOCALID": "4"}, 1),
    ({"GPUSHIM_DEVICE": "GPU-x", "LOCAL_RANK": "2"}, 2), ({"LOCAL_RANK": "-1"}, 0),
    ({"CUDA_VISIBLE_DEVICES": "1"}, 0)])
def test_which_device(doctor, variables, index):
    status, _, text = doctor.one("device", set=dict(variables, FAKECUDA_DEVICES="3"))
    assert status == OK and text.startswith(f"GPU {index} Fake CUDA device")


def test_cuda_12(doctor):
    found = doctor.findings(set={"GPUSHIM_CUDA_PATH": FAKECUDA + "12"})
    assert any(row[1] == "libraries" and f"{FAKECUDA}12/libcublas.so.12" in row[3]
               for row in found)


def test_cuda_library_missing(doctor):
    empty = doctor.folder / "empty"
    empty.mkdir()
    status, code, text = doctor.one("libraries", set={"GPUSHIM_CUDA_PATH": f"{empty}::/none"})
    assert (status, code) == (FAIL, "L804") and f"{empty}, /none" in text


def test_broken_cuda_libraries(doctor):
    broken = doctor.file("broken/libcublas.so.13", "x" * 100)
    folders = f"{doctor.folder}/broken:{FAKECUDA}12"
    found = doctor.areas("libraries", set={"GPUSHIM_CUDA_PATH": folders})
    assert [row[0] for row in found] == [WARN, OK] and broken in found[0][2]
    found = doctor.one("libraries", set={"GPUSHIM_CUDA_PATH": f"{doctor.folder}/broken"})
    assert found[:2] == (FAIL, "L804") and broken in found[2]
    doctor.compile("old/libcublas.so.12", "void cublasCreate_v2(void) {}", "-shared")
    found = doctor.one("libraries", set={"GPUSHIM_CUDA_PATH": f"{doctor.folder}/old"})
    assert found[:2] == (FAIL, "L805") and "cublasDgemm_v2" in found[2]


def test_broken_drivers(doctor):
    variables = {"GPUSHIM_CUDA_PATH": str(doctor.folder)}
    doctor.compile("libcuda.so.1", STUB_DRIVER, "-shared")
    assert doctor.one("driver", set=variables)[:2] == (FAIL, "L801")
    doctor.compile("libcuda.so.1", "int cuInit(void) { return 0; }", "-shared")
    assert doctor.one("driver", set=variables)[:2] == (FAIL, "L805")
    doctor.compile("libcuda.so.1", STUB_DRIVER + "#include <stdlib.h>\n"
                   "__attribute__((constructor)) static void die(void) { abort(); }", "-shared")
    status, code, text = doctor.one("driver", set=variables)
    assert (status, code) == (FAIL, "L809") and "died of SIGABRT" in text


def test_memory_by_nvidia_smi(doctor, monkeypatch):
    doctor.file("nvidia-smi", """#!/bin/sh
case "$1" in
--query-gpu=*) echo "GPU-00000000-0000-0000-0000-000000000001, 7"
               echo "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, 1024";;
*) echo "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, 4711";;
esac
""")
    monkeypatch.setenv("PATH", f"{doctor.folder}:{os.environ['PATH']}")
    uuid = "8932f937d72c4106c12f20bd9faed9f6"
    assert doctor_device.free_memory(uuid) == (1 << 30, 1)
    device = {"name": "NVIDIA H200", "uuid": uuid, "bytes": 141 << 30}
    assert doctor_device.describe_device(device, 0, "", 1).text == (
        "GPU 0 NVIDIA H200, 141.0 GiB, 1.0 GiB free, 1 process on it")
    assert doctor_device.free_memory("") == (None, 0)
    doctor.file("nvidia-smi", "#!/bin/sh\nexit 9\n")
    assert doctor_device.free_memory(uuid) == (None, 0)


def test_driver_older_than_the_library():
    facts = tables.load()
    library = {"names": ["libcublas.so.13"], "name": "libcublas.so.13", "path": "/x", "place": "y",
               "missing": [], "errors": [], "searched": []}
    assert doctor_device.check_cuda_library(facts, library, 12040).code == "L803"
    assert doctor_device.check_cuda_library(facts, library, 13000).status == OK


def source(path):
    """Returns the text of a file of the tree."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def test_the_loader_is_mirrored():
    """Names, folders, ranks and codes are those of loader.c and context.c."""
    loader, context = (source(f"gpu_backends/cuda/{name}.c") for name in ("loader", "context"))

    def strings(text, name):
        body = re.search(name + r"\[\] = \{(.*?)\}", text, re.DOTALL)[1]
        return re.findall(r'"([^"]*)"', body)
    versions = re.search(r"cublas_versions\[\] = (.*?);", loader, re.DOTALL)[1]
    assert re.findall(r'"([^"]*)"', versions) == doctor_device.LIBRARIES[0]["names"]
    assert strings(loader, "wheel_folders") == doctor_device.WHEEL_FOLDERS
    assert strings(context, "local_rank_names") == list(doctor_device.LOCAL_RANKS)
    numbers = dict(re.findall(r"GS_CONSTANT\(CUresult, (\w+), (\d+)\)",
                              source("gpu_backends/cuda/constants.def")))
    reasons = {"NO_DRIVER": "L801", "NO_DEVICE": "L802", "DRIVER_TOO_OLD": "L803"}
    switch = context[context.index("reason_of_init("):context.index("default:")]
    for cases, reason in re.findall(r"((?:case \w+:\s*)+)return GS_(\w+);", switch):
        for name in re.findall(r"case (\w+):", cases):
            if name != "CUDA_SUCCESS":
                assert doctor_device.CODES.pop(int(numbers[name])) == reasons[reason]
    assert not doctor_device.CODES
    rows = set(re.findall(r"GS_CUDA_FN\(CU\w+, REQUIRED, \w+, (\w+),",
                          source("gpu_backends/cuda/api.def")))
    asked = set(doctor_child.NOT_IN_FIRST_DRIVERS) | set(doctor_device.LIBRARIES[0]["symbols"])
    assert asked - {"cublasDgemm_v2"} <= rows


def test_order_of_places(monkeypatch):
    request = {"cuda_path": "auto", "module": "/v/lib/site-packages/numpy/x-packages/y.so",
               "wheel_folders": ["a", "b"]}
    monkeypatch.setenv("CONDA_PREFIX", "/conda")
    monkeypatch.setenv("CUDA_HOME", "/cuda")
    assert [path for _, path in doctor_child.places("L", request)] == [
        "/v/lib/site-packages/a/L", "/v/lib/site-packages/b/L", "/conda/lib/L", "L",
        "/cuda/lib64/L", "/usr/local/cuda/lib64/L"]
    assert doctor_child.driver_places(request) == [("system", "libcuda.so.1")]
    monkeypatch.setenv("CONDA_PREFIX", "relative")
    monkeypatch.delenv("CUDA_HOME")
    assert len(doctor_child.places("L", dict(request, module="/usr/bin/x"))) == 2
    request["cuda_path"] = "/a::b"
    assert [path for _, path in doctor_child.places("L", request)] == ["/a/L", "b/L"]


# Programs

@pytest.mark.parametrize("word, status", [
    ("no-such-command", 127), ("/no/such", 127), ("", 127), ("/etc", 126), ("/etc/passwd", 126),
    ("/etc/passwd/x", 126), ("\udcff", 127), ("/dev/null", 126)])
def test_commands_that_do_not_start(doctor, word, status):
    found = doctor.one("preload", "--", word)
    assert found[0] == FAIL and f"(gpushim run would end with {status})" in found[2]


def test_wrong_command_line(doctor):
    done = doctor.run("--nonsense")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_static_program(doctor):
    path = doctor.compile("static", "void _start(void) { for (;;); }", "-static", "-nostdlib")
    status, _, text = doctor.one("preload", path)
    assert status == FAIL and "static is static: no ld.so runs" in text
    path = doctor.compile("static-pie", "void _start(void) { for (;;); }", "-static-pie",
                          "-nostdlib")
    assert doctor.one("preload", path)[0] == FAIL


def test_other_machines(doctor):
    header = bytearray(200)
    header[:6] = b"\x7fELF\1\1"
    header[18] = 3
    path = doctor.folder / "old"
    path.write_bytes(header)
    path.chmod(0o755)
    status, _, text = doctor.one("preload", path)
    assert status == FAIL and "32-bit program for i386" in text
    path = doctor.compile("alpine", "int main(void) { return 0; }",
                          "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
    status, _, text = doctor.one("preload", path)
    assert status == FAIL and "musl" in text


def test_setuid_copy(doctor):
    if os.getuid() != 0:
        pytest.skip("only root can give a file to another user; see test_secure_mode")
    path = doctor.folder / "cat"
    shutil.copy("/bin/cat", path)
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        pytest.skip(f"{path} is on a file system mounted nosuid; see test_secure_mode")
    status, _, text = doctor.one("preload", path)
    assert status == FAIL and text == "cat is setuid: ld.so ignores LD_PRELOAD"


@pytest.mark.parametrize("mode, owner_is_me, expected", [
    (0o755, True, []), (0o4755, True, [WARN]), (0o4755, False, [FAIL]), (0o2755, True, [WARN]),
    (0o2755, False, [FAIL]), (0o2644, False, [])])
def test_secure_mode(tmp_path, monkeypatch, mode, owner_is_me, expected):
    path = tmp_path / "program"
    path.write_bytes(b"")
    real = os.stat(path)
    other = 0 if owner_is_me else 1
    fake = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, real.st_uid + other, real.st_gid + other,
                           0, 0, 0, 0))
    monkeypatch.setattr(doctor_program.os, "stat", lambda path: fake)
    monkeypatch.setattr(doctor_program.os, "getuid", lambda: real.st_uid)
    monkeypatch.setattr(doctor_program.os, "getgid", lambda: real.st_gid)
    monkeypatch.setattr(doctor_program.os, "statvfs", lambda path: os.statvfs_result([0] * 10))
    assert [finding.status for finding in doctor_program.check_secure(str(path))] == expected


def test_shell_script(doctor):
    for name, text in (("a", "#!/bin/sh\ntrue\n"), ("b", "true\n"), ("c", "#!/usr/bin/env bash\n")):
        path = doctor.file(name, text)
        findings = doctor.findings(path)
        assert any(row[:2] == (OK, "preload") and f"(runs {path})" in row[3] for row in findings)
        assert any(row[:2] == (WARN, "capture") and "is a shell script" in row[3]
                   for row in findings)


def test_odd_scripts(doctor):
    path = doctor.file("loop", "")
    doctor.file("loop", f"#!{path}\n")
    assert "without end" in doctor.one("preload", path)[2]
    found = doctor.one("preload", doctor.file("gone", "#!/no/such/interpreter\n"))
    assert "/no/such/interpreter: No such file" in found[2]
    (doctor.folder / "data").write_bytes(b"\0\1\2" * 50)
    (doctor.folder / "data").chmod(0o755)
    assert "neither a script nor an ELF" in doctor.one("preload", doctor.folder / "data")[2]
    (doctor.folder / "cut").write_bytes(source_bytes("/bin/true")[:100])
    (doctor.folder / "cut").chmod(0o755)
    assert "damaged ELF" in doctor.one("preload", doctor.folder / "cut")[2]


def source_bytes(path):
    """Returns the content of a file."""
    with open(path, "rb") as file:
        return file.read()


def test_program_without_blas(doctor):
    status, _, text = doctor.one("capture", "true")
    assert status == WARN and "true is linked to no BLAS" in text and "cannot be told" in text


@pytest.mark.parametrize("integer, expected", [("int", "LP64"), ("long long", "ILP64")])
def test_linked_program(doctor, integer, expected):
    library = doctor.compile("libmyblas.so", MY_BLAS, "-shared", f"-DINT={integer}",
                             "-Wl,-soname,libmyblas.so")
    path = doctor.compile("app", "void dgemm_(void); int main(void) { dgemm_(); }",
                          library, "-Wl,-rpath,$ORIGIN")
    found = doctor.areas("capture", path)
    assert [row[0] for row in found] == [OK, OK]
    assert found[0][2] == "app -> libmyblas.so" and f"libmyblas.so ({expected})" in found[1][2]
    os.unlink(library)
    found = doctor.areas("capture", path)
    assert found[0][0] == WARN and found[0][2] == "not found: libmyblas.so"


def test_width_not_proven(doctor):
    library = doctor.compile("libmyblas.so", "void dgemm_(void) {}", "-shared",
                             "-Wl,-soname,libmyblas.so")
    path = doctor.compile("app", "void dgemm_(void); int main(void) { dgemm_(); }",
                          library, "-Wl,-rpath,$ORIGIN")
    found = doctor.areas("capture", path)
    assert found[-1][:2] == (WARN, "U310") and "F77_LP64" in found[-1][2]


def test_blas_that_is_not_taken(doctor):
    library = doctor.compile("libmyblas.so", MY_BLAS, "-shared", "-DINT=int",
                             "-Wl,-soname,libmyblas.so")
    path = doctor.compile("app", "int main(void) { return 0; }", "-Wl,--no-as-needed", library,
                          "-Wl,-rpath,$ORIGIN")
    found = doctor.areas("capture", path)
    assert found[0][0] == WARN and "takes none of its names" in found[0][2]


def test_static_blas(doctor):
    path = doctor.compile("app", MY_BLAS + "int main(void) { dgemm_(); }", "-DINT=int")
    found = doctor.one("capture", path)
    assert found[0] == FAIL and "app holds a BLAS of its own" in found[2]


# Python

def packages():
    """Returns the names of those of the packages that this Python has."""
    return [name for name in ("numpy", "scipy", "sklearn") if importlib.util.find_spec(name)]


@needs_numpy
@pytest.mark.parametrize("command", [["app.py"], ["-c", "import os; os._exit(9)"], ["-E", "x"]])
def test_python_with_numpy(doctor, command):
    findings = doctor.findings("--", sys.executable, *command)
    assert not any(row[0] == FAIL for row in findings)
    captured = [row[3] for row in findings if row[1] == "capture"]
    assert [text.split()[0] for text in captured] == packages()
    assert " -> " in captured[0] and "LP64" in captured[0]
    assert [row[3] for row in findings if row[1] == "device"] == ["GPU 0 Fake CUDA device 0"]
    mapped = [row[3] for row in findings if row[1] == "preload"]
    assert len(mapped) == 1 and "ld.so maps the library" in mapped[0]
    assert any(row[1] == "threads" for row in findings)
    assert os.listdir(doctor.home) == []


@needs_numpy
@pytest.mark.parametrize("variables", [
    {"GPUSHIM_MODE": "off"}, {"GPUSHIM_AUDIT": "off"}, {"GPUSHIM_ROUTINES": "-*"},
    {"GPUSHIM_MIN_TIME": "10s"}, {"GPUSHIM_VERBOSE": "3"}])
def test_probe_does_not_depend_on_settings(doctor, variables):
    found = doctor.areas("capture", sys.executable, "x.py", set=variables)
    assert [row[0] for row in found] == [OK] * len(packages())


@needs_numpy
def test_probe_under_a_file_limit(doctor):
    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY:
        pytest.skip("the hard limit of file sizes is not infinite here")
    found = doctor.areas("capture", sys.executable, "x.py", preexec_fn=limit_files)
    assert [row[0] for row in found] == [OK] * len(packages())


@needs_numpy
def test_python_scripts(doctor):
    for first_line in (f"#!{sys.executable} -E", f"#!/usr/bin/env -S A=b {sys.executable}"):
        path = doctor.file("app", first_line + "\nraise SystemExit(9)\n")
        findings = doctor.findings(path, "argument")
        assert any(row[1] == "preload" and f"(runs {path})" in row[3] for row in findings)
        assert [row[0] for row in findings if row[1] == "capture"] == [OK] * len(packages())
    path = doctor.file("app.py", "raise SystemExit(9)\n", 0o644)
    for command in ([path], ["-m", "some.module"]):
        found = doctor.areas("capture", *command)
        assert [row[0] for row in found] == [OK] * len(packages())


@needs_numpy
def test_modules_opened_deepbind(doctor):
    doctor.file("site/sitecustomize.py", "import os, sys\n"
                "sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)\n")
    found = doctor.areas("capture", sys.executable, "x.py",
                         set={"PYTHONPATH": str(doctor.folder / "site")})
    assert found[0][0] == FAIL and "RTLD_DEEPBIND" in found[0][2] and "numpy" in found[0][2]


def test_modules_of_the_current_folder_are_not_run(doctor):
    doctor.file("numpy.py", "raise SystemExit('run')\n")
    found = doctor.areas("capture", sys.executable, "x.py", cwd=doctor.folder)
    assert not any("run" in row[2].split() for row in found)
    assert not any(row[0] == FAIL for row in found)


def test_python_without_numpy(doctor):
    if shutil.which("python3", path="/usr/bin") is None:
        pytest.skip("no /usr/bin/python3")
    found = doctor.areas("capture", "/usr/bin/python3", "-I", "-S", "x.py")
    assert [row[0] for row in found] == [WARN] and "none of numpy, scipy, sklearn" in found[0][2]


def test_broken_package(doctor):
    doctor.file("site/numpy/__init__.py", "raise ImportError('no such \\udcff thing')\n")
    found = doctor.areas("capture", sys.executable, "x.py",
                         set={"PYTHONPATH": str(doctor.folder / "site")})
    assert found[0][0] == WARN and "no such" in found[0][2]


def test_python_behind_a_wrapper(doctor):
    doctor.file("bin/python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    found = doctor.one("preload", doctor.folder / "bin/python3", "x.py")
    assert found[0] == OK and "ld.so maps the library" in found[2]
    doctor.file("bin/python3", f'#!/bin/sh\nunset LD_PRELOAD\nexec {sys.executable} "$@"\n')
    found = doctor.one("preload", doctor.folder / "bin/python3", "x.py")
    assert found[0] == FAIL and "LD_PRELOAD is taken away" in found[2]


@pytest.mark.parametrize("body, part", [
    ("kill -SEGV $$", "died of SIGSEGV"), ("echo broken >&2; exit 3", "broken"),
    ("exit 3", "ended with status 3"), ("cat >/dev/null; echo text", "ended with status 0")])
def test_python_that_gives_no_answer(doctor, body, part):
    doctor.file("bin/python3", f"#!/bin/sh\n{body}\n")
    status, _, text = doctor.one("capture", doctor.folder / "bin/python3", "x.py")
    assert status == FAIL and part in text


# Parts

def test_threads():
    row = {"path": "/x/libopenblas.so.0", "version": "OpenBLAS 0.3.21  NO_LAPACKE", "threads": 32,
           "spellings": {"F77_LP64": 4}}
    finding, = doctor_blas.check_threads([row], 16)
    assert finding.status == WARN and finding.text == "OpenBLAS 0.3.21 uses 32 threads on 16 cores"
    assert finding.remedy.startswith("export OPENBLAS_NUM_THREADS=16 ")
    for threads, status in ((16, OK), (1, NOTE), (None, NOTE)):
        finding, = doctor_blas.check_threads([dict(row, threads=threads)], 16)
        assert finding.status == status
    finding, = doctor_blas.check_threads(
        [dict(row, path="/opt/libmkl_rt.so.2", version=None)], 16)
    assert "MKL_NUM_THREADS=16" in finding.remedy
    assert doctor_blas.describe(row) == "libopenblas.so.0 (OpenBLAS 0.3.21, LP64, 32 threads)"


def test_cores():
    assert doctor_blas.quota_of("max 100000\n") is None
    assert doctor_blas.quota_of("250000 100000\n") == 3
    assert 1 <= doctor_blas.allowed_cores() <= os.cpu_count()


def test_questions():
    rows = {row["name"]: row for row in doctor_blas.questions(tables.load())["spellings"]}
    assert rows["F77_LP64"] == {"name": "F77_LP64", "gemm": "dgemm_", "isamax": "isamax_",
                                "cblas": False}
    assert rows["CBLAS_SCIPY_ILP64"] == {"name": "CBLAS_SCIPY_ILP64", "cblas": True,
                                         "gemm": "scipy_cblas_dgemm64_",
                                         "isamax": "scipy_cblas_isamax64_"}


def test_elf_of_the_library():
    names = {entry["name"] for entry in tables.load().entries}
    elf = Elf(os.path.join(BUILD, "libgpushim.so"), names | {"malloc", "no_such_name"})
    assert elf.defined == names and "no_such_name" not in elf.undefined
    assert elf.bits == 64 and elf.interpreter is None and elf.soname == "libgpushim.so"
    assert {"libc.so.6", "libm.so.6"} >= set(elf.needed)
    assert Elf("/bin/true").interpreter.startswith("/lib")


def test_damaged_elf_files(tmp_path):
    """Whatever a file holds, reading it ends with NotElf or with an Elf."""
    whole, path, rng = source_bytes("/bin/true"), tmp_path / "x", random.Random(1)
    outcomes = set()
    for size in [len(whole)] * 200 + [rng.randrange(len(whole)) for _ in range(100)]:
        data = bytearray(whole[:size])
        for _ in range(10 if size > 1000 else 0):
            data[rng.choice((rng.randrange(64), rng.randrange(1000), rng.randrange(size)))] = (
                rng.randrange(256))
        path.write_bytes(data)
        try:
            Elf(str(path), {"malloc"})
            outcomes.add("read")
        except NotElf as error:
            outcomes.add(str(error))
    assert outcomes == {"read", "a damaged ELF file", "not an ELF file"}
