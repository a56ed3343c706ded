# SPDX-License-Identifier: Apache-2.0
"""The one exception that ends a verb with a message."""


class CliError(Exception):
    """A failure to be shown to the user as one line, without a traceback."""
