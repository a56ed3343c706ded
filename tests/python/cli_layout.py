# SPDX-License-Identifier: Apache-2.0
"""A copy of the command line tool in a folder of its own, with tables.json and a fake library."""
import json
import os
import shutil
import subprocess
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROUTINES = [
    {"name": "dgemm", "operation": "gemm", "gpu": True,
     "meaning": "C = alpha op(A) op(B) + beta C"},
    {"name": "dsyrk", "operation": "syrk", "gpu": False, "meaning": "C = alpha A A' + beta C"},
]
ENTRIES = [
    {"name": "dgemm_", "routine": "dgemm", "spelling": "F77_LP64"},
    {"name": "cblas_dgemm", "routine": "dgemm", "spelling": "CBLAS_LP64"},
    {"name": "scipy_cblas_dgemm64_", "routine": "dgemm", "spelling": "CBLAS_SCIPY_ILP64"},
    {"name": "dsyrk_", "routine": "dsyrk", "spelling": "F77_LP64"},
]


def preprocess_tables():
    """Returns the content of tables.json as the build makes it; skips without a C compiler."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: tables.json cannot be made")
    done = subprocess.run(["cc", "-E", "-P", "-x", "c", "-I.", "-Ishim", '-DGS_VERSION="0.1.0"',
                           "tools/tables.json.in"],
                          cwd=TOP, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return json.loads(done.stdout)


def empty_library(path):
    """Makes a shared library without any symbol."""
    subprocess.run(["cc", "-shared", "-nostdlib", "-x", "c", "-o", str(path), "/dev/null"],
                   check=True)


class Layout:
    """tools/ and build/ below a temporary folder, and an environment without settings."""

    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build"
        self.build.mkdir()
        ignore = shutil.ignore_patterns("__pycache__")
        (folder / "tools").mkdir()
        self.tool = shutil.copy(os.path.join(TOP, "tools", "gpushim"), folder / "tools")
        shutil.copytree(os.path.join(TOP, "tools", "gpushim_cli"), folder / "tools/gpushim_cli",
                        ignore=ignore)
        self.write_tables(dict(preprocess_tables(), routines=ROUTINES + [None],
                               entries=ENTRIES + [None]))
        self.library = self.build / "libgpushim.so"
        empty_library(self.library)
        self.home = folder / "home"
        self.home.mkdir()
        self.runs = self.home / ".local/state/gpushim/runs"
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("GPUSHIM_", "XDG_", "LD_PRELOAD", "LC_", "LANG"))
            and name not in ("NO_COLOR", "FORCE_COLOR")}
        self.environment.update(HOME=str(self.home), LANG="C.UTF-8", TZ="UTC")

    def write_tables(self, content):
        """Writes tables.json."""
        (self.build / "tables.json").write_text(json.dumps(content), encoding="utf-8")

    def gpushim(self, *arguments, **options):
        """Runs the tool; returns the CompletedProcess, with stdout and stderr as text.

        set: environment variables to add.
        """
        environment = dict(self.environment, **options.pop("set", {}))
        command = [sys.executable, str(options.pop("tool", self.tool)), *map(str, arguments)]
        options.setdefault("encoding", "utf-8")
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False, **options)

    def ok(self, *arguments, **options):
        """Runs the tool, which must succeed silently on stderr; returns its stdout."""
        done = self.gpushim(*arguments, **options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def json(self, *arguments, **options):
        """Runs the tool with --json; returns the document."""
        return json.loads(self.ok(*arguments, "--json", **options))


@pytest.fixture(name="layout")
def make_layout(tmp_path):
    """A Layout in a fresh folder; test files import this name."""
    return Layout(tmp_path)
