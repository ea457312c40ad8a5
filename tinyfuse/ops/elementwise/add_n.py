"""ADD_N: the sum of any number of tensors of one shape."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ir.fixedpoint import RANGE, clamp, multiply_by_quantized_multiplier, quantize_multiplier
from tinyfuse.ops.core.binary import Multiplier
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.elementwise.elementwise import QUANTIZATION_RULE

_DTYPES = ("int8", "float32")
#: left shift of an int8 operand, which then is multiplied by 1/2
SHIFT = 20


def add_n_multiplier(op: Op) -> Multiplier:
    """(multiplier, shift) of the int8 sum."""
    return quantize_multiplier(2.0 * op.input.scale / (2.0**SHIFT * op.output.scale))


def _bad_dtype(op: Op) -> Tensor | None:
    wanted = op.input.dtype if op.input.dtype in _DTYPES else _DTYPES[0]
    return next((t for t in (*op.operands, op.output) if t.dtype != wanted), None)


class AddNFamily(OpFamily):
    """ADD_N. float32: 0 plus the first operand, plus the second, and so on. int8: as ADD of one scale; the sum starts
    with the negated zero point instead of 0, which subtracts the zero point once too often, as TFLM does."""

    kind = "ADD_N"
    pointwise = True
    rows_alike = True
    summary = "the sum of several tensors of one shape"
    rules = (
        Rule(
            "two inputs or more and one output",
            lambda op: len(op.inputs) < 2 or len(op.outputs) != 1 or None in op.inputs,
        ),
        Rule(
            f"inputs and output have the same dtype, one of {', '.join(_DTYPES)}",
            _bad_dtype,
            "TensorFlow Lite Micro has no others",
        ),
        QUANTIZATION_RULE,
        Rule(
            "int8 inputs have the same scale and zero point",
            lambda op: next((t for t in op.operands if _other(op, t)), None),
        ),
        Rule(
            "inputs and output have the same shape, which is not empty",
            lambda op: next(
                (t for t in (*op.operands, op.output) if t.shape != op.output.shape or not t.elements), None
            ),
        ),
        Rule("at most 7 int8 inputs", lambda op: op.output.dtype == "int8" and len(op.inputs) > 7, "add some first"),
        Rule(
            "the output's scale is above 2^-19 times the int8 inputs'",
            lambda op: op.output.dtype in RANGE and add_n_multiplier(op)[1] > 0,
            "such a sum would overflow in TensorFlow Lite Micro too",
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        if op.output.dtype == "float32":
            total = np.zeros(op.output.shape, np.float32)
            with np.errstate(all="ignore"):
                for data in all_given(inputs):
                    total = np.add(total, data, dtype=np.float32)
            return (total,)
        zero_point = op.input.zero_point
        stored = sum(data.astype(np.int64) - zero_point for data in all_given(inputs)) - zero_point
        rescaled = multiply_by_quantized_multiplier(stored << (SHIFT - 1), *add_n_multiplier(op))
        return (clamp(rescaled + op.output.zero_point, -128, 127),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None


def _other(op: Op, tensor: Tensor) -> bool:
    quants = [(t.quantization.scale[0], t.quantization.zero_point[0]) for t in (op.input, tensor) if t.dtype == "int8"]
    return len(set(quants)) > 1
