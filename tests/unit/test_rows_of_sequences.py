"""Sequences become images, so that they stream: which ones qualify, and that every bit is kept."""

from __future__ import annotations

import pytest
from attention_networks import FORMS, Blocks, Form, attention, attention_networks
from executors import plan_of
from hypothesis import HealthCheck, given, settings
from random_graphs import Sketch
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse.ir import Graph
from tinyfuse.plan import Plan
from tinyfuse.rewrite.cancel_transposes import cancel_transposes
from tinyfuse.rewrite.fold_adjoint import fold_adjoint
from tinyfuse.rewrite.rows_of_sequences import rows_of_sequences

TOKENS, WIDTH, HEADS = 24, 16, 4


def rewritten(data: bytes) -> Graph:
    """The graph after the rewrites, each of which keeps every bit."""
    graph = graph_of(data)
    for one_pass in (fold_adjoint, cancel_transposes, rows_of_sequences):
        after = one_pass(graph)
        assert_same(graph, after)
        graph = after
    return graph


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_nothing_stands_between_layers(form: Form) -> None:
    """Not one TRANSPOSE is left, and RESHAPEs at both ends alone: of the input, and the output."""
    found = kinds(rewritten(attention(TOKENS, WIDTH, HEADS, form=form)))
    assert "TRANSPOSE" not in found and "BATCH_MATMUL" not in found
    assert found.count("ROWS_MATMUL") == 2 and found.count("RESHAPE") <= 2


def whole(plan: Plan) -> set[tuple[int, ...]]:
    """Shapes of activations that are whole in the arena."""
    return {t.shape for t, place in plan.storage.items() if len(t.shape) != 4 or place.ring_rows == t.shape[1]}


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_scores_are_never_whole(form: Form) -> None:
    plan = plan_of(attention(TOKENS, WIDTH, HEADS, form=form), "cortex-m4", kernels="tinyfuse")
    scores = TOKENS * TOKENS * HEADS
    assert {(1, TOKENS, HEADS, TOKENS)}.isdisjoint(whole(plan))
    assert plan.arena_bytes < scores + TOKENS * WIDTH


def test_one_head_of_matrices_is_rows() -> None:
    """Matrices without a dimension for heads: [1, T, D] and [T, D]."""
    for shape in ((1, 9, 8), (9, 8), (1, 1, 9, 8)):
        s = Sketch(4)
        x, y = s.value(shape), s.value(shape)
        mixed = s.matmul(s.softmax(s.matmul(x, y, adj_y=True)), y)
        after = rewritten(s.build([x, y], [mixed]))
        assert kinds(after).count("ROWS_MATMUL") == 2
        assert all(op.output.shape[:2] == (1, 9) for op in after.ops if op.kind != "RESHAPE")


@pytest.mark.parametrize(
    "shapes", [((2, 9, 8), (2, 7, 8)), ((2, 3, 9, 8), (2, 3, 7, 8)), ((1, 1, 8), (1, 7, 8))], ids=str
)
def test_batches_and_single_vectors_stay(shapes) -> None:
    s = Sketch(5)
    x, y = (s.value(shape) for shape in shapes)
    after = rewritten(s.build([x, y], [s.matmul(x, y, adj_y=True)]))
    assert kinds(after) == ["BATCH_MATMUL"]


def test_heads_that_share_keys() -> None:
    """All heads share one matrix (multi-query attention)."""
    b = Blocks(6)
    s = b.sketch
    x = s.value((1, 10, 12))
    query, key = b.heads(s.dense(x, 12), 3), b.heads(s.dense(x, 4), 1)
    mixed = s.transpose(s.matmul(s.softmax(s.matmul(query, key, adj_y=True)), key), (0, 2, 1, 3))
    after = rewritten(s.build([x], [s.dense(s.reshape(mixed, (1, 10, 12)), 5)]))
    assert kinds(after).count("ROWS_MATMUL") == 2 and "TRANSPOSE" not in kinds(after)


def test_functions_of_single_values_stay() -> None:
    s = Sketch(7)
    x = s.value((1, 20, 4))
    graph = graph_of(s.build([x], [s.softmax(s.add(s.relu(x), s.unary(x, "TANH")))]))
    assert rows_of_sequences(graph) is graph


def test_a_layer_over_all_rows_ends_the_sequence() -> None:
    s = Sketch(8)
    x = s.value((1, 6, 4))
    flat = s.reshape(s.dense(x, 5), (1, 30))
    after = rewritten(s.build([x], [s.fully_connected(flat, 3)]))
    assert after.ops[-1].input.shape == (1, 30)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 1, 3, 2), (0, 3, 2, 1)])
@pytest.mark.parametrize("index", [0, 1])
def test_transposed_matrices_are_flags(order: tuple[int, ...], index: int) -> None:
    s = Sketch(9)
    source = s.value(tuple((1, 3, 5, 7)[order.index(axis)] for axis in range(4)))
    x, y = s.transpose(source, order), s.value((1, 3, 7, 4) if index == 0 else (1, 3, 4, 5))
    graph = graph_of(s.build([source, y], [s.matmul(*((x, y) if index == 0 else (y, x)))]))
    after = fold_adjoint(graph)
    assert_same(graph, after)
    flags = next(op for op in after.ops if op.kind == "BATCH_MATMUL").attributes
    folded = order != (0, 3, 2, 1)  # which leaves no dimension where it was
    assert (flags.adj_x, flags.adj_y) == (folded and index == 0, folded and index == 1)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(attention_networks())
def test_every_bit_is_kept(data: bytes) -> None:
    rewritten(data)
