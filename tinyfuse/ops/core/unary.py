"""What operators of one input share: rules, and a reference that is a function of one value.

A family of this kind gives `function`, its exact arithmetic on stored values, and, where it takes float32 too, `real`.
An int8 function has 256 results, which the kernels (tinyfuse/kernels/elementwise/unary.py) compute at compile
time."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.dtypes import ONE_QUANTIZATION, computed_dtype
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule

ONE_INPUT = Rule(
    "one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs
)
ONE_SHAPE = Rule(
    "input and output have the same shape", lambda op: op.output if op.input.shape != op.output.shape else None
)


#: rule of operators that TFLM computes without zero points for int16 data
SYMMETRIC_INT16 = Rule(
    "the zero points of int16 are 0",
    lambda op: next((t for t in (*op.operands, *op.outputs) if t.dtype == "int16" and t.zero_point), None),
    "int16 is quantized symmetrically",
)


def unary_rules(*dtypes: str) -> tuple[Rule, ...]:
    """Return the rules of a function of one value, for the given dtypes."""
    quantized = (ONE_QUANTIZATION,) if set(dtypes) & set(RANGE) else ()
    symmetric = (SYMMETRIC_INT16,) if "int16" in dtypes else ()
    return (ONE_INPUT, computed_dtype(*dtypes), *quantized, *symmetric, ONE_SHAPE)


def scale_ratio(op: Op) -> float:
    """Input scale / output scale, as a double. (Some releases of TFLM divide in float32, which differs if a product is
    exactly a half; the oracle of our tests does not.)"""
    return op.input.scale / op.output.scale


#: exclusive bound of `scale_ratio`: beyond it, requantization shifts a value less its zero point (9 bits for int8, 16
#: for int16) left until it overflows
MOST_RATIO = {"int8": 2.0**21, "int16": 2.0**14}
RATIO_RULE = Rule(
    "the input's scale is below 2^21 times the output's, of int16 2^14 times",
    lambda op: op.input.dtype in MOST_RATIO and op.input.scale / op.output.scale >= MOST_RATIO[op.input.dtype],
)


def saturate(values: Array, dtype: str = "int8") -> Array:
    """Values clamped to the range of `dtype`."""
    return np.clip(values, *RANGE[dtype]).astype(dtype)


class UnaryFamily(OpFamily):
    """Base of elementwise operators of one input. They can run by rows and in place."""

    elementwise = True
    rows_alike = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        data = given(inputs[0])
        if op.input.dtype != "float32":
            return (self.function(op, data),)
        with np.errstate(all="ignore"):
            return (np.asarray(self.real(op, data), np.float32),)

    def function(self, op: Op, values: Array) -> Array:
        """The stored results of stored values, element by element."""
        raise NotImplementedError

    def function_of_uint8(self, op: Op, values: Array) -> Array:
        """`function` in a uint8 model, int64, as LiteRT computes it. Values and zero points are 128 less than in the
        file."""
        return self.function(op, values.astype(np.int8)).astype(np.int64)

    def real(self, op: Op, x: Floats) -> Floats:
        """Compute the function in float32, each operation rounded as TFLM rounds it."""
        raise NotImplementedError

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None
