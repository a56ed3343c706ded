# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor, the device: driver, GPU and CUDA libraries, as gpu_backends/cuda would find them.

The driver is started in a child process, which makes no context.
"""
import glob
import os
import re
import shutil
import subprocess

from .doctor_ask import ask
from .doctor_findings import fail, note, ok, warn
from .output import data_size, plural

# The names of loader.c, newest first; the first symbol also tells where the library lies.
LIBRARIES = [{"names": ["libcublas.so.13", "libcublas.so.12"],
              "symbols": ["cublasCreate_v2", "cublasSetMathMode", "cublasDgemm_v2"]}]
WHEEL_FOLDERS = ["nvidia/cu13/lib", "nvidia/cublas/lib"]
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MV2_COMM_WORLD_LOCAL_RANK",
               "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID",
               "JSM_NAMESPACE_LOCAL_RANK", "LOCAL_RANK")
OLDEST_DRIVER = 12000
# CUresult of cuInit -> reason (context.c); any other failure is L809.
CODES = {34: "L801", 100: "L802", 101: "L802", 803: "L803", 804: "L803"}
PROHIBITED = 2
CUDA_DEVICE_FILES = ("/dev/nvidiactl", "/dev/nvidia-uvm")


def remedy_of(facts, code):
    """Returns what reasons.def says to do about a code such as "L801"."""
    return facts.reason(int(code[1:]))["remedy"]


def refused(facts, area, code, text, remedy=None):
    """Returns the failure that a reason code stands for."""
    return fail(area, text, remedy or remedy_of(facts, code), code)


def cuda_version(number):
    """Returns a CUDA version number, 13000, as "13.0"."""
    return f"{number // 1000}.{number % 1000 // 10}"


def kernel_driver():
    """Returns the release of the kernel's driver ("580.159.03"), or ""."""
    try:
        with open("/sys/module/nvidia/version", encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def no_driver(facts, driver):
    """Returns the finding that there is no usable driver library."""
    if driver["errors"]:
        return refused(facts, "driver", "L801", f"not usable: {driver['errors'][0]}")
    if glob.glob("/dev/nvidia[0-9]*"):
        return refused(facts, "driver", "L801",
                       "there is a device (/dev/nvidia*) and no driver library libcuda.so.1",
                       "in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility; else install "
                       "the driver's libcuda")
    return refused(facts, "driver", "L801", "no driver library libcuda.so.1, no /dev/nvidia*")


def hidden_by():
    """Returns (text, remedy) for a driver that shows no device."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        value = repr(visible) if visible.strip() else "empty"
        return (f"the driver shows no device; CUDA_VISIBLE_DEVICES is {value}",
                "unset CUDA_VISIBLE_DEVICES")
    if not glob.glob("/dev/nvidia[0-9]*"):
        return ("the driver shows no device; there is no /dev/nvidia*",
                "start the container with its GPUs (--gpus all), the batch job with one")
    return "the driver shows no device", None


def init_failure(facts, driver, status):
    """Returns the finding that cuInit, or counting the devices, failed with this status."""
    code = CODES.get(status, "L809")
    if code == "L802":
        text, remedy = hidden_by()
        return refused(facts, "device", code, text, remedy)
    text = f"cuInit of {driver['path']} gives CUresult {status}"
    if code == "L803":
        text += f" (kernel driver {kernel_driver() or 'unknown'}, library for CUDA "
        text += f"{cuda_version(driver['version'])}): the two do not fit"
    closed = [path for path in [*glob.glob("/dev/nvidia[0-9]*"), *CUDA_DEVICE_FILES]
              if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK)]
    if code == "L809" and closed:
        text += f"; no permission for {', '.join(closed)}"
    return refused(facts, "driver", code, text)


def check_driver(facts, driver):
    """Returns (findings, whether devices can be asked for)."""
    if driver["path"] is None:
        return [no_driver(facts, driver)], False
    if driver["missing"]:
        return [refused(facts, "driver", "L805", f"{driver['path']} lacks {driver['missing'][0]}",
                        "update the driver")], False
    for status in (driver["init"], driver["count_status"]):
        if status != 0:
            return [init_failure(facts, driver, status)], False
    release = kernel_driver()
    text = (f"CUDA {cuda_version(driver['version'])}" + (f", kernel {release}" if release else "")
            + f": {driver['path']} ({driver['place']})")
    if driver["version"] < OLDEST_DRIVER:
        return [refused(facts, "driver", "L803", text + " is older than CUDA 12.0")], False
    return [ok("driver", text)], True


def chosen_index(wanted, count):
    """Returns (index of the device that is used, why that one), as context.c chooses it."""
    if re.fullmatch(r"\s*[+-]?\d+", wanted, re.ASCII):
        return int(wanted), f"GPUSHIM_DEVICE={wanted}"
    for name in LOCAL_RANKS:
        rank = os.environ.get(name, "")
        if re.fullmatch(r"\s*\+?\d+", rank, re.ASCII):
            return int(rank) % count, f"{name}={rank}"
    return 0, "the first" if count > 1 else ""


def free_memory(uuid):
    """Returns (free bytes, number of processes) of a device by nvidia-smi; (None, 0) without."""
    tool = shutil.which("nvidia-smi")
    if tool is None or not uuid:
        return None, 0
    wanted = f"GPU-{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}"
    try:
        rows = [subprocess.run([tool, f"--query-{what}", "--format=csv,noheader,nounits"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, timeout=20, check=True,
                               encoding="utf-8", errors="replace").stdout.splitlines()
                for what in ("gpu=uuid,memory.free", "compute-apps=gpu_uuid,pid")]
    except (OSError, subprocess.SubprocessError):
        return None, 0
    free = [row.partition(", ")[2] for row in rows[0] if row.startswith(wanted)]
    users = sum(row.startswith(wanted) for row in rows[1])
    return (int(free[0]) << 20 if free and free[0].isdigit() else None), users


def describe_device(device, index, why, count):
    """Returns the finding about the device that is used."""
    free, users = free_memory(device["uuid"])
    text = f"GPU {index} {device['name']}"
    text += f", {data_size(device['bytes'])}" if device["bytes"] else ""
    text += f", {data_size(free)} free" if free is not None else ""
    text += f", {plural(users, 'process', 'es')} on it" if users else ""
    text += f" ({why}, of {count})" if why else ""
    return ok("device", text)


def check_device(facts, driver, chosen):
    """Returns findings about the device that would be used."""
    wanted, devices = chosen.values["DEVICE"], driver["devices"]
    if wanted == "none":
        return [refused(facts, "device", "L802", "GPUSHIM_DEVICE=none", "unset GPUSHIM_DEVICE")]
    if not devices:
        text, remedy = hidden_by()
        return [refused(facts, "device", "L802", text, remedy)]
    index, why = chosen_index(wanted, len(devices))
    if not 0 <= index < len(devices):
        text = f"{why}: the driver shows devices 0 to {len(devices) - 1}"
        return [refused(facts, "device", "L802", text)]
    device = devices[index]
    if device["compute_mode"] == PROHIBITED:
        return [refused(facts, "device", "L809", f"GPU {index} is in compute mode Prohibited",
                        "nvidia-smi -c DEFAULT, by the administrator")]
    return [describe_device(device, index, why, len(devices))]


def name_of(library):
    """Returns what to call a library: its name, and where its file lies."""
    return f"{library['name']} = {library['path']} ({library['place']})"


def check_cuda_library(facts, library, driver_version):
    """Returns the finding about one CUDA library."""
    names = " or ".join(library["names"])
    if library["path"] is None:
        if library["errors"]:
            return refused(facts, "libraries", "L804", f"{names} does not load: "
                                                       f"{library['errors'][0]}")
        folders = list(dict.fromkeys(os.path.dirname(place) or "the system's folders"
                                     for place in library["searched"]))
        return refused(facts, "libraries", "L804",
                       f"{names} is not in {', '.join(folders) or 'any folder'}")
    if library["missing"]:
        return refused(facts, "libraries", "L805",
                       f"{name_of(library)} lacks {', '.join(library['missing'])}")
    major = int(library["name"].rpartition(".")[2])
    if driver_version and major > driver_version // 1000:
        text = (f"{name_of(library)} needs a driver for CUDA {major}; this one is for CUDA "
                f"{cuda_version(driver_version)}")
        return refused(facts, "libraries", "L803", text,
                       "update the driver, or name the folder of an older one: GPUSHIM_CUDA_PATH")
    return ok("libraries", name_of(library))


def broken_copies(area, library):
    """Returns warnings about copies of a library that were passed over because they do not load."""
    return [warn(area, f"passed over: {error}", "remove or repair it")
            for error in (library["errors"] if library["path"] is not None else [])]


def check_cuda(facts, chosen, python, module):
    """Returns findings about driver, device, CUDA libraries and profile.

    python: the words that start the interpreter that asks; module: path of a module of the
    program, below its site-packages, or "".
    """
    answer, problem = ask(python, "cuda", cuda_path=chosen.values["CUDA_PATH"], module=module,
                          libraries=LIBRARIES, wheel_folders=WHEEL_FOLDERS)
    if answer is None:
        return [refused(facts, "driver", "L809", f"asking the driver: {problem}")]
    driver = answer["driver"]
    findings, usable = check_driver(facts, driver)
    findings = broken_copies("driver", driver) + findings
    if usable:
        findings += check_device(facts, driver, chosen)
    for library in answer["libraries"]:
        findings += broken_copies("libraries", library)
        findings.append(check_cuda_library(facts, library, driver["version"]))
    findings.append(note("calibration", "no stored profile: built-in estimates and what the run "
                                        "itself measures decide", "P708"))
    return findings
