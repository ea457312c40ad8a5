"""Sums counts of single instructions by group, operator and function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tinyfuse.board_timing import BoardTiming
from tinyfuse.profile.image import BANKS, COLUMNS, FLASH, NONE, STATES, Image, Part
from tinyfuse.profile.instruction_kinds import KINDS, kind_of
from tinyfuse.profile.plugin import Count

_NEVER_WAITS = BoardTiming()


@dataclass(frozen=True)
class Usage:
    """Work of some code in one inference.

    kinds            instructions, by kind (instruction_kinds.py)
    loaded, stored   bytes, by column (image.py)
    calls            executed function calls (bl, blx)
    cycles           estimate, including waits for the board's flash; None for a core without a timing
    lowest           lowest stack address written; None if none was
    """

    kinds: tuple[int, ...]
    loaded: tuple[int, ...]
    stored: tuple[int, ...]
    calls: int
    cycles: float | None
    lowest: int | None

    @property
    def instructions(self) -> int:
        return sum(self.kinds)

    @property
    def flash_bytes(self) -> int:
        """Bytes loaded from flash, including banks of weights."""
        return self.loaded[FLASH] + sum(self.loaded[BANKS:STATES])


@dataclass(frozen=True)
class Profile:
    """Usage of an inference: `groups` by number, `parts` of each group, and `outside` for code between groups."""

    total: Usage
    groups: dict[int, Usage]
    parts: dict[int, dict[Part, Usage]]
    outside: Usage


def measure(counts: list[Count], image: Image, timed: bool, board: BoardTiming = _NEVER_WAITS) -> Profile:
    """Profile of an inference's counts; `timed`: with cycles of a core."""
    of_group: dict[int, list[Count]] = {NONE: []}
    for count in counts:
        of_group.setdefault(count.group, []).append(count)

    def usage(which: list[Count]) -> Usage:
        return _on_board(_sum(which, image, timed), board)

    def parts(which: list[Count]) -> dict[Part, Usage]:
        numbers = {count.part for count in which}
        return {image.parts[n]: usage([c for c in which if c.part == n]) for n in sorted(numbers)}

    outside = usage(of_group.pop(NONE))
    groups = dict(sorted(of_group.items()))
    return Profile(
        usage(counts),
        {group: usage(which) for group, which in groups.items()},
        {group: parts(which) for group, which in groups.items()},
        outside,
    )


def _on_board(usage: Usage, board: BoardTiming) -> Usage:
    return usage if usage.cycles is None else replace(usage, cycles=board.cycles(usage.cycles, usage.flash_bytes))


def _sum(counts: list[Count], image: Image, timed: bool) -> Usage:
    lowest = [count.lowest for count in counts if count.lowest is not None]
    return Usage(
        kinds=_by_kind(counts, image),
        loaded=_columns(count.loaded for count in counts),
        stored=_columns(count.stored for count in counts),
        calls=sum(count.jumps for count in counts if image.instructions[count.address].mnemonic in ("bl", "blx")),
        cycles=sum(count.cycles for count in counts) if timed else None,
        lowest=min(lowest, default=None),
    )


def _by_kind(counts: list[Count], image: Image) -> tuple[int, ...]:
    found = dict.fromkeys(KINDS, 0)
    for count in counts:
        found[kind_of(image.instructions[count.address].mnemonic)] += count.executed
    return tuple(found.values())


def _columns(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True))) or (0,) * COLUMNS
