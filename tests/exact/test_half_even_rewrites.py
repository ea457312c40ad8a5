"""Rewrites of networks that are computed as onnxruntime does: each applies as to other networks, and keeps the rule."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from executors import assert_all_exact, assert_exact
from random_graphs import Sketch
from sequence_networks import mean_over_time
from test_join_siblings import joined, units
from test_rewrites import assert_same, graph_of, kinds, macs
from test_split_full_height import SPLIT

from tinyfuse.compiler import compile_graph
from tinyfuse.ir import Graph
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.rewrite.join_siblings import join_siblings
from tinyfuse.rewrite.prune_channels import prune_channels
from tinyfuse.rewrite.rows_from_columns import rows_from_columns
from tinyfuse.targets import load_target


def rounding_half_even(graph: Graph) -> Graph:
    """The network with layers and means of the other rule."""
    ops = (
        replace(op, attributes=replace(op.attributes, rounding=FLOAT_HALF_EVEN))
        if hasattr(op.attributes, "rounding")
        else op
        for op in graph.ops
    )
    return replace(graph, ops=tuple(ops))


def averaged(seed: int, keep_dims: bool) -> Graph:
    """Layers with switched-off filters, then a mean over rows and columns."""
    sketch = Sketch(seed, 0.6)
    x = sketch.value((1, 6, 5, 3))
    y = sketch.conv(x, 16, (3, 3), activation="RELU")
    pooled = sketch.mean(sketch.conv(y, 12, (1, 1), activation="RELU"), keep_dims)
    return graph_of(sketch.build([x], [sketch.fully_connected(pooled, 5)]))


@pytest.mark.parametrize("half_even", [False, True])
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_dead_channels_in_front_of_a_mean_go(seed: int, keep_dims: bool, half_even: bool) -> None:
    """Layers in front of a MEAN kept channels that those in front of an AVERAGE_POOL_2D lost."""
    graph = averaged(seed, keep_dims)
    graph = rounding_half_even(graph) if half_even else graph
    after = prune_channels(graph)
    (mean,) = (op for op in after.ops if op.kind == "MEAN")
    assert mean.input.shape[-1] == mean.output.shape[-1] < 12
    assert macs(after) < macs(graph)
    assert_same(graph, after, runs=12)


def test_a_mean_of_channels_keeps_them() -> None:
    sketch = Sketch(3, 0.9)
    x = sketch.value((1, 4, 4, 3))
    y = sketch.conv(x, 8, (1, 1))
    axes = sketch.constant([3])
    z = sketch.value((1, 4, 4))
    sketch.model.op("MEAN", [y.index, axes], [z.index], keep_dims=False)
    graph = graph_of(sketch.build([x], [z]))
    after = prune_channels(graph)
    assert after.ops[0].output.shape[-1] == 8


@pytest.mark.parametrize("keep_dims", [False, True])
def test_a_mean_over_time_keeps_its_rule(keep_dims: bool) -> None:
    """It became a MEAN as TensorFlow Lite Micro rounds it."""
    s = Sketch(2)
    x = s.value((1, 1, 20, 3))
    y = s.reshape(s.conv(x, 4, (1, 3)), (1, 20, 4))
    graph = rounding_half_even(graph_of(s.build([x], [mean_over_time(s, y, keep_dims)])))
    after = rows_from_columns(graph)
    (mean,) = (op for op in after.ops if op.kind == "MEAN")
    assert mean.input.shape == (1, 20, 1, 4) and rounds_by(mean, FLOAT_HALF_EVEN)
    assert_same(graph, after)


def test_dense_siblings_with_scales_of_their_own_become_one() -> None:
    """Every channel's scales are multiplied in float32 anyway."""
    graph = rounding_half_even(graph_of(joined(units(3, 8), axis=2, shape=(1, 4, 6))))
    after = join_siblings(graph)
    assert kinds(after) == ["FULLY_CONNECTED"]
    assert_same(graph, after)


@pytest.mark.parametrize("name", SPLIT)
def test_layers_as_high_as_the_image_are_split(name: str) -> None:
    """Only means were."""
    data, split = SPLIT[name]
    graph = rounding_half_even(graph_of(data))
    after = split(graph)
    assert {"ROW_MACS", "ROW_SUM"} & set(kinds(after))
    assert_same(graph, after, runs=12)


def split_plan(name: str, target: str, feed_rows: bool = False) -> Plan:
    graph = rounding_half_even(graph_of(SPLIT[name][0]))
    options = Options("net", kernels="tinyfuse", optimize="ram", feed_rows=feed_rows)
    plan = compile_graph(graph, load_target(target), options)
    assert {"ROW_MACS", "ROW_SUM"} & set(kinds(plan.graph))
    return plan


@pytest.mark.parametrize("name", SPLIT)
def test_split_layers_are_exact(name: str) -> None:
    assert_exact(split_plan(name, "host", name != "convolution"), runs=6)


@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs a cross compiler and QEMU",
)
@pytest.mark.parametrize(
    ("core", "layer"), [("cortex-m0plus", "convolution"), ("cortex-m4", "depthwise"), ("cortex-m55", "depthwise")]
)
def test_split_layers_are_exact_on_a_core(core: str, layer: str) -> None:
    """On Cortex-M0+ the depthwise layer takes less RAM as it is."""
    assert_all_exact([split_plan(name, core) for name in (layer, "mean", "fully connected")], runs=4)
