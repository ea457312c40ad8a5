"""Independent checker of placements: compares byte intervals pair by pair, and uses no code of the planner."""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.arena.problem import Buffer, Overlap, Placement
from tinyfuse.errors import InternalFault


def check_placement(buffers: Iterable[Buffer], overlaps: Iterable[Overlap], placement: Placement) -> None:
    """Raises InternalFault if buffers that are alive together share bytes that no Overlap allows (with both names), if
    a buffer is missing, misaligned or outside the arena, or if the placement's figures contradict each other."""
    buffers, overlaps = list(buffers), list(overlaps)
    names = [buffer.name for buffer in buffers]
    if sorted(names) != sorted(placement.offsets):
        raise _fault("the placement is of other buffers")
    for buffer in buffers:
        start = placement.offsets[buffer.name]
        if start < 0:
            raise _fault(f"{buffer.name} starts at {start}")
        if start % buffer.align:
            raise _fault(f"{buffer.name} at {start} is not aligned to {buffer.align}")
        if start + buffer.bytes > placement.arena_bytes:
            raise _fault(f"{buffer.name} ends outside the arena")
    for number, one in enumerate(buffers):
        for other in buffers[number + 1 :]:
            if not (_alive_together(one, other) and _share_bytes(one, other, placement)):
                continue
            if not any(_allows(overlap, one, other, placement) for overlap in overlaps):
                a, b = placement.offsets[one.name], placement.offsets[other.name]
                raise _fault(f"{one.name} at {a} and {other.name} at {b} share bytes")
    ends = [placement.offsets[buffer.name] + buffer.bytes for buffer in buffers if buffer.bytes]
    if placement.arena_bytes != max(ends, default=0):
        raise _fault("the arena is larger than what is in it")
    if placement.lower_bound > placement.arena_bytes:
        raise _fault("the arena is below its lower bound")
    if placement.optimal and placement.lower_bound < placement.arena_bytes:
        raise _fault("optimal, with a gap")


def _fault(what: str) -> InternalFault:
    return InternalFault("the check of the placement", what)


def _alive_together(one: Buffer, other: Buffer) -> bool:
    if one.last_step < other.first_step or other.last_step < one.first_step:
        return False
    starts = {one.first_step, other.first_step}
    if one.live_sets is None or other.live_sets is None or len(starts) > 1:
        return True
    if one.last_step not in starts and other.last_step not in starts:
        return True  # both continue into the next step
    return any(live_set in other.live_sets for live_set in one.live_sets)


def _share_bytes(one: Buffer, other: Buffer, placement: Placement) -> bool:
    start = max(placement.offsets[one.name], placement.offsets[other.name])
    end = min(placement.offsets[one.name] + one.bytes, placement.offsets[other.name] + other.bytes)
    return start < end


def _allows(overlap: Overlap, one: Buffer, other: Buffer, placement: Placement) -> bool:
    if {overlap.below, overlap.above} != {one.name, other.name} or overlap.distance < 0:
        return False
    return placement.offsets[overlap.above] - placement.offsets[overlap.below] >= overlap.distance
