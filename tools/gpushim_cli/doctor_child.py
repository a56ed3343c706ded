# SPDX-License-Identifier: Apache-2.0
"""The questions that gpushim doctor asks in a process of its own (doctor_ask.py starts it).

This file is run by the interpreter of the program in question, by its path and alone: Python 3.6
or newer, standard library, nothing of this package. What it asks may crash or hang; the answer is
a JSON file, and no file means no answer.
"""
import ctypes
import importlib
import importlib.util
import json
import os
import resource
import sys

NOT_IN_FIRST_DRIVERS = ("cuMemPoolCreate", "cuMemAllocFromPoolAsync")
COMPUTE_MODE = 20  # CU_DEVICE_ATTRIBUTE_COMPUTE_MODE


class DlInfo(ctypes.Structure):
    """Dl_info of dladdr(3)."""
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def symbol(library, name):
    """Returns a function of an open library, or None."""
    try:
        return library[name]
    except AttributeError:
        return None


def mapped_files():
    """Returns the files mapped into this process, in order, each once."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        rows = [line.rstrip("\n").split(None, 5) for line in maps]
    return list(dict.fromkeys(row[5] for row in rows if len(row) == 6 and row[5][0] == "/"))


def owner(function):
    """Returns the real path of the file that a function lies in."""
    info = DlInfo()
    address = ctypes.cast(function, ctypes.c_void_p)
    if not ctypes.CDLL(None).dladdr(address, ctypes.byref(info)) or not info.file:
        return None
    return os.path.realpath(os.fsdecode(info.file))


# The CPU libraries

def integer_width(function, is_cblas):
    """Returns the bytes of the library's integers, 0 when it cannot be told.

    As in shim/originals.c: the length is 3 in 32 bits and negative in 64, where isamax finds
    nothing to do. It reads three floats and writes nothing.
    """
    values = (ctypes.c_float * 3)(1, 3, 2)
    length, one = ctypes.c_int64(3 - (1 << 32)), ctypes.c_int64(1)
    if is_cblas:
        function.restype = ctypes.c_size_t
        return {1: 4, 0: 8}.get(function(length, values, one) & 0xFFFFFFFF, 0)
    function.restype = ctypes.c_int
    return {2: 4, 0: 8}.get(function(ctypes.byref(length), values, ctypes.byref(one)), 0)


def spellings_of(library, path, spellings):
    """Returns the spellings that the library at path itself exports, with their integer width."""
    found = {}
    for row in spellings:
        function = symbol(library, row["gemm"])
        if function is not None and owner(function) == os.path.realpath(path):
            isamax = symbol(library, row["isamax"])
            found[row["name"]] = integer_width(isamax, row["cblas"]) if isamax else 0
    return found


def number_of_threads(library, getters):
    """Returns the number of threads the library would use, or None."""
    for name in getters:
        function = symbol(library, name)
        if function is not None:
            function.restype = ctypes.c_int
            return function()
    return None


def version_text(library, getters):
    """Returns what the library says it is ("OpenBLAS 0.3.21 ..."), or None."""
    for name in getters:
        function = symbol(library, name)
        if function is not None:
            function.restype = ctypes.c_char_p
            return (function() or b"").decode("utf-8", "replace")
    return None


def describe_libraries(paths, request, mode):
    """Returns a dict for each path that is a BLAS: path, spellings, version, threads."""
    rows = []
    for path in paths:
        try:
            library = ctypes.CDLL(path, mode=mode)
        except OSError:
            continue
        spellings = spellings_of(library, path, request["spellings"])
        if spellings:
            rows.append({"path": path, "spellings": spellings,
                         "version": version_text(library, request["versions"]),
                         "threads": number_of_threads(library, request["threads"])})
    return rows


def multiply(package):
    """Makes the package compute a product by BLAS."""
    import numpy
    ones = numpy.ones((512, 512))
    if package == "numpy":
        ones.dot(ones)
    elif package == "scipy":
        importlib.import_module("scipy.linalg.blas").dgemm(1.0, ones, ones)
    else:
        importlib.import_module("sklearn.metrics").pairwise_distances_argmin(ones, ones)


def try_package(name):
    """Returns a dict about a package that was made to compute, or None when it is not there."""
    row = {"name": name, "version": "", "file": "", "error": None}
    try:
        if importlib.util.find_spec(name) is None:
            return None
        module = importlib.import_module(name)
        row.update(version=str(getattr(module, "__version__", "")),
                   file=str(getattr(module, "__file__", "")))
        multiply(name)
    except Exception as error:  # whatever an installation of others may raise
        row["error"] = "%s: %s" % (type(error).__name__, error)
    return row


def ask_python(request):
    """Answers how the Python packages of this interpreter compute, and with which libraries."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))  # for the audit
    packages = [row for row in map(try_package, request["packages"]) if row is not None]
    files = mapped_files()
    return {"exe": os.readlink("/proc/self/exe"), "version": sys.version.split()[0],
            "packages": packages, "files": files,
            "blas": describe_libraries([path for path in files if ".so" in path], request,
                                       os.RTLD_NOLOAD | os.RTLD_LAZY)}


def ask_libraries(request):
    """Answers what the libraries at some paths are."""
    return {"blas": describe_libraries(request["paths"], request, os.RTLD_LAZY)}


# CUDA: the order of gpu_backends/cuda/loader.c, but for what the program itself has mapped by then

def below(variable, folder, name):
    """Returns the place below the folder that a variable names, as a list of at most one."""
    top = os.environ.get(variable, "")
    return [(variable, "%s/%s/%s" % (top, folder, name))] if top.startswith("/") else []


def places_in(folders, label, name):
    """Returns the places of a colon-separated list of folders."""
    return [(label, "%s/%s" % (folder, name)) for folder in folders.split(":") if folder]


def places(name, request):
    """Returns the places to look for a CUDA library: (label, what dlopen is given)."""
    if request["cuda_path"] != "auto":
        return places_in(request["cuda_path"], "GPUSHIM_CUDA_PATH", name)
    wheels = []
    if "-packages/" in request["module"]:
        packages = request["module"].partition("-packages/")[0] + "-packages"
        wheels = [("wheels", "%s/%s/%s" % (packages, folder, name))
                  for folder in request["wheel_folders"]]
    return (wheels + below("CONDA_PREFIX", "lib", name) + [("system", name)]
            + below("CUDA_HOME", "lib64", name)
            + [("/usr/local/cuda", "/usr/local/cuda/lib64/" + name)])


def driver_places(request):
    """Returns the places to look for the driver library."""
    name = "libcuda.so.1"
    own = request["cuda_path"] != "auto"
    return (places(name, request) if own else []) + [("system", name)]


def open_first(found, candidates):
    """Opens the first of the candidates that can be; notes in the dict found how that went."""
    for label, path in candidates:
        found["searched"].append(path)
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            absent = path + ": cannot open shared object file: No such file or directory"
            if str(error) != absent:
                found["errors"].append(str(error))
            continue
        found.update(place=label, path=path)
        return library
    return None


def real_path_of(function, otherwise):
    """Returns the real path of the library that a function lies in."""
    return (owner(function) if function is not None else None) or otherwise


def find_library(row, request):
    """Returns a dict about a CUDA library: the newest that can be used, as the loader decides."""
    found = {"names": row["names"], "path": None, "place": None, "missing": [], "searched": [],
             "errors": []}
    for name in row["names"]:
        library = open_first(found, places(name, request))
        if library is None:
            continue
        missing = [wanted for wanted in row["symbols"] if symbol(library, wanted) is None]
        found.update(name=name, missing=missing,
                     path=real_path_of(symbol(library, row["symbols"][0]), found["path"]))
        if not missing:
            break
    return found


def bytes_from(driver, name, size, device):
    """Returns the bytes that a function of the driver fills in, or b"" when it is not there."""
    function, buffer = symbol(driver, name), ctypes.create_string_buffer(size)
    arguments = (buffer, size, device) if name == "cuDeviceGetName" else (buffer, device)
    return buffer.raw if function is not None and function(*arguments) == 0 else b""


def describe_device(driver, ordinal):
    """Returns a dict about a device; makes no context."""
    device, mode, memory = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_size_t(0)
    status = driver.cuDeviceGet(ctypes.byref(device), ordinal)
    total = symbol(driver, "cuDeviceTotalMem_v2")
    if total is not None:
        total(ctypes.byref(memory), device)
    driver.cuDeviceGetAttribute(ctypes.byref(mode), COMPUTE_MODE, device)
    return {"status": status, "bytes": memory.value, "compute_mode": mode.value,
            "name": bytes_from(driver, "cuDeviceGetName", 256, device).partition(b"\0")[0]
                    .decode("utf-8", "replace"),
            "uuid": (bytes_from(driver, "cuDeviceGetUuid_v2", 16, device)
                     or bytes_from(driver, "cuDeviceGetUuid", 16, device)).hex()}


def start_driver(driver, found):
    """Starts the driver in this process and notes version and devices."""
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    found["init"] = driver.cuInit(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    found["version"] = version.value
    if found["init"] == 0:
        found["count_status"] = driver.cuDeviceGetCount(ctypes.byref(count))
        found["devices"] = [describe_device(driver, i) for i in range(count.value)]


def ask_cuda(request):
    """Answers which driver, devices and CUDA libraries a program started like this one finds."""
    found = {"path": None, "place": None, "missing": [], "searched": [], "errors": [],
             "init": None, "version": 0, "count_status": 0, "devices": []}
    driver = open_first(found, driver_places(request))
    if driver is not None:
        wanted = ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
                  "cuDeviceGetAttribute", *NOT_IN_FIRST_DRIVERS)
        found["missing"] = [name for name in wanted if symbol(driver, name) is None]
        found["path"] = real_path_of(symbol(driver, "cuInit"), found["path"])
        if not found["missing"]:
            start_driver(driver, found)
    return {"driver": found,
            "libraries": [find_library(row, request) for row in request["libraries"]]}


def main():
    """Reads the question from stdin and writes the answer to the file it names."""
    request = json.load(sys.stdin)
    answer = {"python": ask_python, "libraries": ask_libraries,
              "cuda": ask_cuda}[request["task"]](request)
    with open(request["answer"] + ".part", "w", encoding="utf-8") as file:
        json.dump(answer, file)
    os.rename(request["answer"] + ".part", request["answer"])


if __name__ == "__main__":
    main()
