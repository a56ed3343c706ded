#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the tree: which folder may include which, and what the library shows the world.

    tools/check_layers.py [build/libgpushim.so]
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Includes go one way. policy/reasons.h is the common vocabulary of all three.
ALLOWED = {
    "shim": ("shim/", "policy/", "gpu_backends/backend.h"),
    "policy": ("policy/", "shim/call.h", "shim/paste.h"),
    "gpu_backends": ("gpu_backends/", "shim/call.h", "shim/paste.h", "policy/reasons.h"),
}
NEEDED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def included(path):
    """(line number, project path) of each quoted include of a file."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match:
            continue
        for base in (ROOT, path.parent, ROOT / "shim"):
            target = base / match.group(1)
            if target.exists():
                yield number, str(target.resolve().relative_to(ROOT))
                break


def layer_faults():
    """Includes against the direction of ALLOWED."""
    for folder, allowed in ALLOWED.items():
        for path in sorted((ROOT / folder).rglob("*.[chi]*")):
            for number, target in included(path):
                if not target.startswith(allowed):
                    yield f"{path.relative_to(ROOT)}:{number}: {folder} may not include {target}"


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def library_faults(library):
    """NEEDED beyond libc and libm; exports beyond the table; fortified or too new libc names."""
    for needed in re.findall(r"\(NEEDED\).*\[(.+?)\]", output("readelf", "-dW", library)):
        if needed not in NEEDED:
            yield f"{library}: NEEDED {needed}"
    exported = {line.split()[-1] for line in
                output("nm", "-D", "--defined-only", library).splitlines()}
    table = set(re.findall(r"^(\w+);", (Path(library).parent / "exports.map").read_text(), re.M))
    for name in sorted(exported ^ table):
        yield f"{library}: {name} is {'exported' if name in exported else 'not exported'}"
    for name in re.findall(r"\b(\w+_chk)@", output("nm", "-D", "--undefined-only", library)):
        yield f"{library}: fortified name {name}"


def main():
    faults = list(layer_faults())
    for library in sys.argv[1:]:
        faults += library_faults(library)
    print("\n".join(faults) if faults else "layers and exports as designed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
