"""Layers that read one tensor and are concatenated become one layer with the same bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from random_graphs import Sketch, Value
from test_rewrites import assert_same, graph_of, kinds
from tflite_builder import ModelBuilder

from tinyfuse.rewrite.join_siblings import join_siblings

Layers = Callable[[Sketch, Value], list[Value]]


def joined(layers: Layers, dtype: str = "int8", axis: int = 3, outputs: int = 0, shape=(1, 6, 5, 4)) -> bytes:
    """The layers' outputs, concatenated; the first `outputs` of them are outputs of the model too."""
    sketch = Sketch(5, dtype=dtype)
    x = sketch.value(shape)
    sketch.results = (0.6, -20)
    made = layers(sketch, x)
    return sketch.build([x], [sketch.concatenate(made, axis), *made[:outputs]])


def filters(*numbers: int, **options) -> Layers:
    return lambda sketch, x: [sketch.conv(x, n, (3, 3), **options) for n in numbers]


def units(*numbers: int) -> Layers:
    return lambda sketch, x: [sketch.dense(x, n) for n in numbers]


def two_pairs(sketch: Sketch, x: Value) -> list[Value]:
    """Two convolutions with three rows, two with one row, and a depthwise layer, which has no sibling."""
    wide = [sketch.conv(x, n, (3, 3)) for n in (2, 4)]
    return [*wide, sketch.depthwise(x, (3, 3)), *(sketch.conv(x, n, (1, 1)) for n in (3, 2))]


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize(
    "layers", [filters(3, 8), filters(2, 2, 5, stride=(2, 1), activation="RELU"), filters(1, 1), filters(*[3] * 9)]
)
def test_convolutions_become_one(layers: Layers, dtype: str) -> None:
    graph = graph_of(joined(layers, dtype))
    after = join_siblings(graph)
    assert kinds(after) == ["CONV_2D"] and after.outputs == graph.outputs
    assert_same(graph, after)


def test_dense_layers_become_one() -> None:
    """Layers with different weight scales are not merged, because TFLM rounds a per-tensor multiplier differently."""
    graph = graph_of(joined(units(3, 8), axis=2, shape=(1, 4, 6), dtype="float32"))
    after = join_siblings(graph)
    assert kinds(after) == ["FULLY_CONNECTED"]
    assert_same(graph, after)
    different = graph_of(joined(units(3, 8), axis=2, shape=(1, 4, 6)))
    assert join_siblings(different) is different


def test_only_neighbours_that_are_alike_do() -> None:
    graph = graph_of(joined(two_pairs, "float32"))
    after = join_siblings(graph)
    assert kinds(after) == ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "CONCATENATION"]
    assert [t.shape[-1] for t in after.ops[-1].operands] == [6, 4, 5]
    assert_same(graph, after)


def read_elsewhere(sketch: Sketch, x: Value) -> list[Value]:
    a, b = filters(3, 3)(sketch, x)
    return [a, b, sketch.relu(b)]


STAY = {
    "another dimension": joined(filters(3, 3), axis=1),
    "an output of the model": joined(filters(3, 3), outputs=1),
    "other windows": joined(lambda s, x: [s.conv(x, 3, (3, 3)), s.conv(x, 3, (1, 3))], "float32"),
    "other clamps": joined(lambda s, x: [s.conv(x, 3, (3, 3)), s.conv(x, 3, (3, 3), activation="RELU6")], "float32"),
    "another input": joined(lambda s, x: [s.conv(x, 3, (3, 3)), s.conv(s.relu(x), 3, (3, 3))], "float32"),
    "another reader": joined(read_elsewhere, "float32"),
    "one layer twice": joined(lambda s, x: [s.conv(x, 3, (3, 3))] * 2, "float32"),
}


@pytest.mark.parametrize("name", STAY)
def test_others_stay(name: str) -> None:
    graph = graph_of(STAY[name])
    assert join_siblings(graph) is graph


def test_results_of_another_scale_stay() -> None:
    """int16 alone has CONCATENATIONs of those."""
    sketch = Sketch(5, dtype="int16")
    x = sketch.value((1, 6, 5, 4))
    graph = graph_of(sketch.build([x], [sketch.concatenate(filters(3, 3)(sketch, x), 3)]))
    assert join_siblings(graph) is graph


def test_groups_of_channels_stay() -> None:
    sketch = Sketch(5)
    sketch.results = (0.6, -20)
    x = sketch.value((1, 6, 5, 4))
    made = [sketch._layer("CONV_2D", x, (4, 1, 1, 2), 0, (1, 6, 5, 4), stride_h=1, stride_w=1) for _ in range(2)]
    graph = graph_of(sketch.build([x], [sketch.concatenate(made, 3)]))
    assert join_siblings(graph) is graph


def test_a_constant_beside_computed_channels_is_no_sibling() -> None:
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 3), "int32") for name in "xy")
    zero = model.tensor("zero", (1, 1), "int32", data=np.zeros((1, 1), np.int32))
    out = model.tensor("out", (1, 4), "int32")
    model.op("ADD", [x, x], [y])
    model.op("CONCATENATION", [zero, y], [out], axis=1)
    graph = graph_of(model.build([x], [out]))
    assert join_siblings(graph) is graph
