"""Assignment of a plan's parts to memory banks (`--memory`). Plain data, made by tinyfuse/schedule/banks/assign.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyfuse.banks import Bank

#: C type, alignment in bytes, dtype and contents of a constant
ConstantKey = tuple[str, int, str, bytes]

#: alignment and unit, in bytes, of weights copied ahead: the largest data cache line of a Cortex-M (M7, M85), because
#: memory that a DMA writes must not share one
STAGED_ALIGN = 32


@dataclass(frozen=True)
class StagedArray:
    """A constant array of a group, by its key, and where its copy begins in the group's buffer."""

    key: ConstantKey
    offset: int


@dataclass(frozen=True)
class Staged:
    """Constants that are copied from a slow bank into the arena before a group reads them.

    group   number of the group that reads them
    begun   number of the group before which the copy begins: `group`, or the one before it
    buffer  arena buffer of the copy; alive from `begun` to `group`
    arrays  the constants, in the order of the copies
    """

    group: int
    begun: int
    buffer: str
    arrays: tuple[StagedArray, ...]

    @property
    def bytes(self) -> int:
        """Bytes that are copied."""
        return sum(len(array.key[3]) for array in self.arrays)


@dataclass(frozen=True)
class ArenaPart:
    """Part of an arena divided between banks: `bytes` bytes from byte `start` on lie in `bank`."""

    bank: str
    start: int
    bytes: int


@dataclass(frozen=True)
class Memory:
    """Assignment of arena, state, weights and code to memory banks.

    banks    data banks, in the order of the options
    code     bank of the module's code; None: the linker places it
    arena    name of the bank of the whole arena; None if it is divided, or if no bank is writable (the firmware
             places it)
    state    likewise for the state; None also if there is none
    parts    at least two parts of a divided arena, in order and without gaps, in different banks; else empty
    weights  constant array's key -> name of its bank; empty if no bank is flash
    staged   copies, in the order of the groups
    uncopied_arena_bytes  size of the arena without these copies; None if there are none
    """

    banks: tuple[Bank, ...]
    arena: str | None
    state: str | None
    weights: Mapping[ConstantKey, str] = field(default_factory=dict)
    staged: tuple[Staged, ...] = ()
    uncopied_arena_bytes: int | None = None
    code: Bank | None = None
    parts: tuple[ArenaPart, ...] = ()

    def bank(self, name: str) -> Bank:
        """Bank of that name."""
        return next(bank for bank in self.banks if bank.name == name)

    @property
    def copied(self) -> frozenset[ConstantKey]:
        """Arrays that are copied for some group."""
        return frozenset(array.key for staged in self.staged for array in staged.arrays)

    @property
    def copied_bytes(self) -> int:
        """Bytes copied per inference."""
        return sum(staged.bytes for staged in self.staged)

    def staged_for(self, group: int) -> Staged | None:
        """Copy made for a group, None if there is none."""
        return next((staged for staged in self.staged if staged.group == group), None)


def padded(size: int, align: int) -> int:
    """Largest number of bytes that an array of this size and alignment can take, padding in front of it included."""
    return size + align - 1 if align > 1 else size
