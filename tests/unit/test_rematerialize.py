"""Layers are computed again for late readers: which ones may be, from which tensors, with the same results."""

from __future__ import annotations

import pytest
from executors import assert_all_exact, plan_of
from hypothesis import given, settings
from random_graphs import Sketch, networks
from set_limits import set_limits
from skip_networks import unet
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse import limits
from tinyfuse.ops import graph_macs
from tinyfuse.rewrite.rematerialize import rematerializations, rematerialize


def skipped(outputs: bool = False, between: int = 2) -> bytes:
    """Two convolutions of a one-channel image, whose output is read at once and, by an ADD, much later."""
    sketch = Sketch(5)
    image = sketch.value((1, 12, 10, 1))
    x = sketch.conv(sketch.conv(image, 8, (3, 3)), 8, (3, 3))
    y = x
    for _ in range(between):
        y = sketch.depthwise(y, (3, 3))
    return sketch.build([image], [sketch.add(y, x), *([x] if outputs else [])])


def test_layers_run_again_from_where_fewest_bytes_are_kept() -> None:
    graph = graph_of(skipped())
    (again,) = rematerializations(graph, 10**9)
    # from what the first one makes alone nothing would be spared
    assert [op.kind for op in again.operators] == ["CONV_2D", "CONV_2D"]
    assert again.spared == 12 * 10 * 8 - 12 * 10
    after = rematerialize(graph, again)
    assert kinds(after) == ["CONV_2D"] * 2 + ["DEPTHWISE_CONV_2D"] * 2 + ["CONV_2D"] * 2 + ["ADD"]
    assert graph_macs(after) - graph_macs(graph) == again.macs == -after.savings[-1].macs
    assert_same(graph, after)


def test_what_costs_too_much_or_spares_nothing_is_kept() -> None:
    graph = graph_of(skipped())
    (again,) = rematerializations(graph, 10**9)
    assert not rematerializations(graph, again.macs - 1)
    assert not rematerializations(graph_of(skipped(outputs=True)), 10**9)  # the caller wants it anyway
    assert not rematerializations(graph_of(skipped(between=0)), 10**9)  # it is read by neighbours


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(networks(most_layers=10))
def test_every_graph_computes_the_same(data: bytes) -> None:
    graph = graph_of(data)
    for again in rematerializations(graph, 10**9)[:3]:
        assert_same(graph, rematerialize(graph, again))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "join"),
    [
        ("cortex-m0plus", "ADD"),
        ("cortex-m4", "CONCATENATION"),
        pytest.param("cortex-m55", "ADD", marks=pytest.mark.campaign),
    ],
)
def test_it_is_done_where_it_takes_less_ram(target: str, join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = unet(join, 24, 1, (8, 8, 8), 1)
    plan = plan_of(data, target, kernels="tinyfuse", optimize="ram")
    assert "rematerialize" in [saving.rewrite for saving in plan.graph.savings]
    assert plan.macs <= 1.3 * graph_macs(plan.source)
    assert_all_exact([plan], runs=3, on_host=True)
    once = plan_of(data, target, kernels="tinyfuse", optimize="ram", recompute=1.0)
    assert "rematerialize" not in [saving.rewrite for saving in once.graph.savings]
    set_limits(monkeypatch, REMATERIALIZED=0)
    without = plan_of(data, target, kernels="tinyfuse", optimize="ram")
    assert plan.arena_bytes < without.arena_bytes <= once.arena_bytes


@pytest.mark.parametrize("most", [0, 1])
def test_chains_end_at_their_limit(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, REMATERIALIZED_TOGETHER=most + 1)
    assert len(rematerializations(graph_of(skipped()), 10**9)) == most


@pytest.mark.slow
def test_it_is_done_where_max_ram_leaves_nothing_else() -> None:
    data = unet("ADD", 24, 1, (8, 8, 8), 1)
    usual = plan_of(data, "cortex-m4", kernels="tinyfuse", recompute=1.3)
    smallest = plan_of(data, "cortex-m4", kernels="tinyfuse", optimize="ram", recompute=1.0)
    within = plan_of(data, "cortex-m4", kernels="tinyfuse", recompute=1.3, max_ram=smallest.ram_bytes - 1)
    assert within.ram_bytes < smallest.ram_bytes < usual.ram_bytes
    assert "rematerialize" in [saving.rewrite for saving in within.graph.savings]
    assert "rematerialize" not in [saving.rewrite for saving in usual.graph.savings]


def test_what_is_not_there_where_most_bytes_are_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image in front weighs more than all that could run again."""
    sketch = Sketch(5)
    image = sketch.value((1, 48, 48, 8))
    small = sketch.conv(image, 4, (3, 3), (4, 4))
    x = sketch.conv(small, 8, (3, 3))
    y = sketch.depthwise(sketch.depthwise(x, (3, 3)), (3, 3))
    data = sketch.build([image], [sketch.add(y, x)])
    assert rematerializations(graph_of(data), 10**9)
    set_limits(monkeypatch, REMATERIALIZED=0)
    plan = plan_of(data, "cortex-m4", kernels="tinyfuse", optimize="ram", recompute=2.0)
    assert limits.REMATERIALIZED not in plan.limits
