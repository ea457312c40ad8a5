"""Invariants of graphs between passes: each violation is detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from known_architectures import mobilenet_v2
from random_graphs import Sketch
from stream_models import STREAM_MODELS

from tinyfuse.errors import InternalFault
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.rewrite import OBSERVERS, rewrite
from tinyfuse.rewrite.invariants import broken_invariants, check_graph, check_pass
from tinyfuse.rewrite.split_full_height import split_full_height


def small() -> Graph:
    """CONV_2D and RELU; the convolution's weights have one scale for each filter."""
    s = Sketch(3)
    x = s.value((1, 5, 4, 3))
    return read_tflite("net.tflite", s.build([x], [s.relu(s.conv(x, 6, (3, 3)))]))


def with_ops(graph: Graph, *ops: Op) -> Graph:
    return replace(graph, ops=ops)


def with_weights(graph: Graph, **changes: object) -> Graph:
    conv, relu = graph.ops
    weights = replace(conv.inputs[1], **changes)
    return with_ops(graph, replace(conv, inputs=(conv.inputs[0], weights, conv.inputs[2])), relu)


def with_output(graph: Graph, **changes: object) -> Graph:
    """The graph with a changed output of the RELU, which is the graph's output."""
    conv, relu = graph.ops
    output = replace(relu.output, **changes)
    return replace(with_ops(graph, conv, replace(relu, outputs=(output,))), outputs=(output,))


def zeros(tensor: Tensor) -> np.ndarray:
    return np.zeros(tensor.shape, tensor.dtype)


def quant(*scales: float, zero_points: int | None = None, axis: int = 0) -> Quant:
    return Quant(scales, (0,) * (len(scales) if zero_points is None else zero_points), axis)


BROKEN: dict[str, tuple[Callable[[Graph], Graph], str]] = {
    "no outputs": (lambda g: replace(g, outputs=()), "the graph has no outputs"),
    "an input twice": (lambda g: replace(g, inputs=g.inputs * 2), "listed twice"),
    "a constant input": (lambda g: replace(g, inputs=(*g.inputs, g.ops[0].inputs[1])), "is an input of the graph, and"),
    "an operator twice": (lambda g: with_ops(g, *g.ops, g.ops[1]), "runs twice"),
    "a reader first": (lambda g: with_ops(g, *reversed(g.ops)), "which nobody made before it"),
    "an input that is lost": (lambda g: replace(g, inputs=()), "which nobody made before it"),
    "two producers": (lambda g: with_ops(g, *g.ops, replace(g.ops[1])), "which was there before it"),
    "an input that is made": (lambda g: replace(g, inputs=(*g.inputs, g.ops[0].output)), "which was there before it"),
    "a constant that is made": (lambda g: with_output(g, data=zeros(g.outputs[0])), "a constant or a state"),
    "an output that is lost": (lambda g: with_ops(g, g.ops[0]), "is an output of the graph, and nobody makes it"),
    "an unknown dtype": (lambda g: with_weights(g, dtype="int2"), "has no dtype that we know"),
    "a shape with -1": (lambda g: with_output(g, shape=(-1, 5, 4, 6)), "a shape that is not static"),
    "constant and state": (lambda g: with_weights(g, initial=zeros(g.ops[0].inputs[1])), "a constant and a state"),
    "data of another shape": (lambda g: with_weights(g, data=np.zeros((2, 3), np.int8)), "has data of int8[2, 3]"),
    "data of another dtype": (
        lambda g: with_weights(g, data=zeros(g.ops[0].inputs[1]).astype(np.int16)),
        "has data of int16[6, 3, 3, 3]",
    ),
    "scales without zero points": (
        lambda g: with_weights(g, quant=quant(*[0.1] * 6, zero_points=1)),
        "has 6 scales and 1 zero points",
    ),
    "a scale of 0": (lambda g: with_output(g, quant=quant(0.0)), "a scale that is not a positive number"),
    "an infinite scale": (lambda g: with_output(g, quant=quant(float("inf"))), "a scale that is not a positive number"),
    "an axis that is not there": (lambda g: with_weights(g, quant=quant(*[0.1] * 6, axis=4)), "along dimension 4"),
    "another number of channels": (lambda g: with_weights(g, quant=quant(*[0.1] * 5)), "has 5 scales for 6 channels"),
    "two tensors of one index": (lambda g: with_output(g, index=g.inputs[0].index), "has the index of tensor"),
    "an unknown family": (lambda g: with_ops(g, g.ops[0], replace(g.ops[1], kind="RELU7")), "is of no family"),
    "a rule of the family": (lambda g: with_output(g, shape=(1, 5, 4, 7)), "breaks a rule: "),
    "no quantization": (lambda g: with_output(g, quant=None), "breaks a rule: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_seen(name: str) -> None:
    breaking, message = BROKEN[name]
    assert any(message in told for told in broken_invariants(breaking(small()))), [
        *broken_invariants(breaking(small()))
    ]
    with pytest.raises(InternalFault, match="found by a test"):
        check_graph(breaking(small()), "a test")


def test_states_are_looked_at() -> None:
    graph = read_tflite("net.tflite", STREAM_MODELS["svdf of int8"])
    assert not [*broken_invariants(graph)]
    (op,) = (op for op in graph.ops if op.states)
    (state,) = op.states
    for changes, message in (
        ({"initial": None}, "is not a state"),
        ({"initial": state.initial[..., :-1]}, "has initial value of"),
        ({"cursor": Tensor("cursor", (1,), "int32")}, "one of the two is not a state"),
    ):
        inputs = tuple(replace(t, **changes) if t is state else t for t in op.inputs)
        changed = replace(graph, ops=tuple(replace(op, inputs=inputs) if o is op else o for o in graph.ops))
        assert any(message in told for told in broken_invariants(changed)), message


def test_a_pass_keeps_inputs_and_outputs() -> None:
    graph = small()
    check_pass("nothing", graph, graph)
    with pytest.raises(InternalFault, match=r"graph after a_pass: the outputs of the model are not"):
        check_pass("a_pass", graph, with_output(graph))
    with pytest.raises(InternalFault, match=r"graph after a_pass: the inputs of the model are not"):
        check_pass("a_pass", graph, replace(graph, inputs=(*graph.inputs, Tensor("more", (1,), "int8"))))


def test_every_pass_is_observed(monkeypatch) -> None:
    """The tests' configuration puts the check there."""
    assert OBSERVERS
    seen: list[str] = []
    monkeypatch.setattr("tinyfuse.rewrite.OBSERVERS", [lambda one_pass, before, after: seen.append(one_pass.__name__)])
    graph = rewrite(read_tflite("net.tflite", mobilenet_v2()), "rows", "auto", "ram")
    assert seen == [saving.rewrite for saving in graph.savings]
    assert "split_full_height" in seen


def test_a_pass_that_breaks_one_is_named(monkeypatch) -> None:
    monkeypatch.setattr("tinyfuse.rewrite.ALWAYS", (lambda graph: with_ops(graph, *reversed(graph.ops)),))
    with pytest.raises(InternalFault, match=r"after <lambda>: .* reads .*, which nobody made before it"):
        rewrite(small(), "none", "auto")


def test_weights_of_a_split_layer_have_their_scales_along_the_units() -> None:
    """The axis was that of the file's layout, where the weights had another one."""
    s = Sketch(5)
    x = s.value((1, 6, 3, 5))
    before = read_tflite("net.tflite", s.build([x], [s.depthwise(x, (6, 3), padding="VALID")]))
    (op,) = before.ops
    assert op.inputs[1].quant.per_channel
    after = split_full_height(before)
    assert [op.kind for op in after.ops] == ["ROW_MACS", "OUTPUT_OF_SUMS"]
    assert not [*broken_invariants(after)]
