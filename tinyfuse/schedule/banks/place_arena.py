"""Strategy: finds the plan that suits the writable banks, and places its arena and state among them.

The arena lies in a single bank if a fast bank has room for it, or if no bank is faster than the fastest one with room.
Otherwise it is split if that moves enough traffic to faster banks, or if no bank has room for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tinyfuse import limits
from tinyfuse.banks import Bank
from tinyfuse.errors import DoesNotFit
from tinyfuse.limits import Reached
from tinyfuse.options import Options
from tinyfuse.plan import ArenaPart, Plan
from tinyfuse.plan.memory import STAGED_ALIGN, padded
from tinyfuse.schedule.banks.split_arena import SplitArena, split_arena

#: least share of the traffic that must go to faster banks to split an arena that one bank could hold
MIN_TRAFFIC_SHARE = 0.1

#: shares of the bytes of all banks that are tried as limits of a plan to be split: buffers in separate banks cannot
#: share bytes
_SHARES = (1.0, 0.85, 0.7, 0.5, 0.0)


@dataclass(frozen=True)
class Ram:
    """Plan with the names of its arena's bank and its state's bank. `arena` is None if the arena is divided into
    `parts`, `state` if the plan has no state."""

    plan: Plan
    arena: str | None
    state: str | None
    parts: tuple[ArenaPart, ...] = ()


def fast_first(banks: Sequence[Bank]) -> list[Bank]:
    """Sorts banks: fast ones, then others, then slow ones, each in the order of the options."""
    return sorted(banks, key=lambda bank: bank.rank)


def place_ram(plan_of: Callable[[Options], Plan], options: Options, banks: Sequence[Bank], reached: Reached) -> Ram:
    """Finds a plan among those that `plan_of` makes, and its place; one that needs no slow bank is preferred.

    Limits are noted in `reached`. Raises DoesNotFit, with a size that would do, if the banks are too small.
    """
    named = [bank for bank in banks if not bank.flash]
    every = fast_first(named)
    if not every:
        return Ram(plan_of(options), None, None)

    def plan_within(size: int) -> Plan:
        return plan_of(replace(options, max_ram=max(1, min(size, options.max_ram or size))))

    plan = None
    for some in ([bank for bank in every if not bank.slow], every):
        if not some:
            continue
        plan = plan_within(max(bank.bytes for bank in some))
        whole = _place_whole(plan, some, every)
        if whole is not None:
            return _move_to_faster(whole, every, options, reached) or whole
        if len(some) > 1:
            total, tried = sum(bank.bytes for bank in some), None
            for number, share in enumerate(_SHARES[: limits.BANK_SHARES.most]):
                plan = plan_within(int(share * total))
                if plan.buffers != tried:
                    found = split_arena(plan, some, options.max_ram, reached)
                    if found is not None:
                        if number:  # a limit between this one and the previous one may also give a plan that fits
                            reached.note(limits.BANK_SHARES)
                        return _from_split(found)
                tried = plan.buffers
    assert plan is not None, "banks, and no plan tried"
    raise _too_small(plan, named)


def _from_split(found: SplitArena) -> Ram:
    return Ram(found.plan, None, found.state, found.parts)


def _place_whole(plan: Plan, banks: Sequence[Bank], every: Sequence[Bank]) -> Ram | None:
    """Places the arena in the fastest of `banks` with room for it, then the state in the fastest of `every` with room
    left; None if either has no place."""
    if not plan.states:
        fitting = [bank for bank in banks if bank.bytes >= plan.arena_bytes]
        return Ram(plan, fitting[0].name, None) if fitting else None
    pairs = [
        (arena, state)
        for arena, state in product(banks, every)
        if arena.bytes >= _beside(plan, arena is state) and state.bytes >= plan.state_bytes
    ]
    if not pairs:
        return None
    arena, state = min(pairs, key=lambda pair: (pair[0].rank, pair[1].rank))
    return Ram(plan, arena.name, state.name)


def _beside(plan: Plan, together: bool) -> int:
    """Bytes of the arena, plus those of a state that shares its bank in either order."""
    return plan.arena_bytes + (padded(plan.state_bytes, STAGED_ALIGN) if together else 0)


def _move_to_faster(whole: Ram, every: Sequence[Bank], options: Options, reached: Reached) -> Ram | None:
    """Moves the buffers with the most traffic per byte to banks faster than the arena's; None if that moves too little
    traffic."""
    rank = next(bank.rank for bank in every if bank.name == whole.arena)
    faster = [bank for bank in every if bank.rank < rank]
    if not faster:
        return None
    found = split_arena(whole.plan, [bank for bank in every if bank.rank <= rank], options.max_ram, reached)
    return _from_split(found) if found is not None and found.share(faster) >= MIN_TRAFFIC_SHARE else None


def _too_small(plan: Plan, banks: Sequence[Bank]) -> DoesNotFit:
    what = "arena and state take" if plan.states else "the arena takes"
    size, detail = plan.arena_bytes, ""
    if plan.states:
        size = _beside(plan, True)
        detail = f" (arena {plan.arena_bytes:,}, state {plan.state_bytes:,})"
    there = ", ".join(f"{bank.name} has {bank.bytes:,}" for bank in banks)
    where = " of one bank"
    if len(banks) > 1:
        largest = max(buffer.bytes for buffer in plan.buffers)
        where = f" (the largest buffer {largest:,}), which no bank has, nor all together in parts"
    return DoesNotFit(
        f"{plan.graph.path}: {what} {size:,} bytes{detail}{where}, {there}; "
        f"--memory {replace(banks[0], bytes=size)} would fit"
    )
