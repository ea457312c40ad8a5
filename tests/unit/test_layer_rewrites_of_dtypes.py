"""Rewrites of int16 and float32 layers are exact or don't apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv_cases import Shape, make_op
from layer_cases import DTYPES
from other_dtypes import graph_in, other_dtype

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Conv2D
from tinyfuse.ops.core.real import FLOAT_MAX
from tinyfuse.rewrite.fold_activation import fold_activation
from tinyfuse.rewrite.fold_pad import fold_pad
from tinyfuse.rewrite.intervals import channel_intervals
from tinyfuse.rewrite.one_channel_depthwise import one_channel_depthwise
from tinyfuse.rewrite.prune_channels import prune_channels
from tinyfuse.rewrite.split_full_height import split_dense, split_full_height
from tinyfuse.rewrite.trim_kernels import trim_kernels
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

_SHAPE = Shape("CONV_2D", 6, 6, 4, 4, (3, 3), padding="VALID")


def layer(dtype: str, shape: Shape = _SHAPE) -> Op:
    return other_dtype(make_op(shape, np.random.default_rng(1)), dtype)


def graph_of(*ops: Op) -> Graph:
    return Graph("", "", ops, ops[0].activations, ops[-1].outputs)


def with_weights(op: Op, weights: np.ndarray) -> Op:
    return replace(op, inputs=(op.inputs[0], replace(op.inputs[1], data=weights), *op.inputs[2:]))


def padded(dtype: str, kind: str = "PAD", value: float | None = None) -> Graph:
    """A PAD and a layer."""
    conv = layer(dtype)
    source = replace(conv.input, shape=(1, 5, 5, 4), name="in")
    constants = [Tensor("amounts", (4, 2), "int32", data=np.array([[0, 0], [0, 1], [1, 0], [0, 0]], np.int32))]
    if value is not None:
        constants.append(Tensor("value", (1,), dtype, conv.input.quant, np.array([value], dtype)))
    return graph_of(Op(kind, (source, *constants), (conv.input,)), conv)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pad_becomes_the_convolutions_own(dtype: str) -> None:
    folded = fold_pad(padded(dtype))
    assert [op.kind for op in folded.ops] == ["CONV_2D"]
    assert folded.ops[0].attributes_as(Conv2D).padding == (0, 1, 1, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pad_of_another_value_stays(dtype: str) -> None:
    assert len(fold_pad(padded(dtype, "PADV2", 0)).ops) == 1
    graph = padded(dtype, "PADV2", 3)
    assert fold_pad(graph) is graph


def test_a_pad_before_infinite_weights_stays() -> None:
    """0 times an infinity is not a number, and a convolution leaves the outside out."""
    graph = padded("float32")
    weights = graph.ops[1].operand(1).values.copy()
    weights[0, 0, 0, 0] = np.inf
    graph = replace(graph, ops=(graph.ops[0], with_weights(graph.ops[1], weights)))
    assert fold_pad(graph) is graph


@pytest.mark.parametrize(("kind", "clamp"), [("RELU", (0.0, FLOAT_MAX)), ("RELU6", (0.0, 6.0))])
def test_an_activation_narrows_a_float_clamp(kind: str, clamp: tuple[float, float]) -> None:
    conv = layer("float32")
    relu = Op(kind, (conv.output,), (replace(conv.output, name="out"),))
    folded = fold_activation(graph_of(conv, relu))
    assert [op.attributes_as(Conv2D).clamp for op in folded.ops] == [clamp]


def test_an_activation_narrows_an_int16_clamp() -> None:
    conv = layer("int16")
    relu = Op("RELU", (conv.output,), (replace(conv.output, name="out"),))
    (folded,) = fold_activation(graph_of(conv, relu)).ops
    assert folded.attributes_as(Conv2D).clamp == (0, 32767)


def test_zero_taps_of_integers_alone_are_cut() -> None:
    for dtype, height in (("int16", 2), ("float32", 3)):
        op = layer(dtype)
        weights = op.operand(1).values.copy()
        weights[:, 0] = 0
        weights[:, 1] = 1
        trimmed = trim_kernels(graph_of(with_weights(replace(op, attributes=replace(op.attributes, padding="SAME"),
                                                             outputs=(replace(op.output, shape=op.input.shape),)),
                                                     weights)))  # fmt: skip
        assert trimmed.ops[0].operand(1).shape[1] == height


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("split", (split_full_height, split_dense))
@pytest.mark.parametrize("kind", ("CONV_2D", "DEPTHWISE_CONV_2D"))
def test_layers_as_high_as_the_image_stay_one(kind: str, split, dtype: str) -> None:
    shape = Shape(kind, 9, 4, 6, 6, (9, 4), padding="VALID")
    graph = graph_of(layer(dtype, shape))
    assert split(graph) is graph
    int8 = graph_of(make_op(shape, np.random.default_rng(1)))
    assert (split(int8) is int8) == ((split is split_full_height) != (kind == "DEPTHWISE_CONV_2D"))


@pytest.mark.parametrize("dtype", ("int8", *DTYPES))
@pytest.mark.parametrize(
    "shape",
    (
        Shape("DEPTHWISE_CONV_2D", 9, 7, 1, 8, (4, 3), (2, 2), multiplier=8),
        Shape("DEPTHWISE_CONV_2D", 6, 5, 1, 3, (3, 3), (1, 1), (2, 1), "VALID", "RELU", multiplier=3, bias=False),
        Shape("DEPTHWISE_CONV_2D", 5, 5, 1, 2, (2, 2), (1, 1), padding=(0, 1, 2, 0), multiplier=2, per_channel=False),
    ),
)
def test_a_depthwise_of_one_channel_is_a_convolution(dtype: str, shape: Shape) -> None:
    graph = graph_of(make_op(shape, np.random.default_rng(3)))
    graph = graph if dtype == "int8" else graph_in(graph, dtype)
    after = one_channel_depthwise(graph)
    assert [op.kind for op in after.ops] == ["CONV_2D"] and not any(
        r.problem(after.ops[0]) for r in FAMILIES["CONV_2D"].rules
    )
    for inputs in input_set(graph, 5, 0):
        wanted, found = (ReferenceOracle(g).run_all([inputs])[0][0] for g in (graph, after))
        np.testing.assert_array_equal(wanted.view(np.uint8), found.view(np.uint8))


def test_other_depthwise_convolutions_stay() -> None:
    """Layers with several input channels, and with one input and one output channel."""
    for channels, multiplier in ((2, 2), (1, 1)):
        shape = Shape("DEPTHWISE_CONV_2D", 5, 5, channels, channels * multiplier, (3, 3), multiplier=multiplier)
        graph = graph_of(make_op(shape, np.random.default_rng(4)))
        assert one_channel_depthwise(graph) is graph


@pytest.mark.parametrize("dtype", DTYPES)
def test_channels_that_hold_one_value_stay(dtype: str) -> None:
    rng = np.random.default_rng(2)
    first = make_op(Shape("CONV_2D", 4, 4, 3, 8), rng)
    weights = first.operand(1).values.copy()
    weights[2:5] = 0
    first = with_weights(first, weights)
    second = make_op(Shape("CONV_2D", 4, 4, 8, 5), rng)
    second = replace(second, inputs=(first.output, *second.inputs[1:]))
    assert prune_channels(graph_of(first, second)).ops[0].output.shape[3] == 5
    graph = graph_in(graph_of(first, second), dtype)
    assert prune_channels(graph) is graph
    assert channel_intervals(graph) == {}
