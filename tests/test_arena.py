"""The planner against brute force, its bound, its checker and its picture."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyfuse.arena import Buffer, Overlap, Placement, arena_map, plan_arena
from tinyfuse.arena_check import check_placement


def brute_force(buffers: list[Buffer], overlaps: list[Overlap]) -> int:
    """The least arena, trying for every order each start that the placed buffers suggest."""
    allowed = {(o.below, o.above): o.distance for o in overlaps}

    def apart(a: Buffer, b: Buffer) -> int:
        return min(a.bytes, allowed.get((a.name, b.name), a.bytes))

    def together(a: Buffer, b: Buffer) -> bool:
        return a.first_step <= b.last_step and b.first_step <= a.last_step

    best = None
    for order in permutations(buffers):
        offsets: dict[str, int] = {}
        for buffer in order:
            others = [o for o in order if o.name in offsets and together(o, buffer)]
            starts = {0} | {offsets[o.name] + apart(o, buffer) for o in others}
            starts |= {max(0, offsets[o.name] - apart(buffer, o)) for o in others}
            aligned = sorted(-(-s // buffer.align) * buffer.align for s in starts)
            offsets[buffer.name] = next(
                s
                for s in aligned
                if all(
                    s - offsets[o.name] >= apart(o, buffer) or offsets[o.name] - s >= apart(buffer, o)
                    for o in others
                )
            )
        top = max(offsets[b.name] + b.bytes for b in buffers)
        best = top if best is None else min(best, top)
    return best or 0


@st.composite
def problems(draw, most: int = 5) -> tuple[list[Buffer], list[Overlap]]:
    buffers = []
    for i in range(draw(st.integers(1, most))):
        first = draw(st.integers(0, 5))
        buffers.append(
            Buffer(
                f"b{i}", draw(st.integers(1, 40)), first, draw(st.integers(first, 6)),
                draw(st.sampled_from([1, 1, 4, 8])),
            )
        )  # fmt: skip
    overlaps = []
    for above in buffers:
        # an output begins at the step where the input it overlaps ends
        below = [b for b in buffers if b is not above and b.first_step == above.last_step > above.first_step]
        if below and draw(st.booleans()):
            chosen = draw(st.sampled_from(below))
            overlaps.append(Overlap(chosen.name, above.name, draw(st.integers(0, chosen.bytes))))
    return buffers, overlaps


@settings(max_examples=200, deadline=None)
@given(problems())
def test_what_is_called_optimal_is_optimal(problem) -> None:
    buffers, overlaps = problem
    placement = plan_arena(buffers, overlaps)
    check_placement(buffers, overlaps, placement)
    least = brute_force(buffers, overlaps)
    assert placement.optimal and placement.arena_bytes == least
    assert placement.lower_bound <= least


@settings(max_examples=100, deadline=None)
@given(problems(most=7), st.integers(1, 30))
def test_a_bound_is_a_bound_though_the_search_is_cut_short(problem, work: int) -> None:
    buffers, overlaps = problem
    cut, whole = plan_arena(buffers, overlaps, work_limit=work), plan_arena(buffers, overlaps, work_limit=10**6)
    check_placement(buffers, overlaps, cut)
    assert cut.lower_bound <= whole.arena_bytes <= cut.arena_bytes
    if cut.optimal:
        assert cut.arena_bytes == whole.arena_bytes


def chain(sizes: list[int]) -> list[Buffer]:
    return [Buffer(f"t{i}", size, max(0, i - 1), i, 4) for i, size in enumerate(sizes)]


def test_a_chain_takes_its_largest_pair() -> None:
    placement = plan_arena(chain([100, 400, 200, 300, 8]))
    assert placement.optimal and placement.arena_bytes == 600


def test_in_place_costs_nothing() -> None:
    buffers = chain([400, 400, 400])
    overlaps = [Overlap("t1", "t0", 0), Overlap("t2", "t1", 0)]
    assert plan_arena(buffers, overlaps).arena_bytes == 400


def test_a_staircase_of_overlaps() -> None:
    buffers = chain([400, 400, 400])
    overlaps = [Overlap("t1", "t0", 40), Overlap("t2", "t1", 40)]
    assert plan_arena(buffers, overlaps).arena_bytes == 480


def test_three_hundred_buffers_end_soon() -> None:
    buffers = chain([(i * 7919) % 5000 + 1 for i in range(300)])
    buffers += [Buffer(f"s{i}", (i * 104729) % 900 + 1, i, i + 5) for i in range(200)]
    placement = plan_arena(buffers, work_limit=200)
    check_placement(buffers, [], placement)


def test_no_buffers() -> None:
    assert plan_arena([]) == Placement({}, 0, 0, True)


def test_equal_names_are_refused() -> None:
    with pytest.raises(AssertionError):
        plan_arena([Buffer("a", 1, 0, 0), Buffer("a", 1, 0, 0)])


def test_it_is_deterministic() -> None:
    buffers = chain([(i * 31) % 97 + 1 for i in range(20)])
    assert plan_arena(buffers) == plan_arena(list(buffers))


@settings(max_examples=200, deadline=None)
@given(problems(), st.data())
def test_the_checker_sees_a_buffer_moved_into_another(problem, data) -> None:
    buffers, overlaps = problem
    placement = plan_arena(buffers, overlaps)
    one = data.draw(st.sampled_from(buffers))
    other = data.draw(st.sampled_from(buffers))
    together = one.first_step <= other.last_step and other.first_step <= one.last_step
    related = any({o.below, o.above} == {one.name, other.name} for o in overlaps)
    if one is other or not together or related:
        return
    moved = placement.offsets | {one.name: placement.offsets[other.name]}
    with pytest.raises(AssertionError):
        check_placement(buffers, overlaps, replace(placement, offsets=moved))


def test_the_checker_sees_an_overlap_that_is_too_deep() -> None:
    buffers, overlaps = chain([400, 400]), [Overlap("t1", "t0", 40)]
    check_placement(buffers, overlaps, Placement({"t0": 40, "t1": 0}, 440, 0, False))
    with pytest.raises(AssertionError, match="t0 at 36 and t1 at 0"):
        check_placement(buffers, overlaps, Placement({"t0": 36, "t1": 0}, 440, 0, False))


def test_the_map_shows_every_buffer() -> None:
    buffers = chain([100, 400, 200])
    text = arena_map(buffers, plan_arena(buffers))
    assert all(letter in text for letter in "ABC") and "t1" in text
    assert max(map(len, text.splitlines())) <= 120
