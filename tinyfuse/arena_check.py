"""An independent checker of placements: byte intervals, pair by pair, no code of the planner's."""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.arena.problem import Buffer, Overlap, Placement


def check_placement(buffers: Iterable[Buffer], overlaps: Iterable[Overlap], placement: Placement) -> None:
    """AssertionError, with both names, where two buffers that are alive together share bytes that no
    Overlap allows them; or where a buffer is missing, misaligned or outside the arena, or the
    placement's figures contradict each other."""
    buffers, overlaps = list(buffers), list(overlaps)
    names = [buffer.name for buffer in buffers]
    assert sorted(names) == sorted(placement.offsets), "the placement is of other buffers"
    for buffer in buffers:
        start = placement.offsets[buffer.name]
        assert start >= 0, f"{buffer.name} starts at {start}"
        assert start % buffer.align == 0, f"{buffer.name} at {start} is not aligned to {buffer.align}"
        assert start + buffer.bytes <= placement.arena_bytes, f"{buffer.name} ends outside the arena"
    for number, one in enumerate(buffers):
        for other in buffers[number + 1 :]:
            if _alive_together(one, other) and _share_bytes(one, other, placement):
                a, b = placement.offsets[one.name], placement.offsets[other.name]
                assert any(_allows(overlap, one, other, placement) for overlap in overlaps), (
                    f"{one.name} at {a} and {other.name} at {b} share bytes"
                )
    ends = [placement.offsets[buffer.name] + buffer.bytes for buffer in buffers if buffer.bytes]
    assert placement.arena_bytes == max(ends, default=0), "the arena is larger than what is in it"
    assert placement.lower_bound <= placement.arena_bytes, "the arena is below its lower bound"
    assert not placement.optimal or placement.lower_bound == placement.arena_bytes, "optimal, with a gap"


def _alive_together(one: Buffer, other: Buffer) -> bool:
    if one.last_step < other.first_step or other.last_step < one.first_step:
        return False
    starts = {one.first_step, other.first_step}
    if one.moments is None or other.moments is None or len(starts) > 1:
        return True
    if one.last_step not in starts and other.last_step not in starts:
        return True  # both go on into the next step
    return any(moment in other.moments for moment in one.moments)


def _share_bytes(one: Buffer, other: Buffer, placement: Placement) -> bool:
    start = max(placement.offsets[one.name], placement.offsets[other.name])
    end = min(placement.offsets[one.name] + one.bytes, placement.offsets[other.name] + other.bytes)
    return start < end


def _allows(overlap: Overlap, one: Buffer, other: Buffer, placement: Placement) -> bool:
    if {overlap.below, overlap.above} != {one.name, other.name} or overlap.distance < 0:
        return False
    return placement.offsets[overlap.above] - placement.offsets[overlap.below] >= overlap.distance
