"""What operators of one input share: rules, and a reference that is a function of one value.

A family of this kind gives `function`, its exact arithmetic on stored values, and, where it takes float32 too, `real`.
An int8 function has 256 results, which the kernels (tinyfuse/kernels/activation.py) compute at compile time.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.float_math import Floats
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.base import SAME_ROW, OpFamily, RowWindow, Rule


def unquantized(op: Op) -> Tensor | None:
    """The first integer of input and output that has not exactly one scale and zero point."""
    tensors = (t for t in (op.input, op.output) if t.dtype in RANGE)
    return next((t for t in tensors if t.quant is None or t.quant.per_channel), None)


ONE_INPUT = Rule(
    "one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs
)
ONE_SHAPE = Rule("input and output have one shape", lambda op: op.output if op.input.shape != op.output.shape else None)


def unary_rules(*dtypes: str) -> tuple[Rule, ...]:
    """Of a function of one value of those dtypes."""

    def broken(op: Op) -> Tensor | None:
        if op.input.dtype not in dtypes:
            return op.input
        return op.output if op.output.dtype != op.input.dtype else None

    quantized = (
        Rule("quantized input and output have one scale and one zero point", unquantized),
        Rule(
            "the zero points of int16 are 0",
            lambda op: next((t for t in (op.input, op.output) if t.dtype == "int16" and t.zero_point), None),
            "int16 is quantized symmetrically",
        ),
    )
    return (
        ONE_INPUT,
        Rule(f"input and output have one dtype of {', '.join(dtypes)}", broken, HINT_DTYPE),
        *(quantized if set(dtypes) & set(RANGE) else ()),
        ONE_SHAPE,
    )


HINT_DTYPE = "TensorFlow Lite Micro computes it in no others; full integer quantization gives int8"


def scale_ratio(op: Op) -> float:
    """The real multiplier from input to output, divided in float32 as TFLM does."""
    return float(np.float32(op.input.scale) / np.float32(op.output.scale))


#: a value less its zero point has 9 bits, or 16: beyond this, the left shift of requantization overflows
MOST_RATIO = {"int8": 2.0**21, "int16": 2.0**14}
RATIO_RULE = Rule(
    "the input's scale is below 2^21 times the output's, of int16 2^14 times",
    lambda op: op.input.dtype in MOST_RATIO and op.input.scale / op.output.scale >= MOST_RATIO[op.input.dtype],
)


def saturate(values: Array, dtype: str = "int8") -> Array:
    """The nearest values of that dtype."""
    return np.clip(values, *RANGE[dtype]).astype(dtype)


class UnaryOperator(OpFamily):
    """Elementwise: streams by rows, works in place."""

    elementwise = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        data = given(inputs[0])
        if op.input.dtype != "float32":
            return (self.function(op, data),)
        with np.errstate(all="ignore"):
            return (np.asarray(self.real(op, data), np.float32),)

    def function(self, op: Op, values: Array) -> Array:
        """The stored results of stored values, element by element."""
        raise NotImplementedError

    def real(self, op: Op, x: Floats) -> Floats:
        """The same of float32, each operation rounded as TFLM rounds it."""
        raise NotImplementedError

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None
