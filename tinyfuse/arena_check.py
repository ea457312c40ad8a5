"""An independent checker of placements: byte intervals, pair by pair, no code of the planner's."""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.arena.problem import Buffer, Overlap, Placement


def check_placement(
    buffers: Iterable[Buffer], overlaps: Iterable[Overlap], placement: Placement
) -> None:
    """AssertionError, with both names, where two buffers that are alive together share bytes that no
    Overlap allows them; or where a buffer is misaligned, outside the arena or missing."""
    buffers, overlaps = list(buffers), list(overlaps)
    for buffer in buffers:
        start = placement.offsets[buffer.name]
        assert start >= 0 and start % buffer.align == 0, f"{buffer.name}: offset {start}"
        assert start + buffer.bytes <= placement.arena_bytes, f"{buffer.name} ends outside the arena"
    for number, one in enumerate(buffers):
        for other in buffers[number + 1 :]:
            if one.last_step < other.first_step or other.last_step < one.first_step:
                continue
            if None not in (one.moments, other.moments) and not one.moments & other.moments:
                continue
            a, b = placement.offsets[one.name], placement.offsets[other.name]
            disjoint = a + one.bytes <= b or b + other.bytes <= a or not one.bytes or not other.bytes
            allowed = any(
                placement.offsets[o.above] - placement.offsets[o.below] >= o.distance
                for o in overlaps
                if {o.below, o.above} == {one.name, other.name}
            )
            assert disjoint or allowed, f"{one.name} at {a} and {other.name} at {b} share bytes"
    assert placement.lower_bound <= placement.arena_bytes
