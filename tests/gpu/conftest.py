# SPDX-License-Identifier: Apache-2.0
"""Makes the helpers of tests/python importable."""
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "python"))
