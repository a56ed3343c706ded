# SPDX-License-Identifier: Apache-2.0
"""struct gs_file_header and the enums of policy/record_format.h, the only copy of them in Python.

tests/python/test_cli_format.py compares every offset with what the C compiler says.
"""
import struct
from collections import namedtuple

MAGIC = b"GPUSHIM1"
SCHEMA = 1
ROUTINE_BYTES = 24
ENTRY_BYTES = 48
MODULE_BYTES = 256
NO_ROW = 65535  # routine and reason of the counter row that takes what found no row of its own

# Name and struct code, in file order; all little-endian, no padding.
HEADER_FIELDS = (
    ("magic", "8s"), ("schema", "I"), ("header_bytes", "I"),
    ("record_bytes", "I"), ("counter_bytes", "I"),
    ("field_count", "I"), ("counter_field_count", "I"),
    ("routine_count", "I"), ("entry_count", "I"), ("module_count", "I"), ("counter_count", "I"),
    ("field_table_offset", "Q"), ("routine_offset", "Q"), ("entry_offset", "Q"),
    ("module_offset", "Q"), ("counter_offset", "Q"), ("chunk_offset", "Q"),
    ("chunk_bytes", "I"), ("chunk_count", "I"),
    ("record_count", "Q"), ("record_floor_ns", "Q"), ("records_dropped", "Q"),
    ("partial", "I"), ("flags", "I"),
    ("realtime_ns", "Q"), ("monotonic_ns", "Q"), ("overhead_ns", "Q"), ("startup_ns", "Q"),
    ("end_monotonic_ns", "Q"),
    ("pid", "I"), ("ppid", "I"), ("mode", "I"), ("device_state_reason", "I"),
    ("version", "16s"), ("mode_name", "16s"), ("run_id", "128s"), ("host", "64s"),
    ("program", "256s"), ("device_name", "128s"), ("cuda_libraries", "1024s"),
)
HEADER = struct.Struct("<" + "".join(code for _, code in HEADER_FIELDS))
Header = namedtuple("Header", [name for name, _ in HEADER_FIELDS])

# struct gs_field_row: name, ctype, offset, size.
FIELD_ROW = struct.Struct("<24s16sII")

# Bit, name, and what the reader is told.
PARTIAL = (
    (1, "limit", "the file reached its size limit: later calls are only counted"),
    (2, "disk", "the disk was full: later calls are only counted"),
    (4, "floor", "many calls: those under {floor} are only counted"),
    (8, "counters", "counter rows ran out: the totals are right, their split is not"),
    (16, "modules", "module rows ran out: some callers are not named"),
)
FLAGS = ((1, "not_calibrated"), (2, "bad_setting"), (4, "closed"), (8, "forked"))
CLOSED = 4


def text(raw):
    """Returns the text of a NUL-terminated field."""
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def unpack(data):
    """Returns the Header at the start of data, with the texts decoded; struct.error if cut."""
    values = HEADER.unpack_from(data)
    return Header._make(text(value) if isinstance(value, bytes) else value for value in values)


def partial_names(header):
    """Returns the names of the partial bits that are set."""
    return [name for bit, name, _ in PARTIAL if header.partial & bit]


def flag_names(header):
    """Returns the names of the flag bits that are set."""
    return [name for bit, name in FLAGS if header.flags & bit]
