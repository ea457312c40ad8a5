"""Memory banks on an emulated board: cut off the ends of its memories, with bytes between them that nobody touches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tinyfuse.banks import Bank
from tinyfuse.plan import Plan
from tinyfuse.plan.memory import Memory
from tinyfuse.targets import Target

#: bytes between two banks, which are filled and watched
GAP = 4096
#: what the harness puts round arena and states: guards, the arena's second place, the other stream's state
_ROUND_ARENA, _ROUND_STATES = 96 << 10, 16 << 10
_ARENAS, _STATES = 2, 3


@dataclass(frozen=True)
class Region:
    """A bank's memory on the board. `section`: of the linked image, where weights lie in it."""

    bank: str
    start: int
    bytes: int
    section: str | None


@dataclass(frozen=True)
class BoardBanks:
    """regions  of the banks that hold something
    arena, states  names of the memories that the linker script puts them into
    script   the module's fragment of a linker script, None for a module without banks
    target   the board with what is left of its memories
    """

    target: Target
    regions: tuple[Region, ...] = ()
    arena: str = "RAM"
    states: str = "RAM"
    script: str | None = None
    #: symbols of the first byte of each bank of weights, and of the first behind it
    borders: tuple[tuple[str, str], ...] = field(default=())


def board_banks(plan: Plan) -> BoardBanks:
    """Where the banks of a plan lie: what is slow in the board's largest memory, if it has one, the rest where code and
    variables are."""
    target, memory, name = plan.context.target, plan.memory, plan.options.name
    if memory is None:
        return BoardBanks(target)
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
    borders = tuple((f"__{name}_{r.bank}_start", f"__{name}_{r.bank}_end") for r in regions if r.section)
    arena, states = memory.arena or "RAM", memory.state or "RAM"
    rest = replace(target, flash=left["flash"], ram=left["ram"], bulk=left["bulk"] if target.bulk else None)
    return BoardBanks(rest, tuple(regions), arena, states, f"{name}_memory.ld", borders)


def _place(target: Target, bank: Bank, size: int) -> str:
    """The memory of the board that a bank of so many bytes is cut off."""
    if not bank.flash:
        return "ram"
    if bank.slow or 4 * size > (target.flash or (0, 0))[1]:
        return "bulk" if target.bulk else "ram"
    return "flash"


def _bytes(plan: Plan, memory: Memory, bank: str) -> int:
    """Bytes that a bank takes of the board: of flash no more than the plan says that its weights take."""
    size = sum(len(key[3]) + key[1] - 1 for key, place in memory.weights.items() if place == bank)
    if memory.arena == bank:
        size += _ARENAS * plan.arena_bytes + _ROUND_ARENA
    if memory.state == bank:
        size += _STATES * plan.state_bytes + _ROUND_STATES
    return -(-size // 64) * 64


def memory_map(board: Target, banks: BoardBanks, constants: str) -> str:
    """The text of memory.ld; weights without a bank lie in the memory `constants`, and the memories end where those of
    `board` do."""
    left = banks.target
    memories = {"FLASH": left.flash, "RAM": left.ram, "BULK": left.bulk}
    lines = [f"    {name} : ORIGIN = {at[0]:#x}, LENGTH = {at[1]:#x}" for name, at in memories.items() if at]
    lines += [f"    {region.bank} : ORIGIN = {region.start:#x}, LENGTH = {region.bytes:#x}" for region in banks.regions]
    aliases = {"CONSTANTS": constants, "ARENA": banks.arena, "STATES": banks.states}
    aliases |= {} if left.bulk else {"BULK": "RAM"}
    ends = {"flash_end": board.flash, "ram_end": board.ram, "bulk_end": board.bulk or board.ram}
    return "\n".join(
        [
            *("MEMORY", "{", *lines, "}"),
            # an alias of an alias is none
            *(f'REGION_ALIAS("{a}", {aliases.get(b, b)})' for a, b in aliases.items()),
            *(f"{symbol} = {sum(at):#x};" for symbol, at in ends.items() if at),
            "",
        ]
    )


def bank_table(banks: BoardBanks) -> str:
    """The text of bank_table.ld: a row for each bank of weights."""
    return "".join(f"LONG({start}) LONG({end})\n" for start, end in banks.borders)
