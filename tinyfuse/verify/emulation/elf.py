"""Reads the compiler's and the linker's files: sizes, and the kernels that a group really calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tinyfuse.errors import InternalFault
from tinyfuse.toolchain.extras import import_package

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE
    from elftools.elf.elffile import ELFFile


def open_elf(file: BinaryIO) -> ELFFile:
    """ELF file in an open file. ToolMissing without pyelftools."""
    opened: ELFFile = import_package("elftools.elf.elffile").ELFFile(file)
    return opened


def linked_sections(map_file: Path) -> Iterator[tuple[str, int, Path]]:
    """Yields (section, bytes, object file) for each input section in the image, from GNU ld's map."""
    text = map_file.read_text(encoding="utf-8")
    memory_map = text.split("Linker script and memory map", 1)[1]
    # A long section name is on a line of its own.
    entry = re.compile(r"^ (\.[\w.$-]+|COMMON)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S.*)$", re.M)
    for section, size, object_file in entry.findall(memory_map):
        if int(size, 16):
            yield section, int(size, 16), Path(object_file)


def symbol_size(elf: Path, name: str) -> int:
    """Size in bytes of a symbol of an ELF file."""
    with elf.open("rb") as file:
        table: Any = open_elf(file).get_section_by_name(".symtab")
        symbols = table.get_symbol_by_name(name) if table is not None else None
        if not symbols or len(symbols) != 1:
            raise InternalFault("the linked firmware", f"{elf.name} has {len(symbols or ())} symbols {name}")
        return int(symbols[0]["st_size"])


#: flag of a section (SHF_WRITE)
_WRITABLE = 1
#: functions of the C library that take heap
_HEAP = {"malloc", "calloc", "realloc", "aligned_alloc", "free"}


def broken_promises(objects: Iterable[Path], module: str) -> Iterator[str]:
    """Sentences about what a module's object files must not have: global names of others, variables, calls for heap."""
    for path in objects:
        with path.open("rb") as file:
            elf = open_elf(file)
            table: Any = elf.get_section_by_name(".symtab")
            for symbol in table.iter_symbols():
                name, place, info = symbol.name, symbol["st_shndx"], symbol["st_info"]
                if place == "SHN_UNDEF" and name in _HEAP:
                    yield f"the module calls {name}, which takes heap"
                if not isinstance(place, int):
                    continue
                if info["bind"] != "STB_LOCAL" and not name.startswith(f"{module}_"):
                    yield f"the module defines the global name {name}, which other files may have"
                writable = elf.get_section(place)["sh_flags"] & _WRITABLE
                if writable and info["type"] == "STT_OBJECT" and name != f"{module}_blob":
                    yield f"the module has a variable, {name}, of {symbol['st_size']} bytes"


def group_symbols(elf: Path, module: str) -> dict[str, list[str]]:
    """Kernels of each function MODULE_group_<n> of a linked image: arm_* and tinyfuse_* functions, sorted.

    A kernel counts if the group, or a MODULE_* or tinyfuse_* function that it calls, calls or inlines it. This is read
    from the DWARF entries of inlined subroutines and call sites, so it is what the compiler did, even for a group that
    was inlined itself. The linked image is read, because pyelftools takes a second to relocate an object file.
    """
    with elf.open("rb") as file:
        entered: dict[str, set[str]] = {}
        for unit in open_elf(file).get_dwarf_info().iter_CUs():
            top = unit.get_top_DIE()
            if Path(die_name(top) or "").name == f"{module}.c":
                _collect(top, (), entered)

    def reachable(function: str, seen: set[str]) -> set[str]:
        for callee in entered.get(function, set()) - seen:
            seen.add(callee)
            reachable(callee, seen)
        return seen

    group = re.compile(re.escape(module) + r"_group_\d+")
    everything = set(entered) | {name for names in entered.values() for name in names}
    return {
        name: sorted(n for n in reachable(name, set()) if n.startswith(("arm_", "tinyfuse_")))
        for name in sorted(filter(group.fullmatch, everything), key=_number)
    }


def _number(group: str) -> int:
    return int(group.rsplit("_", 1)[1])


def _collect(die: DIE, inside: tuple[str, ...], entered: dict[str, set[str]]) -> None:
    """Records, for each function whose body contains `die`, the functions that it enters."""
    for child in die.iter_children():
        scope = inside
        if child.tag == "DW_TAG_subprogram":
            name = die_name(child)
            scope = (name,) if name else ()
            if name:
                entered.setdefault(name, set())
        elif child.tag == "DW_TAG_inlined_subroutine":
            name = die_name(child)
            _enter(name, inside, entered)
            scope = (*inside, name) if name else inside
        elif child.tag in ("DW_TAG_call_site", "DW_TAG_GNU_call_site"):
            _enter(die_name(child), inside, entered)
        _collect(child, scope, entered)


def _enter(name: str | None, inside: tuple[str, ...], entered: dict[str, set[str]]) -> None:
    if name:
        for function in inside:
            entered.setdefault(function, set()).add(name)


_REFERENCES = ("DW_AT_abstract_origin", "DW_AT_call_origin", "DW_AT_specification")


def die_name(die: DIE) -> str | None:
    """Source name of a function, followed from an instance or a call to its declaration."""
    if "DW_AT_name" in die.attributes:
        name: bytes = die.attributes["DW_AT_name"].value
        return name.decode()
    for reference in _REFERENCES:
        if reference in die.attributes:
            return die_name(die.get_DIE_from_attribute(reference))
    return None
