"""Checks the assignment to memory banks by adding up bytes, without code of the strategies that made it."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array
from tinyfuse.plan.memory import ArenaPart, Memory, Staged
from tinyfuse.plan.plan import Plan, constant_key

#: bytes of a data cache line of M7 and M85; memory that a DMA writes must not share one
_LINE = 32

#: stamp of bytes that a copy for group 0 wrote, _COPY - n for group n; never a value's number
_COPY = -10


def check_memory(plan: Plan) -> None:
    """Raises InternalFault if anything has no bank, lies in the wrong kind of bank, or makes a bank overflow in some
    order of linking."""
    memory = plan.memory
    if memory is None:
        return
    held = {bank.name: 0 for bank in memory.banks}
    ram = any(not bank.flash for bank in memory.banks)
    _check_parts(plan, memory.parts)
    held_in: list[tuple[str, str | None, int, int]] = [
        *(("a part of the arena", part.bank, part.bytes, 1) for part in memory.parts),
        *([] if memory.parts else [("the arena", memory.arena, plan.arena_bytes, 1)]),
        ("the state", memory.state, plan.state_bytes, _LINE),
    ]
    for what, name, size, align in held_in:
        if (name is not None) != (ram and size > 0):
            raise _fault(f"{what} has {'no' if name is None else 'a needless'} bank")
        if name is not None:
            if memory.bank(name).flash:
                raise _fault(f"{what} lies in flash")
            # alignment adds bytes only after another array
            held[name] += size + (align - 1 if held[name] else 0)
    flash = {bank.name for bank in memory.banks if bank.flash}
    if set(memory.weights) != (set(plan.unique_constants) if flash else set()):
        raise _fault("weights without a bank, or banks without weights")
    for key, name in memory.weights.items():
        if name not in flash:
            raise _fault(f"weights lie in {name}, which is not flash")
        held[name] += len(key[3]) + key[1] - 1
    for bank in memory.banks:
        taken = held[bank.name]
        if bank.flash:  # the linker rounds its end
            taken = -(-taken // 4) * 4
        if taken > bank.bytes:
            raise _fault(f"{bank.name} holds {taken} bytes and has {bank.bytes}")
    _check_staged(plan, memory)


def _check_parts(plan: Plan, parts: Sequence[ArenaPart]) -> None:
    """Checks that the arena's parts follow each other without gaps, in different banks, aligned to cache lines, and
    that no buffer crosses a border."""
    if not parts:
        return
    if len(parts) < 2 or len({part.bank for part in parts}) < len(parts) or (plan.memory and plan.memory.arena):
        raise _fault("an arena that is divided into too few banks")
    end = 0
    for part in parts:
        if part.start != end or part.bytes <= 0 or part.start % _LINE or part.bytes % 4:
            raise _fault(f"the arena's part {part.bank} begins or ends where none does")
        end += part.bytes
    for buffer in plan.buffers:
        first = plan.placement.offsets[buffer.name]
        inside = [part for part in parts if part.start <= first and first + buffer.bytes <= part.start + part.bytes]
        if not inside:
            raise _fault(f"{buffer.name} lies in two parts of the arena, or in none")


def _check_staged(plan: Plan, memory: Memory) -> None:
    """Checks that every copy has its own bytes in a buffer that lives long enough, and copies weights of its group."""
    if len({staged.group for staged in memory.staged}) < len(memory.staged):
        raise _fault("two copies for one group")
    if memory.staged and plan.arena_align % _LINE:
        raise _fault("the arena's start shares a line of the cache")
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    for staged in memory.staged:
        buffer, group = buffers[staged.buffer], plan.groups[staged.group]
        keys = {constant_key(constant) for stage in group.stages for constant in stage.constants}
        if not {array.key for array in staged.arrays} <= keys & set(memory.weights):
            raise _fault(f"group {staged.group}: a copy of what it doesn't read")
        if not buffer.first_step <= staged.begun <= staged.group <= buffer.last_step:
            raise _fault(f"{staged.buffer} is not alive from the start of its copy to the end of its group")
        if plan.placement.offsets[staged.buffer] % _LINE or not _apart(staged, buffer.bytes):
            raise _fault(f"{staged.buffer}: copies that share bytes, or a line of the cache")


def begin_copies(plan: Plan, group: int, found: Array) -> None:
    """Plays the copies that begin before `group`: stamps their bytes in `found`, the arena. Raises InternalFault if the
    copies for `group` were overwritten."""
    for staged in plan.memory.staged if plan.memory else ():
        if staged.begun == group:
            found[_bytes(plan, staged)] = _COPY - staged.group
    keep_copies(plan, group, found)


def keep_copies(plan: Plan, group: int, found: Array) -> None:
    """Raises InternalFault if something was written over the copies for `group`; `found` is the arena."""
    staged = plan.memory.staged_for(group) if plan.memory else None
    if staged is not None and (found[_bytes(plan, staged)] != _COPY - group).any():
        raise _fault(f"group {group}: {staged.buffer} was overwritten")


def _bytes(plan: Plan, staged: Staged) -> slice:
    start = plan.placement.offsets[staged.buffer]
    return slice(start, start + next(buffer.bytes for buffer in plan.buffers if buffer.name == staged.buffer))


def _apart(staged: Staged, size: int) -> bool:
    """Tells whether the arrays lie in order inside the buffer, none sharing a cache line with another."""
    end = 0
    for array in staged.arrays:
        if array.offset % _LINE or array.offset < end:
            return False
        end = array.offset + -(-len(array.key[3]) // _LINE) * _LINE
    return end <= size


def _fault(what: str) -> InternalFault:
    return InternalFault("the check of memory banks", what)
