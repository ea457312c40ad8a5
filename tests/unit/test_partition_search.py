"""The search over partitions against every partition, and the choice of --optimize from its front."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from plan_parts import plan_groups, prepare
from random_graphs import Sketch, networks

from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import plan_instructions
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import OPTIMIZE, Options
from tinyfuse.plan.places import is_alias
from tinyfuse.rewrite import rewrite
from tinyfuse.schedule.groups.search import Candidate, Weigher, pareto_front
from tinyfuse.schedule.plans.pick_plan import MAX_SLOWDOWN, Choices, Plans
from tinyfuse.targets import load_target

M4 = load_target("cortex-m4")
NO_LIMIT = 1 << 40


def every_partition(graph: Graph, context: Context) -> list[tuple[float, float]]:
    """(bytes, instructions) of every partition of the operator order, by the search's own weights."""
    ops = tuple(op for op in graph.ops if not is_alias(op))
    weigher = Weigher(graph, ops, context)
    found = []
    for cuts in range(1 << max(0, len(ops) - 1)):
        borders = [0, *(i + 1 for i in range(len(ops) - 1) if cuts >> i & 1), len(ops)]
        weights = [weigher.weigh(i, j) for i, j in pairwise(borders)]
        if all(weights):
            for ways in product(*weights):
                found.append((max(w.ram for w in ways), sum(w.instructions for w in ways)))
    return found


@settings(max_examples=20, deadline=None)
@given(networks(most_layers=5))
def test_the_front_is_that_of_all_partitions(data: bytes) -> None:
    graph = rewrite(read_tflite("model.tflite", data), "rows", "auto")
    context = Context(M4)
    found = [(c.ram, c.instructions) for c in pareto_front(graph, context, NO_LIMIT)]
    every = every_partition(graph, context)
    for ram, instructions in every:
        assert any(r <= ram and i <= instructions + 1 for r, i in found)
    for ram, instructions in found:
        assert any(r == ram and i == pytest.approx(instructions) for r, i in every)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(networks())
def test_each_way_to_optimize_keeps_its_promise(data: bytes) -> None:
    graph = read_tflite("model.tflite", data)
    plans = {o: compile_graph(graph, M4, Options("net", optimize=o)) for o in OPTIMIZE}
    fast, balanced, small = (plans[o] for o in ("speed", "balanced", "ram"))
    assert fast.arena_bytes >= balanced.arena_bytes >= small.arena_bytes
    assert plan_instructions(fast) <= plan_instructions(balanced) + 1
    assert plan_instructions(balanced) <= plan_instructions(fast) * (1 + MAX_SLOWDOWN) + 1
    # least cost under --max-ram
    limited = compile_graph(graph, M4, Options("net", optimize="speed", max_ram=balanced.arena_bytes))
    assert limited.arena_bytes <= balanced.arena_bytes
    # rings that need not slide are found once a plan is chosen
    assert plan_instructions(limited) <= plan_instructions(balanced) * 1.01 + 1


@dataclass(frozen=True)
class _Planned:
    arena_bytes: int

    @property
    def ram_bytes(self) -> int:
        return self.arena_bytes


def choices(*figures: tuple[int, int, float]) -> Choices:
    """The choice among candidates with these estimates, arenas and instructions."""
    candidates = {
        Candidate(None, Context(M4), (), frozenset(), ram, instructions): _Planned(arena)
        for ram, arena, instructions in figures
    }
    return Choices(list(candidates), Plans(lambda candidate, most: candidates[candidate]))


def test_arenas_decide_and_estimates_only_order() -> None:
    offered = choices((100, 100, 200), (50, 60, 300), (40, 70, 301), (30, 35, 900))
    assert offered.choose("speed", None).arena_bytes == 100
    assert offered.choose("balanced", None).arena_bytes == 100
    assert offered.choose("ram", None).arena_bytes == 35
    assert offered.choose("speed", 80).arena_bytes == 60
    assert offered.choose("balanced", 80).arena_bytes == 60
    assert offered.choose("speed", 45).arena_bytes == 35
    assert offered.choose("speed", 10).arena_bytes == 35  # none fits: the caller says so with the least


def test_balanced_spends_eight_percent() -> None:
    offered = choices((100, 100, 1000), (50, 50, 1080), (40, 40, 1081))
    assert offered.choose("balanced", None).arena_bytes == 50


def test_beyond_six_percent_a_third_of_the_share_must_be_saved() -> None:
    assert choices((1000, 1000, 1000), (978, 978, 1070)).choose("balanced", None).arena_bytes == 1000
    assert choices((1000, 1000, 1000), (978, 978, 1060)).choose("balanced", None).arena_bytes == 978
    assert choices((1000, 1000, 1000), (976, 976, 1070)).choose("balanced", None).arena_bytes == 976


def test_ram_spends_one_percent_on_as_many_instructions() -> None:
    def arena(*faster: tuple[int, float], max_ram: int | None = None) -> int:
        figures = [(10_000, 10_000, 900), (1000, 1000, 10_000), *((size, size, speed) for size, speed in faster)]
        return choices(*figures).choose("ram", max_ram).arena_bytes

    assert arena() == 1000
    assert arena((1010, 9900)) == 1010
    assert arena((1010, 9910)) == 1000  # saves too little
    assert arena((1011, 5000)) == 1000  # takes too much RAM
    assert arena((1010, 5000), max_ram=1009) == 1000
    assert arena((1010, 5000), max_ram=1010) == arena((1010, 5000), max_ram=500) + 10 == 1010


def long_network(blocks: int) -> bytes:
    """A sequence of inverted residuals with five operators each."""
    sketch = Sketch(3)
    start = x = sketch.value((1, 16, 8, 4))
    for _ in range(blocks):
        wide = sketch.conv(x, 12, (1, 1), activation="RELU6")
        narrow = sketch.conv(sketch.depthwise(wide, (3, 3)), 4, (1, 1))
        x = sketch.relu(sketch.add(x, narrow), same=False)
    return sketch.build([start], [x])


@pytest.mark.slow
def test_two_hundred_operators_are_searched_with_progress() -> None:
    source, told = read_tflite("model.tflite", long_network(40)), []
    assert len(source.ops) == 200  # each ADD and the RELU behind it become one loop
    plan = compile_graph(source, M4, Options("net"), told.append)
    assert plan.arena_bytes < compile_graph(source, M4, Options("net", fusion="none")).arena_bytes
    assert any("of 160" in text for text in told)


def test_the_same_graph_gives_the_same_plan() -> None:
    source = read_tflite("model.tflite", long_network(4))
    first, again = (compile_graph(source, M4, Options("net")) for _ in range(2))
    assert first.placement == again.placement
    assert [len(group.ops) for group in first.groups] == [len(group.ops) for group in again.groups]


# --- estimates order, plans decide -----------------------------------------------------------------


def choices_of(*figures: tuple[int, int, int]) -> Choices:
    """Candidates with (bytes by the estimate, instructions, bytes of the plan)."""
    context = Context(M4)
    arenas = {Candidate(None, context, (), frozenset(), ram, speed): arena for ram, speed, arena in figures}
    return Choices(
        list(arenas), Plans(lambda candidate, most: SimpleNamespace(arena_bytes=arenas[candidate], ram_bytes=0))
    )


@pytest.mark.parametrize(("saved", "taken"), [(172, 0), (192, 0), (193, 193), (1000, 1000)])
def test_balanced_loops_over_rows_only_for_more_than_their_stack(saved: int, taken: int) -> None:
    """A network of 768 bytes took 172 fewer, 176 more of stack, and 9 % more instructions."""
    arenas = {
        Candidate(None, Context(M4), groups, frozenset(), arena, instructions): _Planned(arena)
        for groups, arena, instructions in [((("a",), ("b",)), 2000, 100), ((("a", "b"),), 2000 - saved, 102)]
    }
    offered = Choices(list(arenas), Plans(lambda candidate, most: arenas[candidate]))
    assert 2000 - offered.choose("balanced", None).arena_bytes == taken


@pytest.mark.parametrize(("saved", "taken"), [(136, 0), (312, 0), (313, 313)])
def test_ram_tiles_only_for_more_than_the_tiles_stack(saved: int, taken: int) -> None:
    """A network of 1,236 bytes took 136 fewer, 312 more of stack, and 37 % more instructions."""
    plain, tiled = (((SimpleNamespace(kind=kind),),) for kind in ("CONV_2D", "TILED"))
    arenas = {
        Candidate(None, Context(M4), groups, frozenset(), arena, instructions): _Planned(arena)
        for groups, arena, instructions in [(plain, 2000, 100), (tiled, 2000 - saved, 137)]
    }
    offered = Choices(list(arenas), Plans(lambda candidate, most: arenas[candidate]))
    assert 2000 - offered.choose("ram", None).arena_bytes == taken


def test_ram_takes_no_more_than_balanced_however_wrong_the_estimates_are() -> None:
    wrong = [(10 + k, 200, 99) for k in range(5)]  # the least estimates, none of which holds
    found = choices_of((40, 100, 40), *wrong)
    assert found.choose("balanced", None).arena_bytes == found.choose("ram", None).arena_bytes == 40


def test_of_equal_arenas_the_faster_plan_is_taken() -> None:
    slow = [(30 + k, 103, 40) for k in range(3)]
    fast = choices_of((40, 100, 40), *slow)
    assert fast.choose("balanced", None) is fast.choose("speed", None)


def test_overlaps_that_follow_one_another_are_one_tower() -> None:
    """Each layer's input lies above its output, which lies above the next one's: no placement is smaller."""
    sketch = Sketch(1)
    x = sketch.value((1, 24, 24, 3))
    y = sketch.depthwise(sketch.conv(x, 8, (3, 3), (2, 2)), (3, 3))
    y = sketch.depthwise(sketch.conv(y, 16, (1, 1)), (3, 3), (2, 2))
    source, options = read_tflite("model.tflite", sketch.build([x], [sketch.conv(y, 16, (1, 1))])), Options("net")
    graph, context = prepare(source, M4, options)
    for candidate in pareto_front(graph, context, NO_LIMIT):
        plan = plan_groups(source, graph, candidate.groups, context, options, candidate.rings)
        assert plan.placement.lower_bound <= 1.01 * candidate.ram
