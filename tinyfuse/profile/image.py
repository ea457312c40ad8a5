"""Reads a firmware's image: memories, borders of groups, and every instruction."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyfuse.banks import MOST_BANKS
from tinyfuse.errors import EmulationFailed, ToolMissing
from tinyfuse.plan import Plan
from tinyfuse.profile.code_map import CodeMap, code_map, stage_of_line
from tinyfuse.toolchain.packages import how_to_get
from tinyfuse.toolchain.programs import find_program
from tinyfuse.verify.emulation.elf import open_elf
from tinyfuse.verify.emulation.module import group_border

if TYPE_CHECKING:  # a package of the extra "verify"
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Symbol

#: memories that are counted separately; plugin.c has the same indices
REGIONS = ("flash", "arena", "stack", "other")
FLASH, ARENA, STACK, OTHER = range(4)
#: columns of counts: the regions; for each memory bank, its weights or its part of the arena; the states
BANKS, COLUMNS = OTHER + 1, OTHER + 1 + MOST_BANKS + 1
STATES = COLUMNS - 1

#: number for code between the groups
NONE = -1


@dataclass(frozen=True)
class Instruction:
    """One line of the disassembly. `end` is the address behind it; the callee of bl <arm_nn_x> is "arm_nn_x"."""

    address: int
    end: int
    mnemonic: str
    operands: str
    callee: str | None


@dataclass(frozen=True)
class Part:
    """Code of a group: number of its stage, and the function that the group calls or inlines for it; "" for the group's
    own code."""

    stage: int
    function: str


@dataclass(frozen=True)
class Image:
    """Content of a firmware.

    entry         address of NAME_run or NAME_slide, or of the function that feeds the rows of a step.
    regions       (column, address, bytes).
    borders       address -> the group that runs from there on, or NONE.
    part_at       address of an instruction of that function or of a group -> index in `parts`.
    instructions  instructions by address.
    """

    entry: int
    regions: tuple[tuple[int, int, int], ...]
    borders: dict[int, int]
    part_at: dict[int, int]
    parts: tuple[Part, ...]
    instructions: dict[int, Instruction]


def read_image(
    elf_file: Path,
    module: str,
    source: str,
    arena: Sequence[tuple[int, int]],
    mve: bool,
    banks: Sequence[str] = (),
) -> Image:
    """Image of a firmware that build_module made.

    module  name of the module.
    source  its C.
    arena   column and size of its arena, or of each of its parts.
    mve     whether the core has MVE.
    banks   names of its memory banks.

    ToolMissing without pyelftools or the cross compiler's objdump.
    """
    own = re.compile(rf"{re.escape(module)}_(run|slide|feed_rows|take_row|group_\d+)")
    with elf_file.open("rb") as file:
        elf = open_elf(file)
        table: Any = elf.get_section_by_name(".symtab")  # build_module links with symbols
        symbols = list(table.iter_symbols())
        sections = list(_section_regions(elf, module, banks))
        code = code_map(elf.get_dwarf_info(), own)
    named = {symbol.name: symbol for symbol in symbols}
    guard = named["guard_bytes"]["st_value"]  # bytes before and behind each part of the arena in firmware/verify.c
    stack = named["stack_limit"]["st_value"]
    regions = (
        *((column, named[f"memory_{n}"]["st_value"] + guard, size) for n, (column, size) in enumerate(arena)),
        (STACK, stack, named["stack_top"]["st_value"] - stack),
        *sections,
    )
    instructions = {i.address: i for i in _disassembled(elf_file, mve)}
    stages = stage_of_line(source)
    parts: dict[Part, int] = {}
    part_at = {
        address: parts.setdefault(_part(instructions[address], code, own, stages), len(parts))
        for address in _function_addresses(symbols, own)
        if address in instructions
    }
    # a step that is fed by rows is several calls, some of them refused, so the function around them is measured
    entries = ("infer",) if f"{module}_feed_rows" in named else (f"{module}_slide", f"{module}_run")
    entry = next(named[name] for name in entries if name in named)
    return Image(entry["st_value"] & ~1, regions, _borders(symbols), part_at, tuple(parts), instructions)


def arena_columns(plan: Plan) -> list[tuple[int, int]]:
    """Column and size of a plan's arena, or of each of its parts."""
    numbers = {bank.name: number for number, bank in enumerate(plan.memory.banks if plan.memory else ())}
    parts = [(BANKS + numbers[part.bank], part.bytes) for part in plan.arena_parts]
    return parts or [(ARENA, plan.arena_bytes)]


def _section_regions(elf: ELFFile, module: str, banks: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Regions of flash, of weights in memory banks, and of states: (column, address, bytes)."""
    for name in (".vectors", ".constants", ".text"):
        if (section := elf.get_section_by_name(name)) is not None:
            yield FLASH, section["sh_addr"], section["sh_size"]
    columns = {f".{module}.{bank}": BANKS + number for number, bank in enumerate(banks)} | {".states": STATES}
    for name, column in columns.items():
        if (section := elf.get_section_by_name(name)) is not None and section["sh_size"]:
            yield column, section["sh_addr"], section["sh_size"]


def _function_addresses(symbols: Iterable[Symbol], names: re.Pattern[str]) -> Iterator[int]:
    """Addresses at which an instruction of functions of these names may begin."""
    for symbol in symbols:
        if symbol["st_info"]["type"] == "STT_FUNC" and names.fullmatch(symbol.name):
            start = symbol["st_value"] & ~1
            yield from range(start, start + symbol["st_size"], 2)


def _part(instruction: Instruction, code: CodeMap, own: re.Pattern[str], stages: dict[int, int]) -> Part:
    line = code.line(instruction.address)
    callee = instruction.callee or ""
    function = "" if own.fullmatch(callee) else callee
    if instruction.address in code.calls:
        function, line = code.calls[instruction.address]
    # the compiler names clones such as "memcpy.constprop.0"
    return Part(stages.get(line, 0), function.partition(".")[0])


def _borders(symbols: Iterable[Symbol]) -> dict[int, int]:
    borders: dict[int, int] = {}
    for symbol in symbols:
        border = group_border(symbol.name)
        if border is None:
            continue
        kind, group = border
        address = symbol["st_value"] & ~1
        if kind == "begin":
            borders[address] = group  # overrides the end of the group before
        else:
            borders.setdefault(address, NONE)
    return borders


#: address, bytes, mnemonic and operands; neighbouring parts share no character, so a match on data never backtracks
_LINE = re.compile(r" *([0-9a-f]+):\t([0-9a-f][0-9a-f ]*)\t([a-z<][\w.]*)[ \t]*(.*)")
_CALLEE = re.compile(r"[0-9a-f]+ <([\w.$]+)>")


def _disassembled(elf: Path, mve: bool) -> Iterator[Instruction]:
    objdump = find_program("arm-none-eabi-objdump")
    if objdump is None:
        raise ToolMissing("arm-none-eabi-objdump", how_to_get("arm-none-eabi-objdump"))
    # without the architecture, binutils 2.40 shows MVE instructions as coprocessor instructions
    machine = ["-m", "armv8.1-m.main"] if mve else []
    done = subprocess.run([objdump, "-d", *machine, str(elf)], capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise EmulationFailed(f"objdump failed: {done.stderr[:400]}")
    return parse_instructions(done.stdout)


def parse_instructions(disassembly: str) -> Iterator[Instruction]:
    """Yields the instructions in objdump's output, without headings and data."""
    for line in disassembly.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        address, raw, mnemonic, operands = found.groups()
        start = int(address, 16)
        callee = _CALLEE.match(operands) if mnemonic == "bl" else None
        yield Instruction(
            start,
            start + len(raw.replace(" ", "")) // 2,
            mnemonic,
            operands.partition("@")[0].strip(),
            callee[1] if callee else None,
        )
