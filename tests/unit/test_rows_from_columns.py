"""Single-row images are transposed to single columns: which regions qualify, and that every bit is kept."""

from __future__ import annotations

import pytest
from executors import plan_of
from hypothesis import given, settings
from random_graphs import Sketch
from sequence_networks import lying, mean_over_time, sequence_networks, through_vector
from sliding_models import gesture
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse.ir import Graph
from tinyfuse.kernels.layers.common.column_blocks import ROWS, ColumnBlocks
from tinyfuse.rewrite.rows_from_columns import rows_from_columns


def rewritten(data: bytes) -> Graph:
    """The graph after the rewrite, which computes the same bits."""
    before = graph_of(data)
    after = rows_from_columns(before)
    assert_same(before, after)
    return after


def standing(graph: Graph) -> list[str]:
    """Kinds of operators that make an image of a single column and several rows."""
    shapes = ((op.kind, op.output.shape) for op in graph.ops if op.output.is_image)
    return [kind for kind, (_, rows, columns, _) in shapes if rows > 1 and columns == 1 and kind != "RESHAPE"]


@pytest.mark.parametrize("causal", [False, True])
def test_keras_layers_over_time_stand(causal: bool) -> None:
    after = rewritten(gesture(causal=causal))
    assert standing(after) == (["PAD", "CONV_2D"] * 2 if causal else ["CONV_2D"] * 2)
    assert kinds(after).count("RESHAPE") == 1  # in front, where the file has [1, L, C]


def test_every_attribute_changes_its_axis() -> None:
    s = Sketch(1)
    x = s.value((1, 1, 30, 3))
    y = s.conv(x, 4, (1, 5), (1, 2), "VALID")
    z = s.depthwise(y, (1, 3), dilation=(1, 2))
    w = s.transpose_conv(s.pool(z, "MAX_POOL_2D", (1, 3), (1, 2)), 5, (1, 4), (1, 3))
    conv, depthwise, pool, transposed = [op for op in rewritten(s.build([x], [w])).ops if op.kind != "RESHAPE"]
    assert (conv.attributes.stride, conv.operand(1).shape) == ((2, 1), (4, 5, 1, 3))
    assert (depthwise.attributes.dilation, depthwise.operand(1).shape) == ((2, 1), (1, 3, 1, 4))
    assert (pool.attributes.filter, pool.attributes.stride) == ((3, 1), (2, 1))
    assert (transposed.attributes.stride, transposed.operand(0).values.tolist()) == ((3, 1), [1, *w.shape[2:0:-1], 5])


@pytest.mark.parametrize("keep_dims", [False, True])
def test_a_mean_over_time_is_one_over_rows(keep_dims: bool) -> None:
    s = Sketch(2)
    x = s.value((1, 1, 20, 3))
    y = s.reshape(s.conv(x, 4, (1, 3)), (1, 20, 4))
    after = rewritten(s.build([x], [mean_over_time(s, y, keep_dims)]))
    mean = next(op for op in after.ops if op.kind == "MEAN")
    assert mean.input.shape == (1, 20, 1, 4) and mean.operand(1).values.tolist() == [1, 2]


def test_what_comes_out_of_rows_lies() -> None:
    """Otherwise one group of rows would become two."""
    s = Sketch(3)
    x = s.value((1, 6, 20, 2))
    y = s.conv(s.conv(x, 4, (6, 3), padding="VALID"), 3, (1, 3))
    assert standing(rewritten(s.build([x], [y]))) == []


def test_without_a_window_nothing_stands() -> None:
    s = Sketch(4)
    x = s.value((1, 20, 4))
    y = s.add(s.relu(x), s.unary(x, "TANH"))
    graph = graph_of(s.build([x], [y]))
    assert rows_from_columns(graph) is graph


def test_a_reshape_that_cuts_the_line_is_an_end() -> None:
    s = Sketch(5)
    x = s.value((1, 1, 24, 2))
    cut = s.reshape(s.conv(x, 4, (1, 3)), (1, 1, 12, 8))
    after = rewritten(s.build([x], [s.conv(cut, 3, (1, 3))]))
    assert standing(after) == ["CONV_2D"] * 2 and kinds(after).count("RESHAPE") == 5


def test_outputs_keep_their_shape() -> None:
    s = Sketch(6)
    x = s.value((1, 1, 24, 2))
    y = through_vector(s, s.conv(x, 4, (1, 3)))
    graph = graph_of(s.build([x], [y, s.conv(y, 2, (1, 3))]))
    assert rows_from_columns(graph).outputs == graph.outputs
    assert_same(graph, rows_from_columns(graph))


@settings(max_examples=30, deadline=None)
@given(sequence_networks())
def test_every_bit_is_kept(data: bytes) -> None:
    rewritten(data)


def test_sequences_stream_and_rows_are_made_in_blocks() -> None:
    """A sequence of 600 places takes a fraction of its bytes, at a few percent of the instructions."""
    s = Sketch(7)
    x = s.value((1, 600, 2))
    y = s.conv(lying(s, x), 24, (1, 9), activation="RELU")
    y = s.conv(through_vector(s, y), 24, (1, 9), (1, 2), activation="RELU")
    data = s.build([x], [s.mean(s.conv(y, 8, (1, 5)))])
    whole, plan = plan_of(data, "cortex-m4", optimize="speed"), plan_of(data, "cortex-m4")
    assert whole.arena_bytes > 15_000 and 3 * plan.arena_bytes < 15_000
    blocks = [stage for group in plan.groups for stage in group.stages if isinstance(stage.kernel, ColumnBlocks)]
    assert len(blocks) == 3 and all(stage.kernel.rows_a_call == ROWS for stage in blocks)


def test_kernels_of_cmsis_nn_keep_their_rows() -> None:
    assert standing(plan_of(gesture(), "cortex-m4", kernels="cmsis-nn").graph) == []
