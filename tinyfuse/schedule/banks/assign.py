"""Strategy: assigns parts of a plan to memory banks (`--memory`).

Arena and state go into writable banks (place_arena.py), with the arena split where that pays (split_arena.py). Weights
go into flash, layer by layer: layers with the most loads per byte choose first among banks that are not slow. Weights
left in a slow bank are copied ahead if the arena's bank has room (stage_weights.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tinyfuse.banks import Bank, parse_banks
from tinyfuse.cost.traffic import Layer, layers
from tinyfuse.errors import DoesNotFit
from tinyfuse.limits import Reached, merge_limits
from tinyfuse.options import Options
from tinyfuse.plan import ConstantKey, Memory, Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.plan.plan import WORD_ALIGN
from tinyfuse.progress import Progress, silent
from tinyfuse.schedule.banks.place_arena import fast_first, place_ram
from tinyfuse.schedule.banks.stage_weights import staged


def plan_in_banks(plan_of: Callable[[Options], Plan], options: Options, progress: Progress = silent) -> Plan:
    """Makes a plan; if `--memory` names banks, one whose arena suits them, with a bank assigned to each part. Raises
    DoesNotFit, with a size that would do, if the banks are too small."""
    if not options.memory:
        return plan_of(options)
    every = parse_banks(options.memory)
    banks = tuple(bank for bank in every if not bank.code)
    reached = Reached()
    ram = place_ram(plan_of, options, banks, reached)
    progress("assigning memory banks")
    code = next((bank for bank in every if bank.code), None)
    memory = Memory(banks, ram.arena, ram.state, _weights(ram.plan, banks), code=code, parts=ram.parts)
    plan = staged(replace(ram.plan, memory=memory, options=options), reached)
    verify_plan(plan)
    return replace(plan, limits=merge_limits(plan.limits, reached.found))


def _weights(plan: Plan, banks: Sequence[Bank]) -> dict[ConstantKey, str]:
    """Bank of every constant array; empty if no bank is flash. Layers are placed by loads per byte or, if one then has
    no room, by size, which wastes less."""
    flash, every = [bank for bank in banks if bank.flash], list(layers(plan))
    if not flash:
        return {}
    orders = (lambda layer: (-layer.density, -layer.bytes), lambda layer: (-layer.bytes, -layer.density))
    for order in orders:
        found = _fill_banks(sorted(every, key=order), fast_first(flash))
        if found is not None:
            return {key: bank for layer, bank in found for key in layer.keys}
    size, there = sum(layer.bytes for layer in every), ", ".join(f"{b.name} has {b.bytes:,}" for b in flash)
    last = flash[-1]
    missing = size - sum(bank.bytes for bank in flash if bank is not last)
    largest = max(layer.bytes for layer in every)
    raise DoesNotFit(
        f"{plan.graph.path}: {len(every)} layers' weights take {size:,} bytes, the largest {largest:,}, and have no "
        f"place: {there}; --memory {replace(last, bytes=_needed_bytes(every, flash, max(missing, largest)))} would fit"
    )


def _fill_banks(of: Sequence[Layer], banks: Sequence[Bank]) -> list[tuple[Layer, str]] | None:
    """Assigns each layer to the first bank with room for it; None if some layer fits into none."""
    left = {bank.name: bank.bytes // WORD_ALIGN * WORD_ALIGN for bank in banks}
    found = []
    for layer in of:
        name = next((name for name, room in left.items() if room >= layer.bytes), None)
        if name is None:
            return None
        left[name] -= layer.bytes
        found.append((layer, name))
    return found


def _needed_bytes(of: Sequence[Layer], flash: Sequence[Bank], least: int) -> int:
    """Size of the last bank, at least `least` bytes, with which all layers have a place."""
    everything = -(-sum(layer.bytes for layer in of) // WORD_ALIGN) * WORD_ALIGN
    by_density = sorted(of, key=lambda layer: (-layer.density, -layer.bytes))
    for size in (least, -(-least // 1024) * 1024, everything):
        tried = [*flash[:-1], replace(flash[-1], bytes=size)]
        if _fill_banks(by_density, fast_first(tried)) is not None:
            return size
    return everything
