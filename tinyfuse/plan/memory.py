"""Where a plan's parts lie among memory banks (`--memory`): plain data, made in tinyfuse/schedule/banks/assign.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyfuse.banks import Bank

#: C type, alignment, dtype and bytes of a constant
ConstantKey = tuple[str, int, str, bytes]

#: alignment and unit of what is copied ahead: a line of the largest data cache of a Cortex-M (M7, M85), so that a DMA's
#: bytes share none with others
STAGED_ALIGN = 32


@dataclass(frozen=True)
class StagedArray:
    """A constant array of a group, by its key, and where its copy begins in the group's buffer."""

    key: ConstantKey
    offset: int


@dataclass(frozen=True)
class Staged:
    """Constants that are copied from a slow bank into the arena before a group reads them.

    group   its number
    begun   the copy begins before the group of that number runs: the group itself, or the one before it
    buffer  of the arena; its lifetime begins with that group and ends with `group`
    arrays  in the order of the copies
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
    """A part of an arena that is divided between banks: `bytes` bytes of it from byte `start` on."""

    bank: str
    start: int
    bytes: int


@dataclass(frozen=True)
class Memory:
    """What lies in which bank.

    banks    of data, as they were named
    code     the bank of the module's code; None where the linker places that
    arena    name of the bank of the whole arena; None where no bank may be written, and the firmware places it, and
             where it is divided
    state    likewise the state's; None where there is none, too
    parts    of an arena that is divided, two at least, in order and without a gap; no two in one bank
    weights  the bank of every constant array by its key; empty where no bank is flash
    staged   in the order of the groups
    uncopied_arena_bytes  what the arena would take without these copies; None where there are none
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
        """The bank of that name."""
        return next(bank for bank in self.banks if bank.name == name)

    @property
    def copied(self) -> frozenset[ConstantKey]:
        """The arrays that are copied for some group."""
        return frozenset(array.key for staged in self.staged for array in staged.arrays)

    @property
    def copied_bytes(self) -> int:
        """Bytes that an inference copies."""
        return sum(staged.bytes for staged in self.staged)

    def staged_for(self, group: int) -> Staged | None:
        """What is copied for a group."""
        return next((staged for staged in self.staged if staged.group == group), None)


def padded(size: int, align: int) -> int:
    """Bytes that an array of this size and alignment takes at most, wherever the linker puts it among others."""
    return size + align - 1 if align > 1 else size
