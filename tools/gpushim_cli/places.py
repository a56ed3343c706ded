# SPDX-License-Identifier: Apache-2.0
"""Where the library and its tables are."""
import os

from .errors import CliError

LIBRARY = "libgpushim.so"
TABLES = "tables.json"
LIBDIR_VARIABLE = "GPUSHIM_LIBDIR"  # of this tool alone, not a setting of the library


def library_folders():
    """Returns the folders that may hold the library and tables.json, best first."""
    given = os.environ.get(LIBDIR_VARIABLE)
    if given:
        return [os.path.abspath(given)]
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    return [os.path.join(top, *parts) for parts in (("build",), ("lib",), ("lib", "gpushim"))]


def find_file(name):
    """Returns the absolute path of the library's file called name; CliError when there is none."""
    folders = library_folders()
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise CliError(f"{name} is not in {', '.join(folders)}: run make, or set {LIBDIR_VARIABLE}")


def xdg_folder(variable, below_home):
    """Returns the folder that an XDG variable names, or its default below the home folder.

    As in the library, a value that is not an absolute path counts as unset. None when neither
    the variable nor HOME says anything.
    """
    folder = os.environ.get(variable, "")
    if folder.startswith("/"):
        return folder
    home = os.environ.get("HOME", "")
    return os.path.join(home, below_home) if home.startswith("/") else None
