"""RESHAPE: the same bytes under another shape."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.base import OpFamily, Rule
from tinyfuse.ops.movement import shape_constant


class ReshapeOperator(OpFamily):
    """The new shape is that of the output tensor; where the file gives one too (an option, or a
    constant input), it was made from it. TFLM looks at no quantization, so here too a different one changes
    nothing."""

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
        Rule("input and output have one dtype", lambda op: op.input.dtype != op.output.dtype),
        Rule("input and output have one number of elements", lambda op: op.input.elements != op.output.elements),
    )

    def instead(self, op: Op) -> Mapping[int, Tensor]:
        """TFLM never looks at the shape's values: they may be computed when the model runs."""
        shape = op.inputs[1] if len(op.inputs) == 2 and op.outputs else None
        if shape is None or shape.is_constant:
            return {}
        return {1: shape_constant(shape, op.output)}

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (given(inputs[0]).reshape(op.output.shape),)
