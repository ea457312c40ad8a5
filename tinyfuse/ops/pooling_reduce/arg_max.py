"""ARG_MAX and ARG_MIN: the index of the greatest (least) value along a dimension."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ops.core.axes import AlongAxes, AxesOperand
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.movement import axis_of, constant_axis, ends


def reduced_axis(op: Op) -> int:
    """The dimension that is searched, from 0."""
    return axis_of(op.operand(1), len(op.input.shape))


def _shape_along(op: Op, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dim for axis, dim in enumerate(op.input.shape) if axis not in axes)


_AXIS = AxesOperand(_shape_along)


class _ArgExtreme(AlongAxes):
    """Base of ARG_MAX and ARG_MIN. Of equal values, the first counts. NaN is neither greater nor less than another
    float."""

    axes = _AXIS
    rules = (
        ends(2),
        Rule(
            "the input is int8 or float32",
            lambda op: op.input if op.input.dtype not in ("int8", "float32") else None,
            "TensorFlow Lite Micro takes no other",
        ),
        Rule(
            "the output is int32",
            lambda op: op.output if op.output.dtype != "int32" else None,
            "TensorFlow Lite Micro gives no other: convert the model with output_type int32",
        ),
        *_AXIS.rules(
            Rule(
                "the axis is an int32, a dimension of the input",
                lambda op: None if constant_axis(op.operand(1), len(op.input.shape)) else op.operand(1),
            ),
            Rule(
                "the output has the input's shape without the axis",
                lambda op: op.output if op.output.shape != _shape_along(op, (reduced_axis(op),)) else None,
            ),
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        values = np.moveaxis(given(inputs[0]), reduced_axis(_AXIS.chosen(op, inputs[1])), 0)
        beyond = np.less if op.kind == "ARG_MIN" else np.greater
        most, found = values[0], np.zeros(values.shape[1:], np.int32)
        for index, value in enumerate(values[1:], 1):
            further = beyond(value, most)
            most, found = np.where(further, value, most), np.where(further, np.int32(index), found)
        return (found.reshape(op.output.shape),)


class ArgMaxFamily(_ArgExtreme):
    """ARG_MAX: int8 or float32 [...] -> int32, the shape without the axis."""

    kind = "ARG_MAX"
    computes_uint8 = True
    summary = "index of the greatest value along a dimension"


class ArgMinFamily(_ArgExtreme):
    """ARG_MIN: int8 or float32 [...] -> int32, the shape without the axis."""

    kind = "ARG_MIN"
    computes_uint8 = True
    summary = "index of the least value along a dimension"
