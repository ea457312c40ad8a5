"""TRANSPOSEs cancel, move and merge; what remains and what is reported is checked, and that every bit is kept."""

from __future__ import annotations

import pytest
from executors import plan_of
from hypothesis import given, settings
from nchw_networks import FIRST, LAST, TWINS, transposed_networks
from plan_parts import prepare
from random_graphs import Sketch, Value
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse.cost.predict import predicted_total
from tinyfuse.explain.advice import advice
from tinyfuse.ir import Graph
from tinyfuse.options import Options
from tinyfuse.rewrite.cancel_transposes import cancel_transposes
from tinyfuse.rewrite.drop_dead import drop_dead
from tinyfuse.rewrite.invariants import check_pass
from tinyfuse.targets import load_target


def moved_bytes(graph: Graph) -> int:
    return sum(op.output.bytes for op in graph.ops if op.kind == "TRANSPOSE")


def cancelled(data: bytes) -> Graph:
    """The rewritten graph, which computes the same bits and transposes no more bytes."""
    before = graph_of(data)
    after = cancel_transposes(before)
    check_pass("cancel_transposes", before, after)
    assert_same(before, after, runs=3)
    assert moved_bytes(after) <= moved_bytes(before)
    return drop_dead(after)


@pytest.mark.parametrize("name", TWINS)
def test_channels_first_cost_what_their_twins_do(name: str) -> None:
    """The groups, the arena and the instructions are those of the same network with channels last."""
    plans = [plan_of(TWINS[name](first), "cortex-m4") for first in (True, False)]
    assert moved_bytes(graph_of(TWINS[name](True))) > 0 == moved_bytes(plans[0].graph)
    assert [[op.kind for op in g.ops] for g in plans[0].groups] == [[op.kind for op in g.ops] for g in plans[1].groups]
    assert plans[0].arena_bytes == plans[1].arena_bytes
    assert predicted_total(plans[0]) == predicted_total(plans[1])


@pytest.mark.parametrize("name", TWINS)
def test_twins_keep_every_bit(name: str) -> None:
    cancelled(TWINS[name](True))


def between(layer, *shape: int) -> list[str]:
    """TRANSPOSEs that remain of TRANSPOSE, layer, inverse TRANSPOSE, around a convolution on either side."""
    s = Sketch(4)
    x = s.value(shape)
    y = s.transpose(s.conv(x, 4, (2, 2)), FIRST)
    z = s.transpose(layer(s, y), LAST)
    return kinds(cancelled(s.build([x], [s.conv(z, 2, (1, 1))])))


def softmax_of_rows(s: Sketch, x: Value) -> Value:
    return s.softmax(x)


def padded(s: Sketch, x: Value) -> Value:
    n, c, h, w = x.shape
    return s.moved("PAD", x, (n, c, h + 3, w + 1), [[0, 0], [0, 0], [1, 2], [1, 0]])


@pytest.mark.parametrize(
    ("layer", "left"),
    [
        (lambda s, x: s.with_constant(x, "MUL", (4, 1, 1)), ["MUL"]),
        (lambda s, x: s.with_constant(x, "ADD", x.shape), ["ADD"]),
        (lambda s, x: s.add(s.unary(x, "TANH"), x), ["TANH", "ADD"]),
        (padded, ["PAD"]),
        (lambda s, x: s.slice(x, (0, 1, 0, 2), (1, 2, 5, 3)), ["SLICE"]),
        (lambda s, x: s.add(*s.split(x, 1, 2)), ["SPLIT", "ADD"]),
        (lambda s, x: s.concatenate([x, s.relu(x)], 1), ["RELU", "CONCATENATION"]),
        (lambda s, x: s.transpose(s.relu(s.transpose(x, (0, 3, 2, 1))), (0, 3, 2, 1)), ["RELU"]),
    ],
)
def test_what_lies_between_inverse_transposes_is_computed_in_their_order(layer, left: list[str]) -> None:
    assert between(layer, 1, 6, 6, 3) == ["CONV_2D", *left, "CONV_2D"]


def test_a_softmax_along_columns_keeps_its_transposes() -> None:
    assert between(softmax_of_rows, 1, 6, 6, 3) == ["CONV_2D", "TRANSPOSE", "SOFTMAX", "TRANSPOSE", "CONV_2D"]


def test_the_constant_of_channels_first_is_one_of_channels() -> None:
    s = Sketch(5)
    x = s.value((1, 4, 4, 6))
    y = s.with_constant(s.transpose(s.conv(x, 6, (1, 1)), FIRST), "MUL", (6, 1, 1))
    after = cancelled(s.build([x], [s.conv(s.transpose(y, LAST), 2, (1, 1))]))
    assert after.ops[1].operand(1).shape == (6,)


def test_a_transpose_goes_to_where_fewer_bytes_pass() -> None:
    """Behind a mean, over the dimension that it is then."""
    s = Sketch(6)
    x = s.value((1, 8, 8, 4))
    y = s.value((1, 4, 8, 1))
    s.model.op("MEAN", [s.transpose(s.relu(x), FIRST).index, s.constant([3])], [y.index], keep_dims=True)
    after = cancelled(s.build([x], [s.unary(y, "TANH")]))
    assert kinds(after) == ["RELU", "MEAN", "TANH", "TRANSPOSE"]
    assert after.ops[1].operand(1).values.tolist() == [2] and moved_bytes(after) == 32


def test_dimensions_of_one_are_no_reason_to_move() -> None:
    s = Sketch(7)
    x = s.value((1, 1, 8, 8))
    assert kinds(cancelled(s.build([x], [s.conv(s.transpose(x, LAST), 3, (3, 3))]))) == ["RESHAPE", "CONV_2D"]


def test_layers_over_time_from_pytorch_stream() -> None:
    """[1, C, T] -> [1, C, 1, T] -> channels last, a convolution, and back, each time."""
    s = Sketch(12)
    x = s.value((1, 40, 3))
    y = s.transpose(x, (0, 2, 1))
    for filters in (6, 5):
        image = s.transpose(s.reshape(y, (1, y.shape[1], 1, 40)), LAST)
        y = s.unary(s.reshape(s.transpose(s.conv(image, filters, (1, 5)), FIRST), (1, filters, 40)), "TANH")
    data = s.build([x], [s.transpose(y, (0, 2, 1))])
    assert kinds(cancelled(data)) == ["RESHAPE", "CONV_2D", "RESHAPE", "TANH", "RESHAPE", "CONV_2D", "RESHAPE", "TANH"]
    graph = prepare(graph_of(data), load_target("cortex-m4"), Options("net")).graph
    assert kinds(graph) == ["RESHAPE", "CONV_2D", "TANH", "CONV_2D", "TANH", "RESHAPE"]
    assert all(op.output.shape[1:3] == (40, 1) for op in graph.ops[:-1])


def test_two_readers_share_one_transpose() -> None:
    s = Sketch(8)
    x = s.value((1, 3, 8, 8))
    a, b = (s.conv(s.transpose(x, LAST), 4, (3, 3)) for _ in range(2))
    assert kinds(cancelled(s.build([x], [s.add(a, b)]))).count("TRANSPOSE") == 1


def test_outputs_keep_their_order() -> None:
    s = Sketch(9)
    x = s.value((1, 6, 6, 3))
    y = s.transpose(s.conv(x, 4, (3, 3)), FIRST)
    z = s.relu(y)
    graph = graph_of(s.build([x], [y, z, s.transpose(y, LAST)]))
    after = cancelled(s.build([x], [y, z, s.transpose(y, LAST)]))
    assert [t.shape for t in after.outputs] == [t.shape for t in graph.outputs]


def test_a_transpose_that_requantizes_is_none() -> None:
    s = Sketch(10)
    x = s.value((1, 6, 6, 3))
    y = s.conv(x, 4, (1, 1))
    z = s.value((1, 4, 6, 6))  # of another scale
    s.model.op("TRANSPOSE", [y.index, s.constant(FIRST)], [z.index])
    graph = graph_of(s.build([x], [s.conv(s.transpose(z, LAST), 2, (1, 1))]))
    assert kinds(cancel_transposes(graph)) == ["CONV_2D", "TRANSPOSE", "TRANSPOSE", "CONV_2D"]


def test_what_stays_is_told_with_the_reason() -> None:
    s = Sketch(11)
    x = s.value((1, 3, 8, 8), name="image")
    y = s.transpose(s.conv(s.transpose(x, LAST), 4, (3, 3)), FIRST)
    told = [a for a in advice(plan_of(s.build([x], [y]), "cortex-m4")) if a.topic == "layout"]
    assert [a.op.kind for a in told] == ["PLANES_TO_ROWS", "ROWS_TO_PLANES"]
    assert "the model's input has its dimensions in another order than op 1 CONV_2D" in told[0].message
    assert "the model's output has its dimensions in another order than op 1 CONV_2D" in told[1].message


def test_without_fusion_nothing_moves() -> None:
    data = TWINS["flattened"](True)
    assert kinds(plan_of(data, fusion="none").graph) == kinds(graph_of(data))


@settings(max_examples=30, deadline=None)
@given(transposed_networks())
def test_every_bit_is_kept(data: bytes) -> None:
    cancelled(data)
