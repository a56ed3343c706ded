# SPDX-License-Identifier: Apache-2.0
"""Reads one audit file (policy/record_format.h) by the field tables the file itself carries.

The file may still be written to, cut short, or damaged; what cannot be read is a FormatError,
never a wrong number.
"""
import struct

from . import gsl_header

CODES = {
    "uint8_t": "B", "int8_t": "b", "uint16_t": "H", "int16_t": "h", "uint32_t": "I",
    "int32_t": "i", "uint64_t": "Q", "int64_t": "q", "float": "f", "double": "d",
}


class FormatError(Exception):
    """The file is not one that this reader understands; says why."""


def read_header(path):
    """Returns the Header of the file at path (gsl_header.py); FormatError, OSError."""
    with open(path, "rb") as file:
        return check_header(file.read(gsl_header.HEADER.size))


def check_header(data):
    """Returns the Header at the start of data, once it is known to be one of ours."""
    if not data.startswith(gsl_header.MAGIC):
        # The first byte of the magic is written last.
        raise FormatError("no header yet" if data[:1] in (b"", b"\0") else "not an audit file")
    if len(data) < gsl_header.HEADER.size:
        raise FormatError("cut short inside its header")
    header = gsl_header.unpack(data)
    if header.schema != gsl_header.SCHEMA:
        raise FormatError(f"schema {header.schema}, written by libgpushim "
                          f"{header.version or 'of another version'}; this gpushim reads schema "
                          f"{gsl_header.SCHEMA}")
    return header


def row_layout(fields, names, row_bytes):
    """Returns a struct.Struct that unpacks the named fields of one row, in the order of names.

    fields: name -> (ctype, offset, size) of the file. names must be in file order, which never
    changes (record_fields.def).
    """
    code, end = "<", 0
    for name in names:
        if name not in fields:
            raise FormatError(f"field {name} is missing")
        ctype, offset, size = fields[name]
        letter = f"{size}s" if ctype.startswith("char") else CODES.get(ctype, "")
        if not letter or struct.calcsize("<" + letter) != size:
            raise FormatError(f"field {name} has the unknown type {ctype} of {size} bytes")
        if offset < end or offset + size > row_bytes:
            raise FormatError(f"field {name} is out of place")
        code += f"{offset - end}x{letter}"
        end = offset + size
    return struct.Struct(f"{code}{row_bytes - end}x")


class AuditFile:
    """The audit file of one process.

    header           its Header
    routines         routine names, indexed as in records and counters
    modules          paths of callers and CPU libraries, indexed as in records; "" = not in use
    truncated        whether the end of the file is missing
    """

    def __init__(self, path):
        self.path = path
        # Two readings, so that a record being written is never taken for a whole one: its commit
        # word, stored last, must be in the earlier reading; its fields come from the later one.
        self._earlier = read_bytes(path)
        self.header = check_header(self._earlier)
        self._data = self._earlier if self.closed else read_bytes(path)
        header = self.header
        self._counter_rows = self._table(header.counter_offset, header.counter_count,
                                         header.counter_bytes)
        self._read_field_tables()
        self.routines = self._names(header.routine_offset, header.routine_count,
                                    gsl_header.ROUTINE_BYTES)
        self.modules = self._names(header.module_offset, header.module_count,
                                   gsl_header.MODULE_BYTES)
        self.truncated = (len(self._earlier) <
                          header.chunk_offset + header.chunk_count * header.chunk_bytes)

    @property
    def closed(self):
        """Whether the process ended in order."""
        return bool(self.header.flags & gsl_header.CLOSED)

    def _table(self, offset, count, row_bytes):
        """Returns the bytes of a table of count rows, as a memoryview."""
        end = offset + count * row_bytes
        if row_bytes == 0 or end > len(self._data):
            raise FormatError("cut short inside its tables")
        return memoryview(self._data)[offset:end]

    def _names(self, offset, count, width):
        """Returns the texts of a table of names."""
        rows = bytes(self._table(offset, count, width))
        return [gsl_header.text(rows[at:at + width]) for at in range(0, len(rows), width)]

    def _read_field_tables(self):
        """Learns where the fields of a record and of a counter row are."""
        header = self.header
        rows = self._table(header.field_table_offset,
                           header.field_count + header.counter_field_count,
                           gsl_header.FIELD_ROW.size)
        fields = [(gsl_header.text(name), (gsl_header.text(ctype), offset, size))
                  for name, ctype, offset, size in gsl_header.FIELD_ROW.iter_unpack(rows)]
        self.record_fields = dict(fields[:header.field_count])
        self.counter_fields = dict(fields[header.field_count:])

    def routine(self, index):
        """Returns the name of the routine with this index."""
        if index == gsl_header.NO_ROW:
            return "(several)"
        return self.routines[index] if index < len(self.routines) else f"routine {index}"

    def module(self, index):
        """Returns the path of the module with this index, or "" when the file has none."""
        return self.modules[index] if index < len(self.modules) else ""

    def check_fields(self, counter_names, record_names):
        """Raises FormatError unless all named fields can be read."""
        row_layout(self.counter_fields, counter_names, self.header.counter_bytes)
        row_layout(self.record_fields, (*record_names, "sequence", "commit"),
                   self.header.record_bytes)

    def counters(self, names):
        """Returns an iterator over all counter rows: tuples of the named fields (file order)."""
        layout = row_layout(self.counter_fields, names, self.header.counter_bytes)
        return layout.iter_unpack(self._counter_rows)

    def records(self, names):
        """Yields a tuple of the named fields (in file order) for each whole record."""
        row_bytes = self.header.record_bytes
        fields = row_layout(self.record_fields, names, row_bytes)
        marks = row_layout(self.record_fields, ("sequence", "commit"), row_bytes)
        for start, end in self._used_parts():
            rows = fields.iter_unpack(memoryview(self._data)[start:end])
            earlier = marks.iter_unpack(memoryview(self._earlier)[start:end])
            for row, (sequence, commit) in zip(rows, earlier):
                if commit == sequence and commit != 0:
                    yield row

    def _used_parts(self):
        """Yields (start, end) of the whole rows of each chunk, without the zeros at its end."""
        header = self.header
        row_bytes = header.record_bytes
        rows_per_chunk = header.chunk_bytes // row_bytes
        if rows_per_chunk == 0:
            return
        size = min(len(self._earlier), len(self._data))
        for chunk in range(header.chunk_count):
            start = header.chunk_offset + chunk * header.chunk_bytes
            if start >= size:
                return
            used = self._earlier[start:min(start + rows_per_chunk * row_bytes, size)].rstrip(b"\0")
            rows = min(-(-len(used) // row_bytes), (size - start) // row_bytes) if used else 0
            yield start, start + rows * row_bytes


def read_bytes(path):
    """Returns the content of the file at path."""
    with open(path, "rb") as file:
        return file.read()
