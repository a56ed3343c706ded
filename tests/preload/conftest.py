# SPDX-License-Identifier: Apache-2.0
"""Makes tests/support.py importable."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
