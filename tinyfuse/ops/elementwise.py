"""ADD and MUL, int8: equal shapes or broadcasting, constants included, fused activation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.fixedpoint import clamp, multiply_by_quantized_multiplier
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.cmsis_elementwise import CmsisAdd, CmsisMul
from tinyfuse.kernels.elementwise import BroadcastBinary, EqualShapes
from tinyfuse.ops.base import SAME_ROW, Operator, RowWindow, Rule
from tinyfuse.ops.binary import ADD_SHIFT, Binary, add_multipliers, mul_multiplier
from tinyfuse.ops.convolution import ACTIVATIONS, clamp_range


def _not_int8(op: Op) -> Tensor | None:
    return next((t for t in (*op.inputs, op.output) if t is None or t.dtype != "int8"), None)


def _bad_quantization(op: Op) -> Tensor | None:
    return next((t for t in (*op.inputs, op.output) if t.quant is None or t.quant.per_channel), None)


def _bad_shapes(op: Op) -> Tensor | None:
    try:
        shape = np.broadcast_shapes(op.inputs[0].shape, op.inputs[1].shape)
    except ValueError:
        return op.inputs[1]
    good = shape == op.output.shape and len(shape) <= 4 and op.output.elements > 0
    return None if good else op.output


_RULES = (
    Rule("two inputs and one output", lambda op: len(op.inputs) != 2 or len(op.outputs) != 1 or None in op.inputs),
    Rule("inputs and output are int8", _not_int8, "quantize the model to int8 (full integer quantization)"),
    Rule("inputs and output have one scale and one zero point", _bad_quantization),
    Rule("shapes of rank 4 or less broadcast to the output's", _bad_shapes),
    Rule(
        f"the fused activation is one of {', '.join(ACTIVATIONS)}",
        lambda op: op.attributes.activation not in ACTIVATIONS,
    ),
)


class _Binary(Operator):
    def attributes(self, options: Mapping[str, Any]) -> Binary:
        return Binary(options.get("fused_activation_function", "NONE"))

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        image = len(op.output.shape) == 4 and op.output.shape[0] == 1
        return SAME_ROW if image and op.inputs[index].shape == op.output.shape else None


class AddOperator(_Binary):
    """Both operands are shifted left by 20, rescaled to twice the larger scale and added; the sum is
    rescaled to the output (TFLM, reference/integer_ops/add.h)."""

    kind = "ADD"
    summary = "a + b, with broadcasting"
    rules = (
        *_RULES,
        Rule(
            "the output's scale is above 2^-19 times the larger input scale",
            lambda op: add_multipliers(op)[2][1] > 0,
            "such a sum would overflow in TensorFlow Lite Micro too",
        ),
    )
    kernels = (EqualShapes("ADD"), BroadcastBinary("ADD"), CmsisAdd())

    def reference(self, op: Op, *inputs: np.ndarray | None) -> tuple[np.ndarray, ...]:
        scaled = [
            multiply_by_quantized_multiplier(
                (data.astype(np.int64) - tensor.zero_point) << ADD_SHIFT, *multiplier
            )
            for data, tensor, multiplier in zip(inputs, op.inputs, add_multipliers(op)[:2], strict=True)
        ]
        total = multiply_by_quantized_multiplier(scaled[0] + scaled[1], *add_multipliers(op)[2])
        return (clamp(total + op.output.zero_point, *clamp_range(op)),)


class MulOperator(_Binary):
    """The product of both operands less their zero points is rescaled to the output."""

    kind = "MUL"
    summary = "a * b, with broadcasting"
    rules = (
        *_RULES,
        Rule("the requantization multiplier is below 2^15", lambda op: mul_multiplier(op)[1] > 15),
    )
    kernels = (EqualShapes("MUL"), BroadcastBinary("MUL"), CmsisMul())

    def reference(self, op: Op, *inputs: np.ndarray | None) -> tuple[np.ndarray, ...]:
        a, b = (d.astype(np.int64) - t.zero_point for d, t in zip(inputs, op.inputs, strict=True))
        scaled = multiply_by_quantized_multiplier(a * b, *mul_multiplier(op))
        return (clamp(scaled + op.output.zero_point, *clamp_range(op)),)
