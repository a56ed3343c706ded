# SPDX-License-Identifier: Apache-2.0
"""The Python description of the audit file against the C compiler's, and tables.json.in."""
import re
import shutil
import subprocess

import pytest
from cli_layout import TOP, preprocess_tables
from gsl_writer import HEADER_BYTES, def_fields, gsl_header, laid_out

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def c_facts(tmp_path, lines):
    """Compiles and runs a program of these statements; returns {name: number} of its output."""
    source = tmp_path / "facts.c"
    source.write_text('#include <stddef.h>\n#include <stdio.h>\n#include "policy/record_format.h"\n'
                      "int main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    program = tmp_path / "facts"
    subprocess.run(["cc", "-std=gnu11", "-I", TOP, "-o", str(program), str(source)], check=True)
    output = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE,
                            encoding="utf-8").stdout
    return {name: int(number) for name, number in re.findall(r"(\S+) (\d+)", output)}


def offset_lines(struct_name, fields):
    """Returns statements that print the offset of each field and the size of the struct."""
    return [f'printf("{name} %zu\\n", offsetof(struct {struct_name}, {name}));'
            for name in fields] + [f'printf("size %zu\\n", sizeof(struct {struct_name}));']


def test_header_is_where_c_puts_it(tmp_path):
    names = [name for name, _ in gsl_header.HEADER_FIELDS]
    expected, at = {}, 0
    for name, code in gsl_header.HEADER_FIELDS:
        expected[name] = at
        at += gsl_header.struct.calcsize("<" + code)
    expected["size"] = at
    assert c_facts(tmp_path, offset_lines("gs_file_header", names)) == expected


def test_header_has_every_field():
    """A field added in C must be added in Python."""
    with open(f"{TOP}/policy/record_format.h", encoding="utf-8") as file:
        body = re.search(r"struct gs_file_header \{(.*?)\n\};", file.read(), re.DOTALL).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    declared = re.findall(r"(\w+)(?:\[\d+\])?\s*[,;]", body)
    assert declared == [name for name, _ in gsl_header.HEADER_FIELDS]


@pytest.mark.parametrize("struct_name, macro",
                         [("gs_record", "GS_FIELD"), ("gs_counter_row", "GS_COUNTER_FIELD")])
def test_rows_of_the_test_writer_are_those_of_c(tmp_path, struct_name, macro):
    rows, size = laid_out(def_fields(macro))
    expected = {name: offset for _, name, offset, _ in rows}
    facts = c_facts(tmp_path, offset_lines(struct_name, expected))
    assert facts == dict(expected, size=size)


def test_constants_are_those_of_c(tmp_path):
    expected = {
        "GS_FILE_SCHEMA": gsl_header.SCHEMA, "GS_FILE_HEADER_BYTES": HEADER_BYTES,
        "GS_FILE_ROUTINE_BYTES": gsl_header.ROUTINE_BYTES,
        "GS_FILE_ENTRY_BYTES": gsl_header.ENTRY_BYTES,
        "GS_FILE_MODULE_BYTES": gsl_header.MODULE_BYTES}
    for bit, name, _ in gsl_header.PARTIAL:
        expected[f"GS_PARTIAL_{name.upper()}"] = bit
    for bit, name in gsl_header.FLAGS:
        expected[f"GS_FLAG_{name.upper()}"] = bit
    lines = [f'printf("{name} %d\\n", (int)({name}));' for name in expected]
    lines.append('printf("field_row %zu\\n", sizeof(struct gs_field_row));')
    lines.append('printf("magic %d\\n", __builtin_memcmp(GS_FILE_MAGIC, "GPUSHIM1", 9) == 0);')
    assert gsl_header.MAGIC == b"GPUSHIM1"
    assert c_facts(tmp_path, lines) == dict(
        expected, field_row=gsl_header.FIELD_ROW.size, magic=1)


def test_every_enum_bit_is_known():
    with open(f"{TOP}/policy/record_format.h", encoding="utf-8") as file:
        header = file.read()
    assert len(re.findall(r"^\s+GS_PARTIAL_\w+ =", header, re.M)) == len(gsl_header.PARTIAL)
    assert len(re.findall(r"^\s+GS_FLAG_\w+ =", header, re.M)) == len(gsl_header.FLAGS)


def test_tables_hold_every_row():
    tables = preprocess_tables()
    for part, source, macro in (("settings", "config.def", "GS_SETTING"),
                                ("reasons", "reasons.def", "GS_REASON"),
                                ("record_fields", "record_fields.def", "GS_FIELD"),
                                ("counter_fields", "record_fields.def", "GS_COUNTER_FIELD")):
        with open(f"{TOP}/policy/{source}", encoding="utf-8") as file:
            count = len(re.findall(rf"^{macro}\(", file.read(), re.MULTILINE))
        assert tables[part][-1] is None
        assert len(tables[part]) == count + 1 > 1
    numbers = [row["number"] for row in tables["reasons"][:-1]]
    assert len(set(numbers)) == len(numbers)
