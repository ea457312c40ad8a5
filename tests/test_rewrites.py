"""Every rewrite keeps every bit: the references of the graph before and after agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_graphs import Sketch, Value, networks

from tinyfuse.emulation.inputs import input_set
from tinyfuse.ir import Graph
from tinyfuse.ops import FAMILIES
from tinyfuse.oracle import ReferenceOracle
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.fold_activation import fold_activation
from tinyfuse.rewrite.fold_pad import fold_pad
from tinyfuse.rewrite.intervals import channel_intervals
from tinyfuse.rewrite.prune_channels import prune_channels
from tinyfuse.rewrite.split_global_pool import split_global_pool
from tinyfuse.tflite_reader import read_tflite


def graph_of(data: bytes) -> Graph:
    return read_tflite("model.tflite", data)


def assert_same(before: Graph, after: Graph, runs: int = 6) -> None:
    inputs = input_set(before, runs, 0)
    for wanted, found in zip(
        ReferenceOracle(before).run_all(inputs), ReferenceOracle(after).run_all(inputs), strict=True
    ):
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a, b)


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def macs(graph: Graph) -> int:
    return sum(FAMILIES[op.kind].macs(op) for op in graph.ops)


@settings(max_examples=80, deadline=None)
@given(networks())
def test_all_rewrites_together_keep_every_bit(data: bytes) -> None:
    graph = graph_of(data)
    assert_same(graph, rewrite(graph, "rows", "auto"))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_pad_becomes_the_convolutions_own(padding: str) -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 7, 6, 3))
    padded = sketch.pad(x, 1, 2, 0, 3)
    y = sketch.conv(padded, 5, (3, 2), (2, 1), padding)
    z = sketch.depthwise(padded, (2, 3), (1, 2), padding)
    graph = graph_of(sketch.build([x], [y, z]))
    after = fold_pad(graph)
    assert kinds(after) == ["CONV_2D", "DEPTHWISE_CONV_2D"]
    assert_same(graph, after)


@pytest.mark.parametrize("quant", [None, (0.3, 0), (0.1, 9)])
def test_a_pad_that_changes_the_quantization_stays(quant: tuple[float, int] | None) -> None:
    """TFLM's PAD copies stored values and never asks what its input's meant."""
    sketch = Sketch(1)
    scale, zero_point = quant or (None, None)
    x = sketch.model.tensor("x", (1, 5, 4, 3), scale=scale, zero_point=zero_point)
    before = Value(x, (1, 5, 4, 3), 0.1, 0)
    y = sketch.conv(sketch.pad(before, 1, 1, 1, 1), 5, (3, 3), padding="VALID")
    assert kinds(fold_pad(graph_of(sketch.build([before], [y])))) == ["PAD", "CONV_2D"]


def test_a_pad_that_others_read_stays() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 7, 6, 3))
    padded = sketch.pad(x, 1, 1, 1, 1)
    y = sketch.conv(padded, 5, (3, 3))
    assert "PAD" in kinds(fold_pad(graph_of(sketch.build([x], [y, padded]))))


def test_activations_of_equal_quantization_narrow_the_clamp() -> None:
    sketch = Sketch(3)
    x = sketch.value((1, 5, 5, 3))
    y = sketch.relu(sketch.relu(sketch.conv(x, 4, (3, 3)), "RELU6"), "RELU")
    graph = graph_of(sketch.build([x], [y]))
    after = fold_activation(graph)
    assert kinds(after) == ["CONV_2D"]
    assert_same(graph, after)


def test_an_activation_that_requantizes_stays() -> None:
    sketch = Sketch(4)
    x = sketch.value((1, 5, 5, 3))
    y = sketch.relu(sketch.conv(x, 4, (3, 3)), same=False)
    assert kinds(fold_activation(graph_of(sketch.build([x], [y])))) == ["CONV_2D", "RELU"]


def test_a_global_average_is_split_and_others_are_not() -> None:
    sketch = Sketch(5)
    x = sketch.value((1, 6, 5, 3))
    whole = sketch.pool(x, "AVERAGE_POOL_2D", (6, 5), (1, 1))
    part = sketch.pool(x, "AVERAGE_POOL_2D", (5, 5), (2, 1))
    graph = graph_of(sketch.build([x], [whole, part]))
    after = split_global_pool(graph)
    assert sorted(kinds(after)) == ["AVERAGE_OF_SUM", "AVERAGE_POOL_2D", "ROW_SUM"]
    assert_same(graph, after)


# --- dead channels -------------------------------------------------------------------------------


def separable(dead: float, seed: int, padding: str = "SAME") -> Graph:
    """A convolution, a separable layer, a pool and a classifier, with switched-off filters."""
    sketch = Sketch(seed, dead)
    x = sketch.value((1, 9, 8, 3))
    y = sketch.conv(x, 16, (3, 3), (2, 2), activation="RELU")
    y = sketch.conv(sketch.depthwise(y, (3, 3), padding=padding, activation="RELU6"), 24, (1, 1), activation="RELU")
    y = sketch.conv(y, 8, (2, 2), padding=padding)
    pooled = sketch.pool(y, "AVERAGE_POOL_2D", y.shape[1:3], (1, 1))
    return graph_of(sketch.build([x], [sketch.softmax(sketch.fully_connected(pooled, 5))]))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dead_channels_go(seed: int, padding: str) -> None:
    graph = separable(0.6, seed, padding)
    after = prune_channels(graph)
    assert macs(after) < macs(graph)
    assert_same(graph, after, runs=12)


def test_live_channels_stay() -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 6, 6, 8))
    graph = graph_of(sketch.build([x], [sketch.conv(sketch.conv(x, 8, (3, 3)), 8, (3, 3))]))
    assert prune_channels(graph) is graph


def test_a_constant_that_is_not_the_zero_point_stays_where_a_border_would_show_it() -> None:
    for padding, goes in (("SAME", False), ("VALID", True)):
        sketch = Sketch(6)
        x = sketch.value((1, 6, 6, 2))
        y = sketch.conv(x, 4, (1, 1))
        graph = graph_of(sketch.build([x], [sketch.conv(y, 3, (3, 3), padding=padding)]))
        first = graph.ops[0]
        weights = first.inputs[1].data.copy()
        weights[1] = 0  # the channel is what its bias makes of it, which is not the zero point
        low, high = (ends[1] for ends in channel_intervals(_with_weights(graph, weights))[first.output])
        assert low == high != first.output.zero_point
        changed = _with_weights(graph, weights)
        after = prune_channels(changed)
        assert (after.ops[0].output.shape[3] == 3) == goes
        assert_same(changed, after)


def _with_weights(graph: Graph, weights: np.ndarray) -> Graph:
    first = graph.ops[0]
    tensor = replace(first.inputs[1], data=weights)
    return replace(graph, ops=(replace(first, inputs=(first.inputs[0], tensor, first.inputs[2])), *graph.ops[1:]))


def test_channels_that_the_caller_or_an_add_reads_stay() -> None:
    sketch = Sketch(7, dead=0.9)
    x = sketch.value((1, 5, 5, 3))
    y = sketch.conv(x, 8, (1, 1))
    graph = graph_of(sketch.build([x], [sketch.add(y, sketch.conv(y, 8, (1, 1)))]))
    after = prune_channels(graph)
    assert [op.output.shape for op in after.ops] == [op.output.shape for op in graph.ops]


@settings(max_examples=60, deadline=None)
@given(networks())
def test_intervals_hold_what_is_computed(data: bytes) -> None:
    graph = graph_of(data)
    intervals = channel_intervals(graph)
    inner = replace(graph, outputs=tuple(intervals))
    inputs = input_set(graph, 5, 1)
    for outputs in ReferenceOracle(inner).run_all(inputs):
        for (low, high), values in zip(intervals.values(), outputs, strict=True):
            flat = values.reshape(-1, values.shape[-1])
            assert (flat.min(axis=0) >= low).all() and (flat.max(axis=0) <= high).all()
