"""Strategy: copies weights from slow banks into the arena before they are read, as far as its bank has room.

A copy reads each byte once, so it pays only for weights that are loaded several times. It has an arena buffer, alive
while its group runs or, if there is room, from the group before on, so that a DMA copies while the core computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tinyfuse import limits
from tinyfuse.arena import Buffer
from tinyfuse.cost.traffic import constant_bytes, constant_loads
from tinyfuse.limits import Reached
from tinyfuse.plan import Memory, Plan, Stage, Staged, StagedArray, constant_key
from tinyfuse.plan.memory import STAGED_ALIGN
from tinyfuse.schedule.banks.split_arena import add_buffers

#: minimum loads per byte for which a copy pays
MIN_LOADS_PER_BYTE = 2.0

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Layer:
    group: int
    stage: Stage

    @property
    def density(self) -> float:
        return constant_loads(self.stage) / constant_bytes(self.stage)


def staged(plan: Plan, reached: Reached) -> Plan:
    """Plan with copies of weights into faster memory. Limits are recorded in `reached`.

    No copies are added for a module in steps or fed by rows: its arena may move, or be used for something else, between
    two calls of an inference.
    """
    memory = plan.memory
    if memory is None or plan.options.step or plan.options.feed_rows:
        return plan
    rooms = {
        bank.name: bank.bytes - (plan.state_bytes + STAGED_ALIGN if memory.state == bank.name else 0)
        for bank in memory.banks
        if plan.arena_bytes_in(bank.name) and not bank.slow
    }
    layers = sorted(_worthwhile(plan, memory), key=lambda layer: -layer.density)
    if not rooms or not layers:
        return plan

    def copied(chosen: Sequence[_Layer], ahead: Iterable[int] = ()) -> Plan | None:
        return _with(plan, memory, chosen, rooms, frozenset(ahead))

    chosen, found = _as_many_as_fit(layers, copied, reached)
    if found is None or found.memory is None:
        return plan
    groups = [each.group for each in sorted(found.memory.staged, key=lambda each: each.bytes)]
    return _as_many_as_fit(groups, lambda ahead: copied(chosen, ahead), reached)[1] or found


def _as_many_as_fit(
    items: Sequence[_T], trial: Callable[[Sequence[_T]], Plan | None], reached: Reached
) -> tuple[list[_T], Plan | None]:
    """Chooses items greedily: all of them if `trial` finds a plan for all, else each one that fits beside those chosen
    before, several at a time if there are many. Returns them and their plan, which is None if no item fits."""
    every = trial(items)
    if every is not None:
        return list(items), every
    kept: list[_T] = []
    best, at_once = None, -(-len(items) // limits.COPIES.most)
    if at_once > 1:
        reached.note(limits.COPIES)
    for first in range(0, len(items), at_once):
        more = [*kept, *items[first : first + at_once]]
        found = trial(more)
        if found is not None:
            kept, best = more, found
    return kept, best


def _worthwhile(plan: Plan, memory: Memory) -> Iterable[_Layer]:
    """Yields layers whose weights lie in slow banks and are loaded at least MIN_LOADS_PER_BYTE times."""
    slow = {bank.name for bank in memory.banks if bank.slow}
    for group in plan.groups:
        for stage in group.stages:
            banks = {memory.weights.get(constant_key(constant)) for constant in stage.constants}
            if banks & slow and constant_loads(stage) >= MIN_LOADS_PER_BYTE * constant_bytes(stage):
                yield _Layer(group.index, stage)


def _with(
    plan: Plan, memory: Memory, layers: Sequence[_Layer], rooms: Mapping[str, int], ahead: frozenset[int]
) -> Plan | None:
    """Adds copies of these layers' constants to a plan, begun one group earlier for the groups in `ahead`.

    None if the arena would exceed --max-ram, or the `rooms` (bank -> bytes) of its banks.
    """
    copies, buffers = [], []
    for group in sorted({layer.group for layer in layers}):
        arrays, end = [], 0
        of_group = [layer.stage for layer in layers if layer.group == group]
        for key in dict.fromkeys(constant_key(constant) for stage in of_group for constant in stage.constants):
            arrays.append(StagedArray(key, end))
            end += -(-len(key[3]) // STAGED_ALIGN) * STAGED_ALIGN
        begun, name = max(0, group - (group in ahead)), f"staged{group}"
        copies.append(Staged(group, begun, name, tuple(arrays)))
        buffers.append(Buffer(name, end, begun, group, STAGED_ALIGN, f"weights of group {group}"))
    placed = add_buffers(plan, memory, buffers, rooms)
    if placed is None:
        return None
    with_copies = replace(placed[1], staged=tuple(copies), uncopied_arena_bytes=plan.arena_bytes)
    found = replace(placed[0], memory=with_copies)
    most = plan.options.max_ram
    return found if most is None or found.ram_bytes <= most else None
