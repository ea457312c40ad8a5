"""Convolutions whose only window is the whole input become fully connected layers with the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv_cases import Shape, make_op
from layer_cases import DTYPES
from other_dtypes import graph_in

from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Conv2D, channel_multipliers
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.dense_windows import dense_windows
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

WHOLE = (
    Shape("CONV_2D", 6, 5, 1, 10, (6, 5), padding="VALID"),
    Shape("CONV_2D", 6, 5, 3, 4, (6, 5), (6, 5), padding="SAME"),
    Shape("CONV_2D", 1, 9, 2, 3, (1, 9), padding="VALID", dilation=(4, 1)),
    Shape("CONV_2D", 4, 3, 2, 5, (4, 3), padding="VALID", per_channel=False),
    Shape("CONV_2D", 4, 3, 2, 1, (4, 3), padding="VALID", per_channel=False, activation="RELU6"),
    Shape("CONV_2D", 4, 3, 2, 6, (4, 3), padding="VALID", bias=False, activation="RELU"),
    Shape("CONV_2D", 4, 3, 2, 6, (4, 3), padding="VALID", batch=3),
    # weights over padding, on both sides and on one
    Shape("CONV_2D", 3, 4, 2, 5, (5, 7), (5, 7), padding="SAME"),
    Shape("CONV_2D", 2, 2, 3, 4, (3, 2), padding=(0, 1, 0, 0)),
)

OTHERS = (
    Shape("CONV_2D", 6, 5, 1, 10, (6, 4), padding="VALID"),
    Shape("CONV_2D", 6, 5, 1, 10, (5, 5), padding=(0, 0, 0, 0), stride=(2, 1)),
    Shape("CONV_2D", 3, 3, 4, 8, (3, 3), padding="VALID", groups=2),
    Shape("CONV_2D", 5, 5, 2, 4, (3, 3), padding="VALID", dilation=(2, 2)),
    Shape("CONV_2D", 3, 4, 2, 5, (3, 4), padding="SAME"),
    Shape("DEPTHWISE_CONV_2D", 4, 4, 6, 6, (4, 4), padding="VALID"),
    # of one pixel, which kernels read in place
    Shape("CONV_2D", 1, 1, 12, 8),
)


def graph_of(shape: Shape, dtype: str = "int8") -> Graph:
    op = make_op(shape, np.random.default_rng(5))
    graph = Graph("", "", (op,), op.activations, op.outputs)
    return graph if dtype == "int8" else graph_in(graph, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", WHOLE, ids=str)
def test_a_window_over_the_whole_input_is_a_dense_layer(dtype: str, shape: Shape) -> None:
    graph = graph_of(shape, dtype)
    after = dense_windows(graph)
    (op,) = after.ops
    # of one channel and one scale, the product of two scales may differ in float32
    assert op.kind == "FULLY_CONNECTED" or (shape.out_channels == 1 and dtype != "float32")
    assert not any(rule.problem(op) for rule in FAMILIES[op.kind].rules)
    for inputs in input_set(graph, 5, 0):
        wanted, found = (ReferenceOracle(each).run_all([inputs])[0][0] for each in (graph, after))
        np.testing.assert_array_equal(wanted.view(np.uint8), found.view(np.uint8))


@pytest.mark.parametrize("shape", OTHERS, ids=str)
def test_other_windows_stay(shape: Shape) -> None:
    graph = graph_of(shape)
    assert dense_windows(graph) is graph


def test_one_scale_that_float32_rounds_otherwise_becomes_one_a_channel() -> None:
    """FULLY_CONNECTED multiplies scales in float32, CONV_2D in double precision."""

    def with_scale(op: Op, scale: float) -> Op:
        quant = replace(op.operand(1).quantization, scale=(scale,))
        return replace(op, inputs=(op.input, replace(op.operand(1), quant=quant), *op.inputs[2:]))

    graph = graph_of(WHOLE[3])
    scales = np.random.default_rng(1).uniform(0.001, 0.1, 20).astype(np.float32).astype(float)
    found = set()
    for op in (with_scale(graph.ops[0], scale) for scale in (2.0**-7, *scales)):
        (dense,) = dense_windows(replace(graph, ops=(op,))).ops
        assert dense.kind == "FULLY_CONNECTED"
        np.testing.assert_array_equal(channel_multipliers(op), channel_multipliers(dense))
        found.add(dense.operand(1).quantization.per_channel)
    assert found == {False, True}


def test_weights_of_int4_and_int16_stay() -> None:
    graph = graph_of(replace(WHOLE[0], weights_dtype="int4"))
    assert dense_windows(graph) is graph
    (op,) = graph_of(WHOLE[3]).ops
    weights = replace(op.operand(1), dtype="int16", data=op.operand(1).values.astype(np.int16))
    attributes = replace(op.attributes_as(Conv2D), float_scales=True)
    wide = replace(op, inputs=(op.input, weights, *op.inputs[2:]), attributes=attributes)
    graph = Graph("", "", (wide,), wide.activations, wide.outputs)
    assert dense_windows(graph) is graph


@pytest.mark.parametrize(("fusion", "kernels", "kind"), [
    ("rows", "auto", "FULLY_CONNECTED"), ("basic", "tinyfuse", "FULLY_CONNECTED"), ("none", "auto", "CONV_2D"),
    ("rows", "cmsis-nn", "CONV_2D"),
])  # fmt: skip
def test_whether_it_is_done(fusion: str, kernels: str, kind: str) -> None:
    """Not for CMSIS-NN's kernels, whose dense layers have one scale in most of its versions."""
    assert [op.kind for op in rewrite(graph_of(WHOLE[0]), fusion, kernels).ops] == [kind]
