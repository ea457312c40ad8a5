"""Memory banks on an emulated board: ends of its memories, separated by gaps that nothing may touch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tinyfuse.banks import Bank
from tinyfuse.errors import InternalFault
from tinyfuse.plan import Plan
from tinyfuse.plan.memory import Memory
from tinyfuse.targets import Target

#: bytes of the gap between two banks, which is filled with a pattern and checked
GAP = 4096
#: bytes of guards around arenas and states, and numbers of arenas and states: the plan's, the second place of steps or
#: the other stream, those of the interface's checks, and of an inference that an interrupt makes
_ROUND_ARENA, _ROUND_STATES = 128 << 10, 16 << 10
_ARENAS, _STATES = 4, 4
#: more bytes than the code of any module that is tried
_MOST_CODE = 256 << 10


@dataclass(frozen=True)
class Region:
    """Memory of a bank on the board. `section` is the section of the linked image with its weights; None without
    any."""

    bank: str
    start: int
    bytes: int
    section: str | None


@dataclass(frozen=True)
class BoardBanks:
    """Places of a plan's memory banks on the board.

    target   the board with the rest of its memories.
    regions  banks that hold something.
    arena, states  names of the memories for the arena (its first part) and the states.
    script   file of the module's linker script fragment.
    borders  symbols of the first byte of each bank of weights or code, and of the first byte behind it.
    code, code_load  bank of code, and the fragment's name for the region that it is loaded from.
    parts    names of the memories for further parts of the arena.
    """

    target: Target
    regions: tuple[Region, ...]
    arena: str
    states: str
    script: str
    borders: tuple[tuple[str, str], ...]
    code: str | None
    code_load: str
    parts: tuple[str, ...] = ()


def board_banks(plan: Plan) -> BoardBanks | None:
    """Places the banks of a plan on its board; None for a plan without banks.

    Slow banks are in the board's largest memory, if it has one, others beside code and variables."""
    target, memory, name = plan.context.target, plan.memory, plan.options.name
    if memory is None:
        return None
    regions = []
    left = {"flash": target.flash or (0, 0), "ram": target.ram or (0, 0), "bulk": target.bulk or (0, 0)}
    for bank in memory.banks:
        size = _bytes(plan, memory, bank.name)
        if not size:
            continue
        place = _place(target, bank, size)
        start, length = left[place]
        at = (start + length - size - GAP) // 64 * 64
        left[place] = (start, at - GAP - start)
        regions.append(Region(bank.name, at, size, f".{name}.{bank.name}" if bank.flash else None))
    if memory.code is not None:  # loaded where it runs, because no start-up code copies it
        bank, place = memory.code, "flash" if memory.code.flash else "ram"
        start, length = left[place]
        size = min(bank.bytes, _MOST_CODE) // 64 * 64
        at = (start + length - size - GAP) // 64 * 64
        left[place] = (start, at - GAP - start)
        regions.append(Region(bank.name, at, size, f".{name}.{bank.name}"))
    borders = tuple((f"__{name}_{r.bank}_start", f"__{name}_{r.bank}_end") for r in regions if r.section)
    first, *others = [part.bank for part in memory.parts] or [memory.arena or "tinyfuse_RAM"]
    states = memory.state or "tinyfuse_RAM"
    rest = replace(target, flash=left["flash"], ram=left["ram"], bulk=left["bulk"] if target.bulk else None)
    code = memory.code.name if memory.code else None
    script, load = f"{name}_memory.ld", f"{name}_code_load"
    return BoardBanks(rest, tuple(regions), first, states, script, borders, code, load, tuple(others))


def _place(target: Target, bank: Bank, size: int) -> str:
    """Memory of the board that a bank of `size` bytes is cut off from."""
    if not bank.flash:
        return "ram"
    if bank.slow or 4 * size > (target.flash or (0, 0))[1]:
        return "bulk" if target.bulk else "ram"
    return "flash"


def _bytes(plan: Plan, memory: Memory, bank: str) -> int:
    """Bytes that a bank takes on the board; for flash at most those that the plan assumes for its weights."""
    size = sum(len(key[3]) + key[1] - 1 for key, place in memory.weights.items() if place == bank)
    of_arena = plan.arena_bytes_in(bank)
    if of_arena:
        size += _ARENAS * of_arena + _ROUND_ARENA
    if memory.state == bank:
        size += _STATES * plan.state_bytes + _ROUND_STATES
    return -(-size // 64) * 64


def memory_map(target: Target, constants: str, banks: BoardBanks | None = None) -> str:
    """Text of memory.ld; weights without a bank lie in the memory `constants`. With banks, whose names the user chose,
    the board's own memories are renamed."""
    left = banks.target if banks else target
    memories = {"FLASH": left.flash, "RAM": left.ram, "BULK": left.bulk}
    lines = [f"    {name} : ORIGIN = {at[0]:#x}, LENGTH = {at[1]:#x}" for name, at in memories.items() if at]
    aliases = {"CONSTANTS": constants} | ({} if left.bulk else {"BULK": "RAM"})
    # GNU ld does not resolve an alias of an alias
    names = [f'REGION_ALIAS("{a}", {aliases.get(b, b)})' for a, b in aliases.items()]
    if banks is None:
        return "\n".join(["MEMORY", "{", *lines, "}", *names, ""])
    lines, names = [_board_names(line) for line in lines], [_board_names(line) for line in names]
    names += [f'REGION_ALIAS("{banks.code_load}", {banks.code})'] if banks.code else []
    lines += [f"    {each.bank} : ORIGIN = {each.start:#x}, LENGTH = {each.bytes:#x}" for each in banks.regions]
    # symbols of the memories' real ends: banks and the gaps between them are checked as well
    ends = {"flash_end": target.flash, "ram_end": target.ram, "bulk_end": target.bulk or target.ram}
    symbols = [f"{symbol} = {sum(at):#x};" for symbol, at in ends.items() if at]
    return "\n".join(["MEMORY", "{", *lines, "}", *names, *symbols, ""])


def _board_names(script: str) -> str:
    """Linker script with the board's own memories renamed."""
    return re.sub(r"\b(FLASH|RAM|BULK|CONSTANTS)\b", r"tinyfuse_\1", script)


def sections_script(script: str, banks: BoardBanks) -> str:
    """Text of sections.ld for a module with banks."""
    script = _board_names(script)
    table = " ".join(f"LONG({start}) LONG({end})" for start, end in banks.borders)
    further = range(1, 1 + len(banks.parts))

    def part(n: int, bank: str) -> str:
        place = f"part_{n}_start = .; *(.arena_{n}) . = ALIGN(8); part_{n}_end = .;"
        return f".arena_{n} (NOLOAD) : ALIGN(8) {{ {place} }} > {bank}"

    for place, text in (
        ("/* banks of weights */", table),
        ("/* the module's fragment */", f"INCLUDE {banks.script}"),
        ("/* further parts of the arena */", " ".join(f"LONG(part_{n}_start) LONG(part_{n}_end)" for n in further)),
        ("/* sections of further parts */", "\n    ".join(map(part, further, banks.parts))),
        ("> tinyfuse_RAM /* the arena's bank */", f"> {banks.arena}"),
        ("> tinyfuse_RAM /* the states' bank */", f"> {banks.states}"),
    ):
        if script.count(place) != 1:
            raise InternalFault("the linker script of the emulated board", f"no single place {place}")
        script = script.replace(place, text)
    return script
