"""Every rewrite keeps every bit: references of the graph before and after agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_graphs import Sketch, Value, networks
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.drop_identities import drop_identities
from tinyfuse.rewrite.fold_activation import fold_activation
from tinyfuse.rewrite.fold_pad import fold_pad
from tinyfuse.rewrite.intervals import channel_intervals
from tinyfuse.rewrite.invariants import check_graph
from tinyfuse.rewrite.prune_channels import prune_channels
from tinyfuse.rewrite.share_results import share_results
from tinyfuse.rewrite.split_global_pool import split_global_pool
from tinyfuse.rewrite.trim_kernels import trim_kernels
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle


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


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
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


def test_a_global_average_stays_one_call_for_speed() -> None:
    sketch = Sketch(5)
    x = sketch.value((1, 6, 5, 3))
    graph = graph_of(sketch.build([x], [sketch.pool(x, "AVERAGE_POOL_2D", (6, 5), (1, 1))]))
    assert kinds(rewrite(graph, "rows", "auto", "speed")) == ["AVERAGE_POOL_2D"]
    assert kinds(rewrite(graph, "rows", "auto", "balanced")) == ["ROW_SUM", "AVERAGE_OF_SUM"]


# --- dead channels -------------------------------------------------------------------------------


def separable(dead: float, seed: int, padding: str = "SAME") -> Graph:
    """A convolution, a separable layer, a pool and a classifier; some filters are switched off."""
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


def test_a_pruned_dense_layer_keeps_the_scale_of_its_bias() -> None:
    """Regression: without a scale, the layer broke the rule that corresponds to TFLM's check of biases."""
    sketch = Sketch(5, dead=0.6)
    x = sketch.value((1, 6))
    y = sketch.dense(x, 9)
    sketch.results = 0.001, 0  # outputs so fine that the scale of a bias shows
    graph = graph_of(sketch.build([x], [sketch.dense(y, 5)]))
    after = prune_channels(graph)
    assert graph.ops[0].output.shape != after.ops[0].output.shape
    check_graph(after, "prune_channels")


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


@settings(max_examples=30, deadline=None)
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


# --- less work -----------------------------------------------------------------------------------


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("kernel", "zero", "wanted"),
    [
        ((5, 3), np.s_[:, 0], {"SAME": (4, 3), "VALID": (5, 3)}),  # nothing is padded in front of VALID
        ((5, 3), np.s_[:, 3:], {"SAME": (3, 3), "VALID": (3, 3)}),
        ((4, 5), np.s_[:, :, 2:], {"SAME": (4, 2), "VALID": (4, 2)}),
        ((5, 5), np.s_[:, [0, 1, 4]], {"SAME": (2, 5), "VALID": (4, 5)}),
        ((2, 3), np.s_[:], {"SAME": (1, 1), "VALID": (1, 1)}),
    ],
)
def test_kernel_ends_of_zeros_are_cut(depthwise: bool, padding: str, kernel, zero, wanted) -> None:
    for stride, dilation in (((1, 1), (1, 1)), ((2, 1), (1, 1)), ((1, 1), (2, 1))):
        sketch = Sketch(8)
        x = sketch.value((1, 11, 9, 5))
        window = kernel, stride, padding, dilation
        y = sketch.depthwise(x, *window) if depthwise else sketch.conv(x, 4, *window)
        graph = graph_of(sketch.build([x], [y]))
        weights = graph.ops[0].inputs[1].data.copy()
        weights[zero] = 0
        graph = _with_weights(graph, weights)
        after = trim_kernels(graph)
        assert after.ops[0].inputs[1].shape[1:3] == wanted[padding]
        assert_same(graph, after)


def test_kernels_with_weights_at_their_ends_stay() -> None:
    sketch = Sketch(9)
    x = sketch.value((1, 6, 6, 3))
    graph = graph_of(sketch.build([x], [sketch.depthwise(sketch.conv(x, 4, (3, 3)), (4, 4))]))
    assert trim_kernels(graph) is graph


def twins(different: bool = False) -> Graph:
    """Two convolutions with equal weights on one input, concatenated."""
    results = []
    for seed in (3, 4 if different else 3):
        sketch = Sketch(seed)
        x = sketch.value((1, 6, 6, 3))
        results.append(graph_of(sketch.build([x], [sketch.conv(x, 4, (3, 3))])))
    one, other = results
    moved = replace(other.ops[0], inputs=(one.inputs[0], *other.ops[0].inputs[1:]))
    joined = replace(one.ops[0].output, name="joined", shape=(1, 6, 6, 8), index=-1)
    concatenation = Op("CONCATENATION", (one.ops[0].output, moved.output), (joined,), Concatenation(3))
    return replace(one, ops=(one.ops[0], moved, concatenation), outputs=(joined,))


def test_what_is_computed_twice_is_computed_once() -> None:
    graph = twins()
    after = share_results(graph)
    assert kinds(after) == ["CONV_2D", "CONCATENATION"]
    assert after.ops[1].inputs[0] is after.ops[1].inputs[1]
    assert_same(graph, after)


def test_what_differs_or_leaves_the_model_stays() -> None:
    different, graph = twins(different=True), twins()
    assert share_results(different) is different
    outputs = replace(graph, outputs=(*graph.outputs, graph.ops[1].output))
    assert share_results(outputs) is outputs


def test_operators_that_give_back_what_they_get_go() -> None:
    sketch = Sketch(6)
    x = sketch.value((1, 5, 4, 3))
    y = sketch.conv(x, 4, (3, 3), activation="RELU")
    same = sketch.value(y.shape, y.scale, y.zero_point)
    sketch.model.op("QUANTIZE", [y.index], [same.index])
    z = sketch.relu(sketch.pad(same, 0, 0, 0, 0))  # what a RELU made is never below zero
    graph = graph_of(sketch.build([x], [sketch.depthwise(z, (3, 3))]))
    after = drop_identities(graph)
    assert kinds(after) == ["CONV_2D", "DEPTHWISE_CONV_2D"]
    assert_same(graph, after)


def test_operators_that_change_something_stay() -> None:
    sketch = Sketch(6)
    x = sketch.value((1, 5, 4, 3), 0.1, 7)
    y = sketch.relu(x)  # the input may be negative
    other = sketch.value(y.shape, y.scale * 2, y.zero_point)
    sketch.model.op("QUANTIZE", [y.index], [other.index])
    last = sketch.value(y.shape, other.scale, other.zero_point)
    sketch.model.op("QUANTIZE", [other.index], [last.index])  # an identity, but the model's output
    graph = graph_of(sketch.build([x], [last]))
    assert drop_identities(graph) is graph


def test_every_pass_tells_what_it_saved() -> None:
    graph = separable(0.6, 3)
    after = rewrite(graph, "rows", "auto", "balanced")
    savings = {saving.rewrite: saving for saving in after.savings}
    pruned = savings["prune_channels"]
    assert sum(saving.macs for saving in savings.values()) == macs(graph) - macs(after)
    assert pruned.weight_bytes > 0 and set(pruned.operators) <= set(graph.ops)
    assert not rewrite(graph, "none", "auto").savings


def test_a_reshape_that_a_pass_went_around_is_dropped() -> None:
    """Left there, it counted as a reader of what is computed again, and nothing had made that whole."""
    sketch = Sketch(3)
    x = sketch.value((1, 2, 4, 1))
    y = sketch.conv(x, 1, (1, 1))
    z = sketch.relu(y)
    graph = graph_of(sketch.build([x], [sketch.fully_connected(z, 1)]))
    after = rewrite(graph, "rows", "auto", "ram")
    assert all(set(op.outputs) & (set(after.outputs) | set(after.consumers)) for op in after.ops)
    assert_same(graph, after)


def test_a_reshape_to_a_scalar_passes_no_channels() -> None:
    """Regression: a traceback, because a scalar has no last dimension."""
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 1), scale=0.5, zero_point=3), model.tensor("y", (), scale=0.5, zero_point=3)
    model.op("RESHAPE", [x], [y])
    graph = graph_of(bytes(model.build([x], [y])))
    assert prune_channels(graph) is graph
