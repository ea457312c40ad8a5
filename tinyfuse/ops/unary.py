"""What int8 operators of one input share: rules, and a reference that is a function of one value.

An int8 function has 256 results. A family of this kind gives `function`, its exact arithmetic on stored
values; the kernels (tinyfuse/kernels/activation.py) compute it at compile time.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.base import SAME_ROW, OpFamily, RowWindow, Rule


def unquantized(op: Op) -> Tensor | None:
    """The first of input and output that has not exactly one scale and zero point."""
    return next((t for t in (op.input, op.output) if t.quant is None or t.quant.per_channel), None)


ONE_INPUT = Rule(
    "one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs
)
ONE_SHAPE = Rule("input and output have one shape", lambda op: op.output if op.input.shape != op.output.shape else None)
UNARY_RULES = (
    ONE_INPUT,
    Rule(
        "input and output are int8",
        lambda op: next((t for t in (op.input, op.output) if t.dtype != "int8"), None),
        "quantize the model to int8 (full integer quantization)",
    ),
    Rule("input and output have one scale and one zero point", unquantized),
    ONE_SHAPE,
)


def scale_ratio(op: Op) -> float:
    """The real multiplier from input to output, divided in float32 as TFLM does."""
    return float(np.float32(op.input.scale) / np.float32(op.output.scale))


#: a value less its zero point has nine bits: beyond this, the left shift of requantization overflows
RATIO_RULE = Rule(
    "the input's scale is below 2^21 times the output's", lambda op: op.input.scale / op.output.scale >= 2.0**21
)


def saturate(values: Array) -> Array:
    """The nearest int8 values."""
    return np.clip(values, -128, 127).astype(np.int8)


class UnaryOperator(OpFamily):
    """Elementwise: streams by rows, works in place."""

    elementwise = True
    rules: tuple[Rule, ...] = UNARY_RULES

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (self.function(op, given(inputs[0])),)

    def function(self, op: Op, values: Array) -> Array:
        """The stored results of stored values, element by element."""
        raise NotImplementedError

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None
