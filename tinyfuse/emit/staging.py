"""C that copies weights out of slow memory before the groups that read them run."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.emit.arena import arena_c
from tinyfuse.plan import ConstantKey, Plan


def staged_pointers(plan: Plan, group: int) -> dict[ConstantKey, str]:
    """C expressions for the copies of the arrays that a group reads from the arena."""
    staged = plan.memory.staged_for(group) if plan.memory else None
    if staged is None:
        return {}
    start, arena = plan.placement.offsets[staged.buffer], arena_c(plan)
    return {
        array.key: f"((const {array.key[0]} *)(const void *)({arena.at(start + array.offset, 'arena')}))"
        for array in staged.arrays
    }


def copy_statements(plan: Plan, group: int, symbols: Mapping[ConstantKey, str]) -> tuple[str, ...]:
    """Statements before a group's call; `bytes` is the arena's address.

    They start the group's own copies unless an earlier group did, wait for them, and start the next group's copies if
    these are to run ahead.
    """
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
    """Statements that start the copies for `group`, if they are to start before group `before`."""
    staged = plan.memory.staged_for(group) if plan.memory else None
    if staged is None or staged.begun != before:
        return []
    start, arena = plan.placement.offsets[staged.buffer], arena_c(plan)
    return [
        f"{plan.options.name}_stage({arena.at(start + array.offset)}, {symbols[array.key]}, {len(array.key[3])}u);"
        f" /* for group {group} */"
        for array in staged.arrays
    ]
