"""The C that copies weights out of slow memory ahead of the groups that read them."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.emit.arena import arena_c
from tinyfuse.plan import ConstantKey, Plan


def staged_pointers(plan: Plan, group: int) -> dict[ConstantKey, str]:
    """C for the copy of each array that a group reads from the arena."""
    staged = plan.memory.staged_for(group) if plan.memory else None
    if staged is None:
        return {}
    start, arena = plan.placement.offsets[staged.buffer], arena_c(plan)
    return {
        array.key: f"((const {array.key[0]} *)(const void *)({arena.at(start + array.offset, 'arena')}))"
        for array in staged.arrays
    }


def copy_statements(plan: Plan, group: int, symbols: Mapping[ConstantKey, str]) -> tuple[str, ...]:
    """The statements before a group's call, the arena's address being `bytes`: copies for the group itself are begun,
    where they weren't before the last one, and awaited; then those for the next group are begun, if that is ahead."""
    if plan.memory is None:
        return ()
    name, own, following = plan.options.name, plan.memory.staged_for(group), plan.memory.staged_for(group + 1)
    lines = _start_copies(plan, group, group, symbols)
    if own is not None:
        lines.append(f"{name}_stage_wait();")
    if following is not None:
        lines += _start_copies(plan, group + 1, group, symbols)
    return tuple(lines)


def _start_copies(plan: Plan, group: int, before: int, symbols: Mapping[ConstantKey, str]) -> list[str]:
    """The copies for a group, if they begin before that other one."""
    staged = plan.memory.staged_for(group) if plan.memory else None
    if staged is None or staged.begun != before:
        return []
    start, arena = plan.placement.offsets[staged.buffer], arena_c(plan)
    return [
        f"{plan.options.name}_stage({arena.at(start + array.offset)}, {symbols[array.key]}, {len(array.key[3])}u);"
        f" /* for group {group} */"
        for array in staged.arrays
    ]
