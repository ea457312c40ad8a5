"""SELECT_V2: one of two stored values, by a condition. Quantization is ignored, as in TFLM."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.core.movement import ends
from tinyfuse.ops.elementwise.elementwise import FEW_DIMENSIONS

#: the most loops in the C kernel's loop nest
MOST_LOOPS = 5
DTYPES = ("int8", "int16", "float32")


def select_loops(op: Op, rows: bool) -> tuple[tuple[int, ...], ...]:
    """(dims, strides of the condition, of x, of y) of the shortest loop nest over the output, outermost first;
    `rows`: over one of its rows."""
    output = op.output.shape[2:] if rows else op.output.shape
    shapes = [(1,) * (len(op.output.shape) - len(t.shape)) + t.shape for t in op.operands]
    loops: list[tuple[int, ...]] = []
    for axis, dim in enumerate(output):
        if dim == 1:
            continue
        tails = [shape[2:] if rows else shape for shape in shapes]
        steps = tuple(int(np.prod(tail[axis + 1 :])) if tail[axis] > 1 else 0 for tail in tails)
        if loops and all(outer == inner * dim for outer, inner in zip(loops[-1][1:], steps, strict=True)):
            loops[-1] = (loops[-1][0] * dim, *steps)
        else:
            loops.append((dim, *steps))
    return tuple(zip(*(loops or [(1, 0, 0, 0)]), strict=True))


def _bad_shapes(op: Op) -> Tensor | None:
    try:
        shape = np.broadcast_shapes(*(t.shape for t in op.operands))
    except ValueError:
        return op.operand(0)
    return None if shape == op.output.shape and op.output.elements > 0 else op.output


def _bad_dtype(op: Op) -> Tensor | None:
    _, x, y = op.operands
    return next((t for t in (x, y, op.output) if t.dtype not in DTYPES or t.dtype != x.dtype), None)


class SelectFamily(OpFamily):
    """SELECT_V2: a bool condition and two operands of the same dtype, all of which broadcast -> that dtype."""

    kind = "SELECT_V2"
    zero_scales = (1, 2)
    pointwise = True
    rows_alike = True
    summary = "x where a condition holds, y elsewhere, with broadcasting"
    rules = (
        ends(3),
        Rule("the condition is bool", lambda op: op.operand(0) if op.operand(0).dtype != "bool" else None),
        Rule(
            f"the others have the same dtype, one of {', '.join(DTYPES)}",
            _bad_dtype,
            "TensorFlow Lite Micro has no others",
        ),
        Rule("the inputs' shapes broadcast to the output's", _bad_shapes),
        FEW_DIMENSIONS,
        Rule(
            f"at most {MOST_LOOPS} loops walk over the inputs (dimensions that are broadcast alike are one)",
            lambda op: len(select_loops(op, rows=False)[0]) > MOST_LOOPS,
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        condition, x, y = all_given(inputs)
        return (np.where(condition, x, y),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if not (op.output.is_image and op.operand(index).is_image):
            return None
        return SAME_ROW if op.operand(index).shape[1] == op.output.shape[1] else RowWindow(1, stride=0)
