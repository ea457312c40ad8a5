"""RESHAPE: the same bytes under another shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule, constant_numbers
from tinyfuse.ops.core.movement import shape_constant


class ReshapeFamily(OpFamily):
    """RESHAPE. The new shape is that of the output tensor; if the file also gives one (an option, or a constant input),
    the tensor's was made from it. TFLM ignores quantization, so a different one of the output changes nothing here
    either."""

    kind = "RESHAPE"
    summary = "the same values under another shape"
    alias = True
    rules = (
        Rule(
            "one or two inputs and one output",
            lambda op: not 1 <= len(op.inputs) <= 2 or len(op.outputs) != 1 or op.inputs[0] is None,
        ),
        Rule(
            "the shape is constant",
            lambda op: next((t for t in op.inputs[1:] if t is not None and not t.is_constant), None),
            "convert the model with a static batch size",
        ),
        Rule("input and output have the same dtype", lambda op: op.input.dtype != op.output.dtype),
        Rule("input and output have the same number of elements", lambda op: op.input.elements != op.output.elements),
    )

    def instead(self, op: Op) -> Mapping[int, Tensor]:
        """Constant for a shape operand that a run computes: TFLM never reads it. Empty if the file leaves the output's
        shape open, because only the operand then determines it."""
        shape = op.inputs[1] if len(op.inputs) == 2 and op.outputs else None
        if shape is None or shape.is_constant or op.output.open_axes:
            return {}
        return {1: shape_constant(shape, op.output)}

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        shape = constant_numbers(op, 1)
        if shape is None or shape.count(-1) > 1:
            return None
        rest = prod(dim for dim in shape if dim != -1)
        return [op.input.elements // max(rest, 1) if dim == -1 else dim for dim in shape]

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (given(inputs[0]).reshape(op.output.shape),)
