"""Maps instructions of a group to operators and functions, by the debug information."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tinyfuse.verify.emulation.elf import die_name

if TYPE_CHECKING:  # this package is in the extra "verify"
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarfinfo import DWARFInfo


def stage_of_line(source: str) -> dict[int, int]:
    """Line (from 1) of a generated module -> number of its stage in its group.

    If a group has several stages, each stage's lines end by counting its row, `++y3;`, or its rows, `y3 = ...`, and by
    moving the sliding rings that it reads (emit/functions.py). A group without such a line has one stage.
    """
    stages: dict[int, int] = {}
    waiting: list[int] = []
    last = 0
    for number, line in enumerate(source.splitlines(), 1):
        waiting.append(number)
        if counted := re.match(r"\s+(?:\+\+y(\d+);|y(\d+) = )", line):
            last = int(counted[1] or counted[2])
            stages |= dict.fromkeys(waiting, last)
            waiting = []
        elif waiting == [number] and re.search(r"= tinyfuse_(rows_slide|stack_drop)\(", line):
            stages[number] = last
            waiting = []
        elif line == "}":
            stages |= dict.fromkeys(waiting, 0)
            waiting = []
    return stages


@dataclass(frozen=True)
class CodeMap:
    """Map of a module's code.

    calls  address -> (function, line): the outermost function inlined there into a function of the module, and the line
           of its call
    rows   (address, line) where a statement begins, sorted
    """

    calls: dict[int, tuple[str, int]]
    rows: tuple[tuple[int, int], ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [address for address, _ in self.rows]

    def line(self, address: int) -> int:
        """Line of the instruction at an address; 0 if it has none."""
        found = bisect_right(self._starts, address)
        return self.rows[found - 1][1] if found else 0


def code_map(dwarf: DWARFInfo, own: re.Pattern[str]) -> CodeMap:
    """Map of the functions whose names match `own`. Of functions inlined into each other, the one that the module calls
    counts, not those that it calls in turn."""
    calls: dict[int, tuple[str, int]] = {}
    rows: list[tuple[int, int]] = []
    for unit in dwarf.iter_CUs():
        dies = [
            die
            for die in unit.get_top_DIE().iter_children()
            if die.tag == "DW_TAG_subprogram" and own.fullmatch(die_name(die) or "")
        ]
        for die in dies:
            for function, line, low, high in _inlined(die, own, dwarf, unit):
                calls.update(dict.fromkeys(range(low, high, 2), (function, line)))
        if dies:
            program = dwarf.line_program_for_CU(unit)
            states = [e.state for e in program.get_entries() if e.state] if program else []
            rows += [(s.address, 0 if s.end_sequence else s.line) for s in states]
    return CodeMap(calls, tuple(sorted(rows)))


def _inlined(
    die: DIE, own: re.Pattern[str], dwarf: DWARFInfo, unit: CompileUnit
) -> Iterator[tuple[str, int, int, int]]:
    for child in die.iter_children():
        name = die_name(child) if child.tag == "DW_TAG_inlined_subroutine" else None
        if name is None or own.fullmatch(name):
            yield from _inlined(child, own, dwarf, unit)
        else:
            for low, high in _ranges(child, dwarf, unit):
                yield name, child.attributes["DW_AT_call_line"].value, low, high


def _ranges(die: DIE, dwarf: DWARFInfo, unit: CompileUnit) -> Iterator[tuple[int, int]]:
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        # DW_AT_high_pc is an address or a length
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
    elif "DW_AT_ranges" in attributes:
        start = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        base = start.value if start else 0
        lists: Any = dwarf.range_lists()  # its class depends on DWARF's version
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            elif getattr(entry, "is_absolute", False):
                yield entry.begin_offset, entry.end_offset
            else:
                yield base + entry.begin_offset, base + entry.end_offset
