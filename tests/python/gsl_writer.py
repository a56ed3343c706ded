# SPDX-License-Identifier: Apache-2.0
"""Writes audit files with known numbers, as policy/audit_file.c would.

The fields come from policy/record_fields.def; the header is the Python description that
test_cli_format.py checks against the C compiler.
"""
import os
import re
import struct
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tools"))

from gpushim_cli import gsl_header  # noqa: E402

# C type -> (struct code, size, alignment), as the C compiler lays them out on x86-64.
CTYPES = {
    "uint64_t": ("Q", 8, 8), "int64_t": ("q", 8, 8), "double": ("d", 8, 8), "float": ("f", 4, 4),
    "uint32_t": ("I", 4, 4), "int32_t": ("i", 4, 4), "uint16_t": ("H", 2, 2),
    "int16_t": ("h", 2, 2), "uint8_t": ("B", 1, 1), "int8_t": ("b", 1, 1), "char8": ("8s", 8, 1),
}
HEADER_BYTES = 4096
CHUNK_BYTES = 1 << 20
FLAGS = {name: bit for bit, name in gsl_header.FLAGS}
PARTIAL = {name: bit for bit, name, _ in gsl_header.PARTIAL}
GPU, CPU = 1, 0


def def_fields(macro):
    """Returns the [(ctype, name)] of the GS_FIELD or GS_COUNTER_FIELD rows."""
    with open(os.path.join(TOP, "policy", "record_fields.def"), encoding="utf-8") as file:
        return re.findall(rf"^{macro}\((\w+),\s*(\w+),", file.read(), re.MULTILINE)


def laid_out(fields):
    """Returns ([(ctype, name, offset, size)], bytes of a row) of fields [(ctype, name)]."""
    rows, end, widest = [], 0, 1
    for ctype, name in fields:
        _, size, alignment = CTYPES[ctype]
        offset = -(-end // alignment) * alignment
        rows.append((ctype, name, offset, size))
        end, widest = offset + size, max(widest, alignment)
    return rows, -(-end // widest) * widest


def pack_row(rows, row_bytes, values):
    """Returns one row as a bytearray; fields without a value are 0."""
    data = bytearray(row_bytes)
    for ctype, name, offset, _ in rows:
        empty = b"" if ctype == "char8" else 0
        struct.pack_into("<" + CTYPES[ctype][0], data, offset, values.get(name, empty))
    unknown = set(values) - {row[1] for row in rows}
    assert not unknown, f"no such field: {unknown}"
    return data


def name_table(names, width):
    """Returns the bytes of a table of names."""
    return b"".join(name.encode().ljust(width, b"\0") for name in names)


class GslWriter:
    """One audit file in the making.

    extra_fields, extra_counter_fields: [(ctype, name)] that a later library might add at the end.
    Everything else that is named sets a header field.
    """

    def __init__(self, routines=("dgemm", "dsyrk"), entries=("dgemm_",), modules=(),
                 extra_fields=(), extra_counter_fields=(), **header):
        self.routines, self.entries = list(routines), list(entries)
        self.modules = list(modules) + [""] * 2
        self.fields, self.record_bytes = laid_out(def_fields("GS_FIELD") + list(extra_fields))
        self.counter_fields, self.counter_bytes = laid_out(
            def_fields("GS_COUNTER_FIELD") + list(extra_counter_fields))
        self.counter_rows, self.record_rows = [], []
        self.header = {
            "magic": gsl_header.MAGIC, "schema": gsl_header.SCHEMA, "header_bytes": HEADER_BYTES,
            "flags": FLAGS["closed"], "realtime_ns": 1_800_000_000_000_000_000,
            "monotonic_ns": 5_000_000_000, "end_monotonic_ns": 7_000_000_000, "pid": 100,
            "ppid": 1, "version": "0.1.0", "mode_name": "auto", "run_id": "test-run",
            "host": "testhost", "program": "/usr/bin/app.py"}
        self.header.update(header)

    def counter(self, routine, reason, calls, **values):
        """Adds a counter row; routine by name."""
        self.counter_rows.append(pack_row(
            self.counter_fields, self.counter_bytes,
            dict(values, routine=self.routines.index(routine), reason=reason, calls=calls)))
        return self

    def record(self, routine, committed=True, count=1, **values):
        """Adds count equal records; routine by name, caller and provider as module indices."""
        values = dict(values, routine=self.routines.index(routine))
        row = pack_row(self.fields, self.record_bytes, values)
        places = {name: offset for _, name, offset, _ in self.fields}
        for _ in range(count):
            sequence = len(self.record_rows) + 1
            struct.pack_into("<I", row, places["sequence"], sequence)
            struct.pack_into("<I", row, places["commit"], sequence if committed else 0)
            self.record_rows.append(bytes(row))
        return self

    def _chunks(self):
        """Returns the list of full-size chunks."""
        per_chunk = CHUNK_BYTES // self.record_bytes
        return [b"".join(self.record_rows[at:at + per_chunk]).ljust(CHUNK_BYTES, b"\0")
                for at in range(0, len(self.record_rows), per_chunk)]

    def content(self):
        """Returns the bytes of the file."""
        parts = [
            ("field_table_offset", b"".join(
                gsl_header.FIELD_ROW.pack(name.encode(), ctype.encode(), offset, size)
                for ctype, name, offset, size in self.fields + self.counter_fields)),
            ("routine_offset", name_table(self.routines, gsl_header.ROUTINE_BYTES)),
            ("entry_offset", name_table(self.entries, gsl_header.ENTRY_BYTES)),
            ("module_offset", name_table(self.modules, gsl_header.MODULE_BYTES)),
            ("counter_offset", b"".join(self.counter_rows) + bytes(3 * self.counter_bytes)),
        ]
        header = {
            "record_bytes": self.record_bytes, "counter_bytes": self.counter_bytes,
            "field_count": len(self.fields), "counter_field_count": len(self.counter_fields),
            "routine_count": len(self.routines), "entry_count": len(self.entries),
            "module_count": len(self.modules), "counter_count": len(self.counter_rows) + 3,
            "chunk_bytes": CHUNK_BYTES, "record_count": len(self.record_rows)}
        body, at = b"", HEADER_BYTES
        for name, part in parts:
            header[name] = at + len(body)
            body += part.ljust(-(-len(part) // 64) * 64, b"\0")
        chunks = self._chunks()
        header["chunk_offset"], header["chunk_count"] = at + len(body), len(chunks)
        header.update(self.header)
        values = [header.get(name, b"" if code.endswith("s") else 0)
                  for name, code in gsl_header.HEADER_FIELDS]
        packed = gsl_header.HEADER.pack(*(value.encode() if isinstance(value, str) else value
                                          for value in values))
        return packed.ljust(HEADER_BYTES, b"\0") + body + b"".join(chunks)

    def write(self, folder):
        """Writes <host>.<pid>.1.gsl into folder, made when needed; returns the path."""
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{self.header['host']}.{self.header['pid']}.1.gsl")
        with open(path, "wb") as file:
            file.write(self.content())
        return path
