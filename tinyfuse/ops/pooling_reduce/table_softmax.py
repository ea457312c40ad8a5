"""TABLE_SOFTMAX: SOFTMAX of int8 as onnxruntime computes it (QLinearSoftmax)."""

from __future__ import annotations

import math

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.dtypes import ONE_QUANTIZATION
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.core.permute import Order
from tinyfuse.ops.core.real import sum_in_order

#: the greatest sum of exps is at most the largest float32 divided by exp(_RESERVE)
_RESERVE = 5.0
_MOST_FACTOR = 1 << 16


def exps_of_differences(scale: float, depth: int) -> Array:
    """float32 [256]: exps of the differences -255 to 0 to the greatest value of a vector, times one factor.

    scale: the input's scale; depth: values of a vector. The factor makes the exps as large as their sum in float32
    allows. Source: onnxruntime, contrib_ops/cpu/quantization/qlinear_softmax.cc.
    """
    most = np.float32(np.finfo(np.float32).max) / np.float32(depth)
    shift = max(0.0, float(np.float32(math.log(float(most)))) - _RESERVE) / scale
    return np.array([math.exp((i - 255 + shift) * scale) for i in range(256)], np.float32)


def output_factor(op: Op) -> int:
    """Return the integer by which exponentials are multiplied before they are divided by their sum: 1 / the output's
    scale, truncated."""
    return int(np.floor(np.float32(1) / np.float32(op.output.scale)))


class TableSoftmaxFamily(OpFamily):
    """TABLE_SOFTMAX: int8 [..., n] and float32 [256], the exponentials of differences -255 to 0 to a vector's greatest
    value -> int8 of the input's shape. Exponentials are summed in float32 in the order of memory; exponential *
    `output_factor` / sum is rounded once, halves to even."""

    kind = "TABLE_SOFTMAX"
    summary = "softmax by a table of exps, as onnxruntime computes it"
    in_files = False
    rules = (
        Rule("two inputs and one output", lambda op: len(op.inputs) != 2 or len(op.outputs) != 1 or None in op.inputs),
        ONE_QUANTIZATION,
        Rule(
            "input and output have the same shape", lambda op: op.input.shape != op.output.shape or not op.input.shape
        ),
        Rule(
            f"the output's scale is from 1/{_MOST_FACTOR} to 1",
            lambda op: op.output if not 1 <= 1 / op.output.scale <= _MOST_FACTOR else None,
        ),
    )

    def by_vectors(self, op: Op) -> bool:
        return True

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image and index == 0 else None

    def permuted(self, op: Op, order: Order) -> Op | None:
        return op if order[-1] == len(order) - 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        data, table = given(inputs[0]).astype(np.int64), given(inputs[1])
        exps = table[data - data.max(axis=-1, keepdims=True) + 255]
        total = sum_in_order(np.moveaxis(exps, -1, 0))[..., None]
        quotients = exps.astype(np.float64) * output_factor(op) / total.astype(np.float64)
        return (np.minimum(np.rint(quotients).astype(np.int64) + op.output.zero_point, 127).astype(np.int8),)


def table_of(name: str, scale: float, depth: int) -> Tensor:
    """The constant input of a TABLE_SOFTMAX."""
    exps = exps_of_differences(scale, depth)
    exps.setflags(write=False)
    return Tensor(name, exps.shape, "float32", None, exps)
