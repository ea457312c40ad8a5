"""Sliding rings: their rows are contiguous, and the bytes of the last rows are free most of the time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executors import assert_all_exact, assert_exact
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_parts import plan_groups
from random_graphs import Sketch, networks
from resizing_graphs import longest_plans, resizing_chains

from tinyfuse.compiler import compile_graph
from tinyfuse.errors import InternalFault
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import _Player
from tinyfuse.plan.rows import RingModes
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.feed_rows import feed_rows
from tinyfuse.schedule.groups.search import pareto_front
from tinyfuse.targets import load_target


def chain(depth: int = 4) -> bytes:
    """Alternating depthwise 3x3 and pointwise convolutions: each depthwise one needs a ring of three rows."""
    sketch = Sketch(1)
    x = sketch.value((1, 40, 10, 1))
    y = sketch.conv(x, 16, (5, 4), (2, 2))
    for _ in range(depth):
        y = sketch.conv(sketch.depthwise(y, (3, 3)), 16, (1, 1))
    return sketch.build([x], [sketch.pool(y, "AVERAGE_POOL_2D", (20, 5), (1, 1))])


def planned(data: bytes, optimize: str = "ram", target: str = "host", **options) -> Plan:
    return compile_graph(
        read_tflite("m.tflite", data), load_target(target), Options("net", optimize=optimize, **options)
    )


def sliding(plan: Plan) -> list[int]:
    return [storage.ring_rows for storage in plan.storage.values() if storage.slides]


def test_rings_of_many_rows_slide_and_save_bytes() -> None:
    plan = planned(chain(), "balanced")
    assert sliding(plan) and set(sliding(plan)) == {3}
    still = plan_groups(
        plan.source, plan.graph, [list(group.ops) for group in plan.groups], plan.context, plan.options,
        rings=RingModes(fixed=frozenset(range(len(plan.groups)))),
    )  # fmt: skip
    assert not sliding(still)
    assert plan.arena_bytes < still.arena_bytes
    assert_exact(plan)


def test_for_speed_nothing_is_moved() -> None:
    plan = planned(chain(), optimize="speed", max_ram=1 << 11)
    assert not sliding(plan)


def test_rings_that_slide_are_told_by_the_checker() -> None:
    plan = planned(chain(), "balanced")
    tensor = next(t for t, storage in plan.storage.items() if storage.slides)
    for wrong in (replace(plan.storage[tensor], slides=False), replace(plan.storage[tensor], ring_rows=2)):
        with pytest.raises(InternalFault):
            _Player(replace(plan, storage=plan.storage | {tensor: wrong})).play()


def test_where_moving_saves_nothing_rows_stay() -> None:
    """With a single ring no other buffer can use its free bytes."""
    sketch = Sketch(2)
    x = sketch.value((1, 9, 7, 8))
    plan = planned(sketch.build([x], [sketch.depthwise(sketch.conv(x, 8, (3, 3)), (3, 3))]))
    assert not sliding(plan)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_ring_with_two_readers(stride: int) -> None:
    """The readers need different rows; those of the slower one are kept."""
    sketch = Sketch(3)
    start = sketch.value((1, 11, 6, 4))
    x = sketch.conv(start, 8, (1, 1))
    y = sketch.conv(sketch.depthwise(x, (5, 3), (stride, 1)), 8, (1, 1))
    z = sketch.conv(x, 8, (2, 1), (stride, 1))
    data = sketch.build([start], [sketch.add(sketch.depthwise(y, (3, 3)), z)])
    graph = read_tflite("m.tflite", data)
    plan = plan_groups(graph, graph, [list(graph.ops)], Context(load_target("host")), Options("net"))
    assert sliding(plan)
    assert_exact(plan)


@pytest.mark.parametrize("reader", ["bilinear", "nearest", "transposed"])
def test_a_ring_whose_reader_moves_by_fractions_of_a_row(reader: str) -> None:
    """The ring must let go of a row only when the window, which counts in fractions, has left it."""
    sketch = Sketch(4)
    start = sketch.value((1, 12, 5, 4))
    x = sketch.conv(start, 6, (3, 1))
    if reader == "transposed":
        x = sketch.transpose_conv(x, 4, (5, 2), (2, 1))
    else:
        x = sketch.resize(x, (24, 5), f"RESIZE_{'BILINEAR' if reader == 'bilinear' else 'NEAREST_NEIGHBOR'}")
    data = sketch.build([start], [sketch.depthwise(sketch.depthwise(x, (4, 3)), (3, 3))])
    (plan,) = longest_plans([data], slide=True)
    assert _slides_under_a_fractional_reader(plan) or reader == "nearest"  # one row alone doesn't slide
    assert_exact(plan)


def _slides_under_a_fractional_reader(plan: Plan) -> bool:
    return any(
        window is not None and window.spread > 1 and tensor in plan.storage and plan.storage[tensor].slides
        for group in plan.groups
        for stage in group.stages
        for tensor, window in zip(stage.op.inputs, stage.windows, strict=True)
    )


def test_resizing_in_the_middle_of_a_chain_at_default_options() -> None:
    sketch = Sketch(5)
    x = sketch.value((1, 12, 8, 8))
    y = sketch.transpose_conv(sketch.resize(x, (24, 16)), 8, (3, 3))
    y = sketch.depthwise(sketch.conv(y, 4, (3, 3)), (3, 3))
    plan = planned(sketch.build([x], [sketch.depthwise(y, (3, 3), (2, 2))]), optimize="balanced")
    assert _slides_under_a_fractional_reader(plan)
    assert_exact(plan)


def _slides(model: bytes) -> bool:
    """Tells whether the plan has a sliding ring: few random chains have one, but those that CI draws must."""
    return _slides_under_a_fractional_reader(longest_plans([model], slide=True)[0])


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(resizing_chains().filter(_slides), min_size=3, max_size=3))
def test_random_chains_that_resize(models: list[bytes]) -> None:
    assert_all_exact(longest_plans(models, slide=True), runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("slide", [True, False])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(resizing_chains(most_layers=12), min_size=10, max_size=10))
def test_many_random_chains_that_resize(slide: bool, models: list[bytes]) -> None:
    assert_all_exact(longest_plans(models, slide), runs=3)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(most_layers=14), st.booleans())
def test_random_networks_with_all_rings_sliding(data: bytes, fed: bool) -> None:
    graph = read_tflite("m.tflite", data)
    context = Context(load_target("host"))
    rewritten = rewrite(graph, "rows", "auto")
    if fed and graph.inputs[0] not in graph.outputs:
        by_rows = feed_rows(rewritten)
        rewritten = by_rows if pareto_front(by_rows, context, 1 << 30) else rewritten
    least = min(pareto_front(rewritten, context, 1 << 30), key=lambda candidate: candidate.ram)
    groups = [list(group) for group in least.groups]
    plan = plan_groups(graph, rewritten, groups, context, Options("net"))
    assert_exact(plan, runs=4)
