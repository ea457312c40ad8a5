"""Layers with split outputs become one layer for each part, with the same bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from contexts import context_of
from executors import plan_of
from random_graphs import Sketch, Value
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse.ir import Graph
from tinyfuse.rewrite.cut_layers import cut_layers
from tinyfuse.rewrite.tabulate import tabulate
from tinyfuse.schedule.variants.cut_layers import cut_faster_layers
from tinyfuse.targets import load_target

#: outputs of a network of an image
Made = Callable[[Sketch, Value], list[Value]]


def network(made: Made, dtype: str = "int8", shape=(1, 6, 5, 4)) -> Graph:
    sketch = Sketch(5, dtype=dtype)
    x = sketch.value(shape)
    return graph_of(sketch.build([x], made(sketch, x)))


def parts(sketch: Sketch, x: Value, *channels: int) -> list[Value]:
    """SPLIT_V into these numbers of channels."""
    outputs = [sketch.value((*x.shape[:-1], n), x.scale, x.zero_point) for n in channels]
    inputs = [x.index, sketch.constant(channels), sketch.constant(len(x.shape) - 1)]
    sketch.model.op("SPLIT_V", inputs, [y.index for y in outputs], num_splits=len(channels))
    return outputs


def cut(graph: Graph) -> Graph:
    """The graph without splits, which computes the same bits."""
    after = cut_layers(graph)
    assert_same(graph, after)
    return after


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_a_convolution_becomes_two(dtype: str) -> None:
    after = cut(network(lambda s, x: s.split(s.conv(x, 6, (3, 3), activation="RELU"), 3, 2), dtype))
    assert kinds(after) == ["CONV_2D", "CONV_2D"]
    assert [op.operand(1).shape[0] for op in after.ops] == [3, 3]


def test_a_dense_layer_becomes_three_of_other_sizes() -> None:
    after = cut(network(lambda s, x: parts(s, s.dense(x, 12), 2, 7, 3), shape=(1, 4, 6)))
    assert [op.output.shape[-1] for op in after.ops] == [2, 7, 3]


def test_activations_go_along() -> None:
    def gated(s: Sketch, x: Value) -> list[Value]:
        y = s.scale_channels(s.scale_channels(s.unary(s.conv(x, 8, (1, 1)), "HARD_SWISH"), "MUL"), "ADD")
        return s.split(y, 3, 2)

    graph = network(gated, shape=(1, 24, 24, 4))
    assert cut_layers(graph) is graph  # MUL by a constant a channel is no function of one value
    after = cut(tabulate(graph))
    assert kinds(after) == ["CONV_2D", "CHANNEL_TABLES"] * 2
    assert [op.operand(1).shape[0] for op in after.ops] == [4] * 4


def test_under_another_shape() -> None:
    after = cut(network(lambda s, x: s.split(s.reshape(s.conv(x, 6, (1, 1)), (1, 30, 6)), 2, 3)))
    assert kinds(after) == ["CONV_2D", "RESHAPE"] * 3


def test_slices_that_leave_channels_out() -> None:
    def sliced(s: Sketch, x: Value) -> list[Value]:
        y = s.conv(x, 9, (3, 3))
        return [s.slice(y, (0, 0, 0, first), (1, 6, 5, 3)) for first in (5, 0)]

    after = cut(network(sliced))
    assert kinds(after) == ["CONV_2D", "CONV_2D"] and after.outputs[0] is after.ops[1].output


def test_a_part_that_nobody_reads() -> None:
    after = cut(network(lambda s, x: s.split(s.conv(x, 6, (3, 3)), 3, 3)[1:2]))
    assert kinds(after) == ["CONV_2D"] and after.ops[0].operand(1).shape[0] == 2


def overlapping(s: Sketch, x: Value) -> list[Value]:
    y = s.conv(x, 6, (3, 3))
    return [s.slice(y, (0, 0, 0, first), (1, 6, 5, 4)) for first in (0, 2)]


def read_whole(s: Sketch, x: Value) -> list[Value]:
    y = s.conv(x, 6, (3, 3))
    return [*s.split(y, 3, 2), s.relu(y)]


def groups_of_channels(s: Sketch, x: Value) -> list[Value]:
    return s.split(s._layer("CONV_2D", x, (4, 1, 1, 2), 0, (1, 6, 5, 4), stride_h=1, stride_w=1), 3, 2)


STAY: dict[str, Made] = {
    "rows": lambda s, x: s.split(s.conv(x, 6, (3, 3)), 1, 2),
    "columns": lambda s, x: [s.slice(s.conv(x, 6, (3, 3)), (0, 0, 1, 0), (1, 6, 4, 6))],
    "shared channels": overlapping,
    "another reader": read_whole,
    "a depthwise layer": lambda s, x: s.split(s.depthwise(x, (3, 3)), 3, 2),
    "groups of channels": groups_of_channels,
    "an input": lambda s, x: s.split(x, 3, 2),
    "transposed": lambda s, x: [s.transpose(s.conv(x, 5, (1, 1)), (0, 1, 3, 2))],
    "one piece of memory each": lambda s, x: s.split(s.conv(x, 6, (6, 5), padding="VALID"), 3, 2),
}


@pytest.mark.parametrize("name", STAY)
def test_others_stay(name: str) -> None:
    graph = network(STAY[name])
    assert cut_layers(graph) is graph


def test_an_output_of_the_model_stays() -> None:
    def both(s: Sketch, x: Value) -> list[Value]:
        y = s.conv(x, 6, (3, 3))
        return [*s.split(y, 3, 2), y]

    graph = network(both)
    assert cut_layers(graph) is graph


def gate(kernel: tuple[int, int]) -> bytes:
    s = Sketch(4)
    x = s.value((1, 24, 24, 16))
    a, b = s.split(s.conv(x, 32, kernel), 3, 2)
    return s.build([x], [s.conv(s.add(a, s.unary(b, "LOGISTIC"), kind="MUL"), 16, (1, 1))])


def test_for_speed_only_where_it_is_faster() -> None:
    """Gathering a window of nine pixels twice takes more than to copy what is computed of it."""
    context = context_of(load_target("cortex-m4"), optimize="speed")
    narrow, wide = (graph_of(gate(kernel)) for kernel in ((1, 1), (3, 3)))
    assert kinds(cut_faster_layers(narrow, context))[:2] == ["CONV_2D", "CONV_2D"]
    assert cut_faster_layers(wide, context) is wide
    assert "SPLIT" in kinds(plan_of(gate((3, 3)), "cortex-m4", optimize="speed").graph)


def test_else_it_streams() -> None:
    plan = plan_of(gate((3, 3)), "cortex-m4", optimize="ram")
    assert [stage.op.kind for stage in plan.groups[0].stages][:3] == ["CONV_2D", "CONV_2D", "FUSED_LOOP"]
    assert plan.arena_bytes < plan_of(gate((3, 3)), "cortex-m4", optimize="speed").arena_bytes / 3
    (saving,) = (s for s in plan.graph.savings if s.rewrite == "cut_layers")
    assert [op.kind for op in saving.operators] == ["CONV_2D", "SPLIT"]
