"""Strategy: which memory bank what lies in (`--memory`).

Arena and state go into banks that can be written, those that aren't slow first, and in the order in which they were
named. Weights go into flash, layer by layer: the layers that load most for each byte that they take have the first
choice of what isn't slow. What is left to a slow bank is copied ahead where the arena's bank has room (staging.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from tinyfuse.banks import Bank, parse_banks
from tinyfuse.cost.traffic import Layer, layers
from tinyfuse.errors import DoesNotFit
from tinyfuse.options import Options
from tinyfuse.plan import ConstantKey, Memory, Plan
from tinyfuse.plan.memory import STAGED_ALIGN, padded
from tinyfuse.plan.plan import WORD_ALIGN
from tinyfuse.schedule.progress import Progress, silent
from tinyfuse.schedule.staging import staged


def in_banks(plan_of: Callable[[Options], Plan], options: Options, progress: Progress = silent) -> Plan:
    """The plan whose arena suits the banks, with a bank for all that is in it. `plan_of` makes the plan for options;
    those given have banks. DoesNotFit, saying what would, where they are too small."""
    every = parse_banks(options.memory)
    banks = tuple(bank for bank in every if not bank.code)
    plan = _suiting(plan_of, options, banks)
    progress("placing into memory banks")
    code = next((bank for bank in every if bank.code), None)
    memory = Memory(banks, *_ram(plan, banks), _weights(plan, banks), code=code)
    return staged(replace(plan, memory=memory, options=options))


def _suiting(plan_of: Callable[[Options], Plan], options: Options, banks: Sequence[Bank]) -> Plan:
    """A plan that fits into the largest bank that is not slow; else the one for the largest that there is."""
    ram = [bank for bank in banks if not bank.flash]
    limits = [max((bank.bytes for bank in some), default=0) for some in ([b for b in ram if not b.slow], ram)]
    plan = None
    for limit in dict.fromkeys(filter(None, limits)):
        plan = plan_of(replace(options, max_ram=min(limit, options.max_ram or limit)))
        if plan.arena_bytes <= limit:
            return plan
    return plan or plan_of(options)


def _ram(plan: Plan, banks: Sequence[Bank]) -> tuple[str | None, str | None]:
    """The banks of arena and state: slow ones last, the arena before the state, then in their order."""
    ram = [bank for bank in banks if not bank.flash]
    if not ram:
        return None, None
    if not plan.states:
        fitting = [bank for bank in _fast_first(ram) if bank.bytes >= plan.arena_bytes]
        if not fitting:
            raise _too_small(plan, "the arena", plan.arena_bytes, ram)
        return fitting[0].name, None
    pairs = [
        (arena, state)
        for arena, state in product(_fast_first(ram), repeat=2)
        if arena.bytes >= _beside(plan, arena is state) and state.bytes >= plan.state_bytes
    ]
    if not pairs:
        raise _too_small(plan, "arena and state", _beside(plan, True), ram)
    arena, state = min(pairs, key=lambda pair: (pair[0].slow, pair[1].slow))
    return arena.name, state.name


def _beside(plan: Plan, together: bool) -> int:
    """Bytes of the arena, and of a state that may lie in the same bank in either order."""
    return plan.arena_bytes + (padded(plan.state_bytes, STAGED_ALIGN) if together else 0)


def _fast_first(banks: Sequence[Bank]) -> list[Bank]:
    return sorted(banks, key=lambda bank: bank.slow)


def _too_small(plan: Plan, what: str, size: int, banks: Sequence[Bank]) -> DoesNotFit:
    there = ", ".join(f"{bank.name} has {bank.bytes:,}" for bank in banks)
    parts = f" (arena {plan.arena_bytes:,}, state {plan.state_bytes:,})" if plan.states else ""
    return DoesNotFit(
        f"{plan.graph.path}: {what} take{'' if 'and' in what else 's'} {size:,} bytes{parts} of one bank, {there}; "
        f"--memory {replace(banks[0], bytes=size)} would fit"
    )


def _weights(plan: Plan, banks: Sequence[Bank]) -> dict[ConstantKey, str]:
    """The bank of every array; nothing where no bank is flash. By loads a byte; where that leaves a layer without room,
    by size, which wastes less."""
    flash, every = [bank for bank in banks if bank.flash], list(layers(plan))
    if not flash:
        return {}
    orders = (lambda layer: (-layer.density, -layer.bytes), lambda layer: (-layer.bytes, -layer.density))
    for order in orders:
        found = _filled(sorted(every, key=order), _fast_first(flash))
        if found is not None:
            return {key: bank for layer, bank in found for key in layer.keys}
    size, there = sum(layer.bytes for layer in every), ", ".join(f"{b.name} has {b.bytes:,}" for b in flash)
    last = flash[-1]
    missing = size - sum(bank.bytes for bank in flash if bank is not last)
    largest = max(layer.bytes for layer in every)
    raise DoesNotFit(
        f"{plan.graph.path}: {len(every)} layers' weights take {size:,} bytes, the largest {largest:,}, and have no "
        f"place: {there}; --memory {replace(last, bytes=_enough(every, flash, max(missing, largest)))} would fit"
    )


def _filled(of: Sequence[Layer], banks: Sequence[Bank]) -> list[tuple[Layer, str]] | None:
    """Each layer in the first bank that still has room for it; None where one has no place."""
    left = {bank.name: bank.bytes // WORD_ALIGN * WORD_ALIGN for bank in banks}
    found = []
    for layer in of:
        name = next((name for name, room in left.items() if room >= layer.bytes), None)
        if name is None:
            return None
        left[name] -= layer.bytes
        found.append((layer, name))
    return found


def _enough(of: Sequence[Layer], flash: Sequence[Bank], least: int) -> int:
    """Bytes of the last bank with which all layers have a place, at least so many."""
    everything = -(-sum(layer.bytes for layer in of) // WORD_ALIGN) * WORD_ALIGN
    by_density = sorted(of, key=lambda layer: (-layer.density, -layer.bytes))
    for size in (least, -(-least // 1024) * 1024, everything):
        tried = [*flash[:-1], replace(flash[-1], bytes=size)]
        if _filled(by_density, _fast_first(tried)) is not None:
            return size
    return everything
