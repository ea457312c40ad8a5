"""The arena planner against brute force; its bound, searches, checker and pictures."""

from __future__ import annotations

import random
import xml.dom.minidom
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from known_architectures import u_net

from tinyfuse.arena import Buffer, Overlap, Placement, arena_map, arena_svg, plan_arena, plan_arena_within
from tinyfuse.arena.bounds import OverlapChain, lower_bound
from tinyfuse.arena.check import check_placement
from tinyfuse.arena.climb import _Climb, climb
from tinyfuse.arena.fits import fits
from tinyfuse.arena.pairs import Budget
from tinyfuse.arena.problem import Problem
from tinyfuse.compiler import compile_graph
from tinyfuse.errors import InternalFault
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import Options
from tinyfuse.targets import load_target

PLENTY = 10**9

# --- brute force -------------------------------------------------------------------------------


def brute_force(buffers: list[Buffer], overlaps: list[Overlap]) -> int:
    """The least arena: tries every order, and each offset that placed buffers suggest."""

    def apart(a: Buffer, b: Buffer) -> int:
        distances = [o.distance for o in overlaps if (o.below, o.above) == (a.name, b.name)]
        return min([a.bytes, *distances])

    def together(a: Buffer, b: Buffer) -> bool:
        if not (a.bytes and b.bytes and a.first_step <= b.last_step and b.first_step <= a.last_step):
            return False
        return _in_one_live_set(a, b)

    least = None
    for order in permutations(buffers):
        offsets: dict[str, int] = {}
        for buffer in order:
            others = [o for o in order if o.name in offsets and together(o, buffer)]
            starts = {0} | {offsets[o.name] + apart(o, buffer) for o in others}
            aligned = sorted(-(-s // buffer.align) * buffer.align for s in starts)
            offsets[buffer.name] = next(
                s
                for s in aligned
                if all(
                    s - offsets[o.name] >= apart(o, buffer) or offsets[o.name] - s >= apart(buffer, o) for o in others
                )
            )
        top = max(offsets[b.name] + b.bytes for b in buffers)
        least = top if least is None else min(least, top)
    return least or 0


def _in_one_live_set(a: Buffer, b: Buffer) -> bool:
    """Tells whether all buffers share a step; live sets of other problems are empty."""
    common = range(max(a.first_step, b.first_step), min(a.last_step, b.last_step) + 1)
    for step in common:
        of_a, of_b = (x.live_sets if step == x.first_step else None for x in (a, b))
        if of_a is None or of_b is None or of_a & of_b:
            return True
    return False


@st.composite
def problems(draw, most: int = 5) -> tuple[list[Buffer], list[Overlap]]:
    """Draws small problems of every kind: dense or long, with overlaps that no schedule would have."""
    steps = draw(st.sampled_from([0, 1, 2, 5]))
    aligns = draw(st.sampled_from([[1], [4], [4, 16], [1, 4, 16], [3, 4, 8]]))
    buffers = []
    for i in range(draw(st.integers(1, most))):
        first = draw(st.integers(0, steps))
        last = draw(st.integers(first, steps))
        live_sets = None
        if draw(st.booleans()):
            live_sets = draw(st.frozensets(st.integers(0, 3), min_size=1))
        align = draw(st.sampled_from(aligns))
        buffers.append(Buffer(f"b{i}", draw(st.integers(0, 40)), first, last, align, live_sets=live_sets))
    overlaps = []
    pairs = [(b, a) for b in buffers for a in buffers if a is not b and b.first_step == a.last_step]
    for below, above in draw(st.lists(st.sampled_from(pairs), max_size=5)) if pairs else []:
        distance = draw(st.sampled_from([0, below.bytes // 4, below.bytes // 2, below.bytes]))
        overlaps.append(Overlap(below.name, above.name, distance))
    try:
        Problem(buffers, overlaps)
    except InternalFault:
        assume(False)  # in-place overlaps in a circle
    return buffers, overlaps


def check_optimal(buffers: list[Buffer], overlaps: list[Overlap]) -> int:
    """Plans an arena, which must be optimal and be proven optimal."""
    placement = plan_arena(buffers, overlaps)
    check_placement(buffers, overlaps, placement)
    assert placement.optimal and placement.arena_bytes == brute_force(buffers, overlaps)
    return placement.arena_bytes


@settings(max_examples=150, deadline=None)
@given(problems())
def test_what_is_called_optimal_is_optimal(problem) -> None:
    check_optimal(*problem)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(problems(most=7))
def test_what_is_called_optimal_is_optimal_with_more_buffers(problem) -> None:
    check_optimal(*problem)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_what_fits_is_found_and_nothing_else(problem) -> None:
    buffers, overlaps = problem
    least, inner = brute_force(buffers, overlaps), Problem(buffers, overlaps)
    for most in (least, least + 3, 2 * least):
        found = fits(inner, most, Budget(PLENTY))
        assert found.order is not None and sorted(found.order) == list(range(len(buffers)))
        assert least <= inner.top(inner.place(found.order)) <= most
    if least:
        nothing = fits(inner, least - 1, Budget(PLENTY))
        assert nothing.order is None and nothing.known
    assert lower_bound(inner) <= least


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_what_moves_alone_is_placed_anew(problem, draws) -> None:
    """Offsets that a changed order leaves as they were are those of the whole order, placed anew."""
    inner = Problem(*problem)
    order = [i for i, others in enumerate(inner.apart) if others]
    draws.shuffle(order)
    trial = _Climb(inner, order, inner.place(order))
    trial.order, trial.settled, trial.top = order, 0, 1 << 30
    for _ in range(4 if order else 0):
        item, place = draws.choice(order), draws.randrange(len(order))
        old = order.index(item)
        order.insert(place, order.pop(old))
        assert trial._place(order, min(old, place), {item})
        assert {i: trial.offsets[i] for i in order} == inner.place(order)


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 60))
def test_what_is_known_sooner(problem, most: int) -> None:
    inner = Problem(*problem)
    for alive in inner.live_sets:
        chain = OverlapChain(inner, alive)
        assert chain.bytes <= chain.at_most
    order = list(range(len(inner.buffers)))
    placed = inner.place(order)
    is_below = all(placed[i] + buffer.bytes < most for i, buffer in enumerate(inner.buffers))
    assert inner.place_below(most, order) == (placed if is_below else None)


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(-8, 8), st.integers(0, 300))
def test_what_a_cut_search_says_is_true(problem, more: int, work: int) -> None:
    buffers, overlaps = problem
    inner, least = Problem(buffers, overlaps), brute_force(buffers, overlaps)
    most = max(0, least + more)
    found = fits(inner, most, Budget(work))
    if found.order is not None:
        assert inner.top(inner.place(found.order)) <= most
    elif found.known:
        assert most < least


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(problems(most=6), st.randoms(use_true_random=False))
def test_trials_only_find_what_is_better(problem, draws) -> None:
    buffers, overlaps = problem
    inner, order = Problem(buffers, overlaps), list(range(len(buffers)))
    draws.shuffle(order)
    begun = inner.place(order)
    least, size = brute_force(buffers, overlaps), inner.top(begun)
    found = climb(inner, begun, least)
    assert found == climb(inner, begun, least)
    if found is not None:
        assert sorted(found) == sorted(order)
        assert least <= inner.top(inner.place(found)) < size
        assert climb(inner, begun, size) is None


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 300))
def test_a_bound_is_a_bound_though_the_search_is_cut_short(problem, work: int) -> None:
    buffers, overlaps = problem
    placement = plan_arena(buffers, overlaps, work_limit=work)
    check_placement(buffers, overlaps, placement)
    least = brute_force(buffers, overlaps)
    assert placement.lower_bound <= least <= placement.arena_bytes


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(-8, 8), st.sampled_from([None, 0, 100, 1000]))
def test_a_placement_within_a_limit_is_found_wherever_one_without_is(problem, more: int, work: int | None) -> None:
    """However little work there may be: what needs no look at larger arenas is never a larger one."""
    buffers, overlaps = problem
    cut = {} if work is None else {"work_limit": work}
    free = plan_arena(buffers, overlaps, **cut)
    most = free.arena_bytes + more
    found = plan_arena_within(most, buffers, overlaps, **cut)
    if found is None:
        assert more < 0
        return
    check_placement(buffers, overlaps, found)
    least = brute_force(buffers, overlaps)
    assert found.lower_bound <= least <= found.arena_bytes <= min(most, free.arena_bytes)
    assert found.lower_bound >= free.lower_bound


# --- patterns of real models -------------------------------------------------------------------


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
    """No live set needs more than 440, but each output lies 40 below its input."""
    buffers = chain([400] * 6)
    overlaps = [Overlap(f"t{i + 1}", f"t{i}", 40) for i in range(5)]
    assert check_optimal(buffers, overlaps) == 600


def test_a_staircase_can_be_left() -> None:
    """A small tensor half-way lies beside its neighbours instead, and the stairs begin anew."""
    buffers = chain([400, 400, 20, 400, 400])
    assert check_optimal(buffers, [Overlap(f"t{i + 1}", f"t{i}", 20) for i in range(4)]) == 420


def test_overlaps_are_not_transitive() -> None:
    """c over b and b over a: c and a are alive together, and must stay apart."""
    buffers = [Buffer("a", 100, 0, 2, 1), Buffer("b", 100, 1, 2, 1), Buffer("c", 100, 2, 2, 1)]
    overlaps = [Overlap("b", "a", 10), Overlap("c", "b", 10)]
    assert check_optimal(buffers, overlaps) == 200


def test_a_residual_block() -> None:
    """x stays while two convolutions run, then the ADD writes over either operand."""
    buffers = [
        Buffer("x", 1000, 0, 2, 4), Buffer("a", 1000, 0, 1, 4), Buffer("b", 1000, 1, 2, 4),
        Buffer("y", 1000, 2, 3, 4),
    ]  # fmt: skip
    assert plan_arena(buffers).arena_bytes == 3000
    overlaps = [Overlap("y", "x", 0), Overlap("y", "b", 0), Overlap("b", "a", 100)]
    assert check_optimal(buffers, overlaps) == 2100


def test_an_inverted_residual_block() -> None:
    """Expanded sixfold in between: the peak is there, and the overlap of the depthwise counts."""
    buffers = [
        Buffer("x", 96, 0, 3, 4), Buffer("wide", 576, 0, 1, 4), Buffer("dw", 576, 1, 2, 4),
        Buffer("narrow", 96, 2, 3, 4), Buffer("y", 96, 3, 3, 4), Buffer("scratch", 60, 1, 1, 16),
    ]  # fmt: skip
    overlaps = [Overlap("dw", "wide", 48), Overlap("y", "x", 0)]
    assert check_optimal(buffers, overlaps) == 780


def streaming_chain(length: int, seed: int) -> tuple[list[Buffer], list[Overlap]]:
    """Buffers of a chain with overlaps and scratch, as row groups make them."""
    rng = random.Random(seed)
    sizes = [4 * rng.randint(10, 3000) for _ in range(length)]
    buffers, overlaps = chain(sizes), []
    for i in range(1, length):
        growth = max(0, sizes[i] - sizes[i - 1])
        distance = rng.choice([growth, growth + 4 * rng.randint(0, 60), sizes[i]])
        overlaps.append(Overlap(f"t{i}", f"t{i - 1}", min(sizes[i], distance)))
        buffers.append(Buffer(f"s{i}", 16 * rng.randint(1, 60), i - 1, i - 1, 16))
    return buffers, overlaps


@pytest.mark.parametrize(("length", "seed"), [(15, 0), (15, 1), (30, 2), (150, 3)])
def test_streaming_chains_are_proven(length: int, seed: int) -> None:
    buffers, overlaps = streaming_chain(length, seed)
    placement = plan_arena(buffers, overlaps)
    check_placement(buffers, overlaps, placement)
    assert placement.optimal


# --- odd input ---------------------------------------------------------------------------------


def test_trials_find_what_exact_searches_have_no_time_for() -> None:
    """Rings, scratch and skip connections of one group: 4,284 bytes without trials."""
    plan = compile_graph(read_tflite("u_net", u_net()), load_target("cortex-m4"), Options(name="u_net"))
    assert plan.placement.optimal and plan.arena_bytes == 4268


def test_no_buffers() -> None:
    assert plan_arena([]) == Placement({}, 0, 0, True)


def test_buffers_of_no_bytes_lie_anywhere() -> None:
    buffers = [Buffer("a", 0, 0, 3), Buffer("b", 10, 0, 3), Buffer("c", 0, 1, 1)]
    placement = plan_arena(buffers, [Overlap("a", "b", 0)])
    check_placement(buffers, [], placement)
    assert placement.arena_bytes == 10 and placement.optimal


def test_the_arena_is_not_rounded() -> None:
    assert plan_arena([Buffer("a", 5, 0, 0), Buffer("b", 3, 0, 0)]).arena_bytes == 19


@pytest.mark.parametrize(
    ("buffers", "overlaps", "message"),
    [
        ([Buffer("a", 1, 0, 0), Buffer("a", 1, 0, 0)], [], "one name"),
        ([Buffer("a", 1, 2, 1)], [], "a: steps 2 to 1"),
        ([Buffer("a", -1, 0, 0)], [], "a: -1 bytes"),
        ([Buffer("a", 1, 0, 0, align=0)], [], "alignment 0"),
        ([Buffer("a", 1, 0, 0)], [Overlap("b", "a", 0)], "no such buffer"),
        ([Buffer("a", 1, 0, 0)], [Overlap("a", "a", 0)], "impossible"),
        ([Buffer("a", 1, 0, 0), Buffer("b", 1, 0, 0)], [Overlap("a", "b", 2)], "impossible"),
        (
            [Buffer(name, 1, 0, 0) for name in "abc"],
            [Overlap("a", "b", 0), Overlap("b", "c", 0), Overlap("c", "a", 0)],
            "form a circle",
        ),
    ],
)
def test_contradictions_are_refused(buffers, overlaps, message: str) -> None:
    with pytest.raises(InternalFault, match=message):
        plan_arena(buffers, overlaps)


def test_two_that_overlap_in_place_both_ways_are_free() -> None:
    buffers = [Buffer("a", 30, 0, 0, 1), Buffer("b", 50, 0, 0, 1)]
    overlaps = [Overlap("a", "b", 0), Overlap("b", "a", 0)]
    assert check_optimal(buffers, overlaps) == 50


def test_one_that_conflicts_with_nothing_beside_some_that_do() -> None:
    buffers = [
        Buffer("a", 6, 0, 0, 1),
        Buffer("b", 9, 0, 1, 1),
        Buffer("c", 5, 1, 2, 1),
        Buffer("d", 7, 0, 2, 1),
    ]
    free = [Overlap("a", name, 0) for name in "bd"] + [Overlap(name, "a", 0) for name in "bd"]
    assert check_optimal(buffers, [*free, Overlap("c", "b", 3), Overlap("d", "c", 2)]) == 16


def test_buffers_with_different_alignments() -> None:
    """Two may save 8 bytes, which the others' alignment takes back."""
    buffers = [
        Buffer("a", 12, 0, 0, 4),
        Buffer("b", 4, 0, 0, 4),
        Buffer("c", 2, 0, 0, 16),
        Buffer("d", 10, 0, 0, 16),
    ]
    assert check_optimal(buffers, [Overlap("d", "c", 2)]) == 32


def test_alignments_without_a_common_measure() -> None:
    buffers = [Buffer(f"b{i}", 5000 + i, i // 2, 3, align) for i, align in enumerate([4096, 4095, 1, 7, 64])]
    check_placement(buffers, [], plan_arena(buffers))


# --- work and determinism ----------------------------------------------------------------------


def crowd(count: int, steps: int, seed: int) -> tuple[list[Buffer], list[Overlap]]:
    """Many simultaneous buffers of awkward sizes and alignments, which are hard to prove."""
    rng = random.Random(seed)
    buffers = []
    for i in range(count):
        first = rng.randrange(steps)
        last = min(steps - 1, first + rng.randrange(8))
        buffers.append(Buffer(f"b{i}", rng.randint(1, 1000), first, last, rng.choice([1, 4, 16])))
    overlaps = [
        Overlap(b.name, a.name, rng.randint(0, b.bytes))
        for a, b in pairwise(buffers)
        if a.first_step < a.last_step == b.first_step
    ]
    return buffers, overlaps


@pytest.mark.parametrize(("count", "steps"), [(30, 15), (300, 100), (300, 300), (120, 1)])
def test_hard_problems_end_within_the_work_limit(count: int, steps: int, monkeypatch) -> None:
    """Counted, not timed: no budget is overdrawn by more than one step of a search."""
    budgets: list[tuple[int, Budget]] = []

    class Counted(Budget):
        def __init__(self, work: int):
            super().__init__(work)
            budgets.append((work, self))

    monkeypatch.setattr("tinyfuse.arena.planner.Budget", Counted)
    buffers, overlaps = crowd(count, steps, seed=1)
    placement = plan_arena(buffers, overlaps, work_limit=40_000)
    check_placement(buffers, overlaps, placement)
    assert sum(work for work, _ in budgets) <= 50_000
    widest = max(len(alive) for alive in Problem(buffers, overlaps).live_sets)
    assert all(budget.left > -40 * (widest + 3) ** 2 for _, budget in budgets)


def test_it_is_deterministic() -> None:
    for buffers, overlaps in (crowd(20, 10, seed=3), streaming_chain(20, seed=3)):
        first, second = (plan_arena(list(buffers), list(overlaps), work_limit=100_000) for _ in range(2))
        assert first == second and list(first.offsets) == [buffer.name for buffer in buffers]


# --- the checker -------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(problems(), st.data())
def test_the_checker_sees_a_buffer_moved_into_another(problem, data) -> None:
    buffers, overlaps = problem
    placement = plan_arena(buffers, overlaps)
    pairs = [
        (a, b)
        for a in buffers
        for b in buffers
        if a is not b and a.bytes and b.bytes
        and a.first_step <= b.last_step and b.first_step <= a.last_step
        and _in_one_live_set(a, b)
        and not any({o.below, o.above} == {a.name, b.name} for o in overlaps)
    ]  # fmt: skip
    if not pairs:
        return
    one, other = data.draw(st.sampled_from(pairs))
    at = placement.offsets[other.name]
    moved = Placement(placement.offsets | {one.name: at}, placement.arena_bytes + one.bytes, 0, False)
    with pytest.raises(InternalFault):
        check_placement(buffers, overlaps, moved)
    # with only the two of them, the message names both
    alone = Placement({one.name: at, other.name: at}, at + max(one.bytes, other.bytes), 0, False)
    free = [replace(one, align=1), replace(other, align=1)]
    with pytest.raises(InternalFault, match=f"{one.name} at {at} and {other.name} at {at} share bytes"):
        check_placement(free, [], alone)


def test_the_checker_sees_an_overlap_that_is_too_deep() -> None:
    buffers, overlaps = chain([400, 400]), [Overlap("t1", "t0", 40)]
    check_placement(buffers, overlaps, Placement({"t0": 40, "t1": 0}, 440, 0, False))
    with pytest.raises(InternalFault, match="t0 at 36 and t1 at 0"):
        check_placement(buffers, overlaps, Placement({"t0": 36, "t1": 0}, 436, 0, False))
    with pytest.raises(InternalFault, match="t0 at 0 and t1 at 40"):
        check_placement(buffers, overlaps, Placement({"t0": 0, "t1": 40}, 440, 0, False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": {"t0": 0}}, "other buffers"),
        ({"offsets": {"t0": 0, "t1": 100, "t2": 0}}, "other buffers"),
        ({"offsets": {"t0": 0, "t1": 102}, "arena_bytes": 202}, "t1 at 102 is not aligned to 4"),
        ({"offsets": {"t0": -4, "t1": 100}}, "t0 starts at -4"),
        ({"arena_bytes": 196}, "t1 ends outside"),
        ({"arena_bytes": 204}, "larger than what is in it"),
        ({"lower_bound": 204}, "below its lower bound"),
        ({"lower_bound": 196}, "optimal, with a gap"),
    ],
)
def test_the_checker_sees_wrong_figures(change, message: str) -> None:
    buffers = chain([100, 100])
    right = Placement({"t0": 0, "t1": 100}, 200, 200, True)
    check_placement(buffers, [], right)
    with pytest.raises(InternalFault, match=message):
        check_placement(buffers, [], replace(right, **change))


# --- pictures ----------------------------------------------------------------------------------


def test_the_map_shows_lifetimes_against_offsets() -> None:
    buffers = [Buffer("in", 200, 0, 0, 1), Buffer("out", 100, 0, 1, 1, owner="the output")]
    text = arena_map(buffers, Placement({"in": 0, "out": 200}, 300, 300, True))
    rows = [line.split("|")[1] for line in text.splitlines() if "|" in line]
    assert len(rows) == 24
    # steps are columns of 12 characters; the arena's first byte is in the lowest line
    assert rows[0] == rows[7] == "B" * 24 and rows[8] == rows[23] == "A" * 12 + "." * 12
    assert "  A         0       200  0-0      in" in text and "out          the output" in text


def test_the_map_shows_what_shares_bytes_side_by_side() -> None:
    buffers = [Buffer("a", 100, 0, 0, 1), Buffer("b", 100, 0, 0, 1), Buffer("gone", 0, 0, 0)]
    text = arena_map(buffers, Placement({"a": 0, "b": 0, "gone": 0}, 100, 100, True))
    assert "|AAAAAABBBBBB" in text and "gone" not in text


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("problem", [crowd(150, 40, seed=5), crowd(90, 1, seed=6), streaming_chain(200, seed=7)])
def test_pictures_of_many_buffers(problem, width: int) -> None:
    buffers, overlaps = problem
    buffers = [replace(buffer, owner="ä<&>\n" + 100 * "x") for buffer in buffers]
    placement = plan_arena(buffers, overlaps, work_limit=0)
    text = arena_map(buffers, placement, width)
    assert text == arena_map(buffers, placement, width) and text.isascii()
    assert max(map(len, text.splitlines())) <= width
    svg = arena_svg(buffers, placement)
    assert svg == arena_svg(buffers, placement)
    rectangles = xml.dom.minidom.parseString(svg).getElementsByTagName("rect")
    assert len(rectangles) == 1 + len(buffers)


def test_the_svg_has_one_rectangle_a_run_of_live_sets() -> None:
    buffers = [Buffer("a", 64, 0, 0, live_sets=frozenset({0, 1, 3})), Buffer("b", 64, 0, 1)]
    svg = arena_svg(buffers, plan_arena(buffers))
    drawn = xml.dom.minidom.parseString(svg)
    assert len(drawn.getElementsByTagName("rect")) == 1 + 2 + 1
    titles = [title.firstChild.data for title in drawn.getElementsByTagName("title")]
    assert titles == ["a: 64 bytes at 0, group 0", "b: 64 bytes at 64, groups 0 to 1"]
    assert "Arena: 128 bytes, proven minimal" in svg


def test_the_svg_colours_by_role_labels_by_layer_and_hatches_what_is_shared() -> None:
    buffers = [Buffer("t0", 100, 0, 0), Buffer("t1", 100, 0, 1), Buffer("t2", 50, 1, 1)]
    placement = Placement({"t0": 64, "t1": 0, "t2": 128}, 178, 178, True)
    roles = {"t0": ("input", "x"), "t1": ("ring", "#1 CONV_2D"), "t2": ("ring", "#2 CONV_2D")}
    svg = arena_svg(buffers, placement, roles=roles)
    drawn = xml.dom.minidom.parseString(svg)
    fills = [rect.getAttribute("fill") for rect in drawn.getElementsByTagName("rect")][1:]
    assert fills[1] == fills[2] != fills[0]
    texts = [text.firstChild.data for text in drawn.getElementsByTagName("text")]
    assert {"x", "#1 CONV_2D", "#2 CONV_2D", "group", "input", "rows in a ring"} <= {*texts}
    assert texts.count("t1") == 0 and any(text.startswith("Hatched: ") for text in texts)
    (shared,) = [path for path in svg.splitlines() if 'fill="url(#shared)" pointer' in path]
    assert shared.count("M") == 1
    apart = arena_svg(buffers, Placement({"t0": 100, "t1": 0, "t2": 100}, 200, 200, True), roles=roles)
    assert "Hatched" not in apart and 'fill="url(#shared)"' not in apart


def test_the_svg_states_what_the_module_states_and_has_room_for_it() -> None:
    buffers = [Buffer("a", 5150, 0, 0)]
    placement = replace(plan_arena(buffers), lower_bound=5000)
    svg = arena_svg(buffers, placement, 5152, 5000)
    drawn = xml.dom.minidom.parseString(svg)
    title = "Arena: 5,152 bytes, at least 5,000 are needed"
    assert title in svg and ">5,152<" in svg and "5,150</text>" not in svg
    # letters of a bold, wide font take 8 pixels of 13 in the mean
    assert int(drawn.documentElement.getAttribute("width")) >= 70 + 8 * len(title)
    assert "proven minimal" in arena_svg(buffers, placement, 5152, 5152)


def test_an_empty_arena_has_pictures() -> None:
    placement = plan_arena([])
    assert arena_map([], placement) == "  (empty)"
    xml.dom.minidom.parseString(arena_svg([], placement))
