# SPDX-License-Identifier: Apache-2.0
"""What gpushim doctor needs to know of an ELF file: read here, because pyelftools may be missing.

Only the header of a 32-bit file is read: it cannot hold our library anyway.
"""
import mmap
import os
import struct

MACHINES = {3: "i386", 21: "ppc64", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv64"}
UNAME_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243}
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 14, 15, 29
SHT_SYMTAB, SHT_DYNSYM = 2, 11
ENTRIES_MAX = 100000


class NotElf(Exception):
    """The file is not an ELF file, or is a damaged one; says which."""


class Elf:
    """An ELF file.

    bits, machine         32 or 64, and the number of the machine
    interpreter           path of the loader that starts the program, or None (static, or a library)
    needed                names of the libraries it is linked to
    soname, rpath, runpath    texts, or None; rpath and runpath are lists of folders
    defined, undefined    those of the wanted names that it defines, and that it takes from others
    """

    def __init__(self, path, wanted=()):
        self.path = path
        self.interpreter = self.soname = None
        self.needed, self.rpath, self.runpath = [], [], []
        self.defined, self.undefined = set(), set()
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < 52:
                raise NotElf("not an ELF file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                self._data = data
                try:
                    self._read(wanted)
                except (struct.error, IndexError, ValueError, OverflowError) as error:
                    raise NotElf("a damaged ELF file") from error
                finally:
                    self._data = None

    def _read(self, wanted):
        """Fills in everything."""
        data = self._data
        if data[:4] != b"\x7fELF" or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise NotElf("not an ELF file")
        self.bits, self._order = 32 * data[4], "<" if data[5] == 1 else ">"
        self.machine, = struct.unpack_from(self._order + "H", data, 18)
        if self.bits == 32:
            return
        (segments_at, self._sections_at, segment_bytes, segment_count, self._section_bytes,
         self._section_count) = struct.unpack_from(self._order + "QQ6xHHHH", data, 32)
        self._segments = [struct.unpack_from(self._order + "I4xQQ8xQ", data,
                                             segments_at + i * segment_bytes)
                          for i in range(segment_count)]
        for kind, offset, _, size in self._segments:
            if kind == PT_INTERP:
                self.interpreter = self._text(offset)
            elif kind == PT_DYNAMIC:
                self._read_dynamic(offset, size)
        if wanted:
            self._read_symbols(wanted)

    def _text(self, offset):
        """Returns the NUL-terminated text at offset."""
        end = self._data.find(b"\0", offset)
        if offset >= len(self._data) or end < 0:
            raise IndexError(offset)
        return os.fsdecode(self._data[offset:end])

    def _offset(self, address):
        """Returns the place in the file of an address in memory."""
        for kind, offset, start, size in self._segments:
            if kind == PT_LOAD and start <= address < start + size:
                return offset + address - start
        raise IndexError(address)

    def _read_dynamic(self, offset, size):
        """Reads the dynamic section."""
        entries = []
        for at in range(offset, offset + size, 16):
            tag, value = struct.unpack_from(self._order + "QQ", self._data, at)
            if tag == 0 or len(entries) > ENTRIES_MAX:
                break
            entries.append((tag, value))
        tables = [self._offset(value) for tag, value in entries if tag == DT_STRTAB]
        if not tables:
            return
        texts = [(tag, self._text(tables[0] + value)) for tag, value in entries
                 if tag in (DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH)]
        self.needed = [text for tag, text in texts if tag == DT_NEEDED]
        self.soname = next((text for tag, text in texts if tag == DT_SONAME), None)
        self.rpath = self._folders(DT_RPATH, texts)
        self.runpath = self._folders(DT_RUNPATH, texts)

    def _folders(self, wanted, texts):
        """Returns the folders of a DT_RPATH or DT_RUNPATH, with $ORIGIN written out."""
        origin = os.path.dirname(os.path.realpath(self.path))
        return [folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
                for tag, text in texts if tag == wanted for folder in text.split(":") if folder]

    def _read_symbols(self, wanted):
        """Sorts the wanted names that occur into defined and undefined.

        A name that is only in the symbol table of the linker (SHT_SYMTAB) counts as defined: it is
        a BLAS linked statically.
        """
        sections = [struct.unpack_from(self._order + "4xI16xQQI", self._data,
                                       self._sections_at + i * self._section_bytes)
                    for i in range(self._section_count)]
        wanted = {name.encode(): name for name in wanted}
        for kind, offset, size, link in sections:
            if kind in (SHT_SYMTAB, SHT_DYNSYM):
                _, names_at, names_size, _ = sections[link]
                names = self._data[names_at:names_at + names_size]
                self._sort_symbols(self._data[offset:offset + size], names, wanted)
        self.undefined -= self.defined

    def _sort_symbols(self, table, names, wanted):
        """Goes through one symbol table."""
        layout = struct.Struct(self._order + "I2xH16x")
        for name_at, section in layout.iter_unpack(table[:len(table) // 24 * 24]):
            name = wanted.get(names[name_at:names.find(b"\0", name_at)])
            if name is not None:
                (self.defined if section != 0 else self.undefined).add(name)


def machine_name(elf):
    """Returns the machine that an Elf is for, as a text."""
    return MACHINES.get(elf.machine, f"machine {elf.machine}")
