"""Strategy: splits an arena between memory banks.

Buffers with the most traffic per byte and per group of their lifetime choose first in the fastest bank; those without
room there continue with the next. Since buffers of different lifetimes share a bank's bytes, each choice is a placement
of its own, of all buffers chosen so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyfuse import limits
from tinyfuse.arena import Buffer, Overlap, Placement, plan_arena, plan_arena_within
from tinyfuse.arena.problem import Problem
from tinyfuse.banks import Bank
from tinyfuse.cost.activation_traffic import buffer_traffic, state_traffic
from tinyfuse.limits import Reached
from tinyfuse.plan import ArenaPart, Memory, Plan
from tinyfuse.plan.memory import STAGED_ALIGN, padded
from tinyfuse.plan.plan import WORD_ALIGN

#: limits on filling one bank: number of buffers placed in all trials together, and work of each trial (elementary
#: operations, see plan_arena)
_TRIED_BUFFERS, _WORK = 5_000, 2_000

#: more orders are tried for arenas of at most this number of buffers
_FEW = 64

#: work of each placement that is tried for copies of weights (elementary operations)
_COPIES_WORK = 20_000

_Order = Callable[[Buffer], float]

#: buffers of a bank, with their offsets in its part of the arena
_Content = dict[Buffer, int]


@dataclass(frozen=True)
class SplitArena:
    """A plan whose arena is placed in `parts`, its state in the bank `state`; `traffic` is the predicted bytes loaded
    and stored per bank in an inference."""

    plan: Plan
    parts: tuple[ArenaPart, ...]
    state: str | None
    traffic: Mapping[str, int]

    def share(self, banks: Iterable[Bank]) -> float:
        """Share of all traffic that goes to these banks."""
        return sum(self.traffic.get(bank.name, 0) for bank in banks) / max(1, sum(self.traffic.values()))


def split_arena(plan: Plan, banks: Sequence[Bank], most: int | None, reached: Reached) -> SplitArena | None:
    """Splits a plan's arena between at least two of these banks (fastest first), with the state in one of them, so that
    most traffic goes to the fastest.

    None if it does not fit, or takes more than `most` bytes with the state. Limits are noted in `reached`.
    """
    traffic, of_state = buffer_traffic(plan), state_traffic(plan)
    found: list[SplitArena] = []
    for home in banks if plan.states else [None]:
        taken = padded(plan.state_bytes, STAGED_ALIGN)
        rooms = {bank: bank.bytes - (taken if bank is home else 0) for bank in banks}
        if max(rooms.values()) >= max(buffer.bytes for buffer in plan.buffers) and min(rooms.values()) >= 0:
            state = {home.name: of_state} if home else {}
            found += [
                SplitArena(each.plan, each.parts, home.name if home else None, _sum(each.traffic, state))
                for each in _try_orders(plan, rooms, traffic, reached)
                if most is None or sum(part.bytes for part in each.parts) + plan.state_bytes <= most
            ]

    def preferred(each: SplitArena) -> tuple[int, ...]:
        """Rank: more traffic to fast banks, less to slow ones, fewer parts."""
        of_rank = [sum(each.traffic.get(bank.name, 0) for bank in banks if bank.rank == rank) for rank in (0, 2)]
        return of_rank[0], -of_rank[1], -len(each.parts)

    return max(found, key=preferred, default=None)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _try_orders(
    plan: Plan, rooms: Mapping[Bank, int], traffic: Mapping[str, int], reached: Reached
) -> Iterable[SplitArena]:
    """Tries to place buffers in two orders: by traffic, and by size, which wastes less space."""

    def by_time(buffer: Buffer) -> float:
        return traffic[buffer.name] / max(1, buffer.bytes * (1 + buffer.last_step - buffer.first_step))

    def by_bytes(buffer: Buffer) -> float:
        return traffic[buffer.name] / max(1, buffer.bytes)

    def by_size(buffer: Buffer) -> float:
        return buffer.bytes

    roomiest = sorted(rooms, key=lambda bank: -rooms[bank])
    fastest, starts = list(rooms), (True, False) if len(plan.buffers) <= _FEW else (True,)
    ways = (
        _fill_banks(plan, rooms, fastest, order, at_once, traffic, reached)
        for order in (by_time, by_bytes)
        for at_once in starts
    )
    found = [way for way in ways if way is not None]
    if not found:
        sized = (_fill_banks(plan, rooms, banks, by_size, True, traffic, reached) for banks in (roomiest, fastest))
        found = [way for way in sized if way is not None]
    return found


def _fill_banks(
    plan: Plan,
    rooms: Mapping[Bank, int],
    banks: Sequence[Bank],
    order: _Order,
    at_once: bool,
    traffic: Mapping[str, int],
    reached: Reached,
) -> SplitArena | None:
    """Places every buffer in the first bank with room; None if one has no place, or all are in one bank.

    `at_once`: see _fill_bank.
    """
    left = sorted(plan.buffers, key=lambda buffer: (-order(buffer), -buffer.bytes, buffer.name))
    contents: dict[Bank, _Content] = {}
    for bank in banks:
        contents[bank] = _fill_bank(left, rooms[bank] // STAGED_ALIGN * STAGED_ALIGN, plan.overlaps, at_once, reached)
        left = [buffer for buffer in left if buffer not in contents[bank]]
    # sorted by speed, not in the order in which they were filled
    contents = {bank: contents[bank] for bank in rooms if any(buffer.bytes for buffer in contents[bank])}
    if left or len(contents) < 2:
        return None
    contents[next(reversed(contents))] |= {buffer: 0 for buffer in plan.buffers if not buffer.bytes}
    found = _placed(plan, contents)
    of_banks = {bank.name: sum(traffic[buffer.name] for buffer in some) for bank, some in contents.items()}
    return SplitArena(*found, None, of_banks)


def _fill_bank(
    buffers: Sequence[Buffer], room: int, overlaps: Sequence[Overlap], at_once: bool, reached: Reached
) -> _Content:
    """Chooses from `buffers`, most wanted first, those that fit into a bank together.

    Chosen buffers may move when others join, and many join at a time. With `at_once`, buffers first take places that
    stay, which needs a fraction of the time.
    """
    fitting = [buffer for buffer in buffers if buffer.bytes <= room]
    chosen = _beside({}, fitting, room, overlaps) if at_once else {}
    waiting = [[buffer for buffer in fitting if buffer not in chosen]]
    tries = min(limits.BANK_FILLINGS.most, _TRIED_BUFFERS // (1 + len(fitting)))
    while waiting:
        if not tries:
            if any(waiting):
                reached.note(limits.BANK_FILLINGS)
            break
        tries -= 1
        some = waiting.pop()
        tried = [*chosen, *some]
        placement = plan_arena_within(room, tried, _among(tried, overlaps), _WORK)
        if placement is not None:
            chosen = {buffer: placement.offsets[buffer.name] for buffer in tried}
        elif len(some) > 1:
            waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
    return chosen


def _beside(there: _Content, buffers: Sequence[Buffer], room: int, overlaps: Sequence[Overlap]) -> _Content:
    """Adds buffers, in order, to the placement `there` wherever they have room; buffers in `there` keep their
    offsets."""
    every = [*there, *buffers]
    problem = Problem(every, _among(every, overlaps))
    offsets = problem.place_within(room, range(len(there), len(every)), dict(enumerate(there.values())))
    return {every[number]: offset for number, offset in offsets.items()}


def _among(buffers: Iterable[Buffer], overlaps: Iterable[Overlap]) -> tuple[Overlap, ...]:
    """The overlaps whose two buffers are both among these buffers."""
    names = {buffer.name for buffer in buffers}
    return tuple(overlap for overlap in overlaps if {overlap.below, overlap.above} <= names)


def _placed(plan: Plan, contents: dict[Bank, _Content], work: int | None = None) -> tuple[Plan, tuple[ArenaPart, ...]]:
    """Places each bank's buffers in a part of the arena that begins at a cache line, at the offsets in `contents` or
    closer together."""
    offsets: dict[str, int] = {}
    parts, start, end = [], 0, 0
    for bank, content in contents.items():
        placement = plan_arena(content, _among(content, plan.overlaps), work)
        within = {buffer.name: offset for buffer, offset in content.items()}
        size = max(offset + buffer.bytes for buffer, offset in content.items())
        if placement.arena_bytes < size:
            within, size = placement.offsets, placement.arena_bytes
        offsets |= {name: start + offset for name, offset in within.items()}
        end = start + size
        unit = WORD_ALIGN if bank is next(reversed(contents)) else STAGED_ALIGN
        parts.append(ArenaPart(bank.name, start, -(-size // unit) * unit))
        start += parts[-1].bytes
    # parts laid end to end are a placement in one arena, so its lower bound still holds
    bound = plan.placement.lower_bound
    in_order = {buffer.name: offsets[buffer.name] for buffer in plan.buffers}
    return replace(plan, placement=Placement(in_order, end, bound, end == bound)), tuple(parts)


def add_buffers(
    plan: Plan, memory: Memory, more: Sequence[Buffer], rooms: Mapping[str, int]
) -> tuple[Plan, Memory] | None:
    """Adds buffers to a plan's arena; None if that exceeds the `rooms` (bank -> bytes).

    If the arena is split, each goes into the first part with room; other buffers keep their parts.
    """
    every = (*plan.buffers, *more)
    if memory.arena is not None:
        moved = replace(plan, buffers=every, placement=plan_arena(every, plan.overlaps))
        return (moved, memory) if moved.arena_bytes <= rooms[memory.arena] else None
    offsets, left = plan.placement.offsets, list(more)
    contents: dict[Bank, _Content] = {}
    for part in memory.parts:
        there = {
            buffer: offsets[buffer.name] - part.start
            for buffer in plan.buffers
            if 0 <= offsets[buffer.name] - part.start < part.bytes
        }
        room = rooms.get(part.bank, 0) // STAGED_ALIGN * STAGED_ALIGN
        content = _beside(there, left, room, plan.overlaps)
        contents[memory.bank(part.bank)] = content
        left = [buffer for buffer in left if buffer not in content]
    if left:
        return None
    placed, parts = _placed(replace(plan, buffers=every), contents, _COPIES_WORK)
    return placed, replace(memory, parts=parts)
