"""Rows that operators need, specified independently for the checker.

The schedule takes the rows that an output row reads from `OpFamily.row_window`, and a kernel's scratch from
`Kernel.scratch`. A checker that called the same methods would share their mistakes. So this file and scratch.py derive
both anew: rows in closed form from the operator's attributes and shapes (or, where an operator only moves rows, by
running its reference on row numbers), scratch from the arguments of the printed C call.
tests/unit/test_plan_checker.py compares both with the references and the C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, division
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Conv2D
from tinyfuse.ops.layers.looked_up import LookedUp
from tinyfuse.ops.layers.tiled import Tiled
from tinyfuse.ops.layers.transpose_conv import TransposeConv
from tinyfuse.ops.movement.resize import Resize
from tinyfuse.ops.pooling_reduce.pooling import Pool2D
from tinyfuse.plan.plan import Stage


@lru_cache(maxsize=1024)
def rows_read(op: Op, index: int) -> tuple[range, ...] | None:
    """Computes per output row the rows of input `index` that it depends on, from first to last.

    Returns None for operators unknown here, such as a plugin's.
    """
    height, rows = op.operand(index).shape[1], op.output.shape[1]
    found = _rows_of_elements if op.kind in _OF_ELEMENTS else _ROWS.get(op.kind)
    if op.kind == "ROWS_MATMUL" and index == 1:
        found = _all_rows
    if found is None:
        return None
    return tuple(_inside(first, after, height) for first, after in (found(op, height, y) for y in range(rows)))


def access_orders_of(stage: Stage, context: Context) -> dict[int, AccessOrder]:
    """Maps input index to the order in which the stage's calls read that input.

    A call split into pieces that each read the whole input has not finished reading before the next piece writes, so
    its order is unbuffered. Calls that make several rows have no order.
    """
    kernel = stage.kernel
    if stage.by_row and kernel.rows_a_call > 1:
        return {}
    orders = dict(kernel.row_access_orders(stage.op) if stage.by_row else kernel.access_orders(stage.op))
    whole = division(stage.kernel, stage.op, stage.by_row, context)
    if stage.pieces == 1 or (whole is not None and whole.along):
        return orders
    return {i: replace(order, buffered=False) for i, order in orders.items()}


def _inside(first: int, after: int, height: int) -> range:
    return range(max(first, 0), min(after, height))


#: operators whose output row y depends only on input row y (ROWS_MATMUL: of its left operand)
_ELEMENTWISE = (
    "ABS ADD ADD_N CAST CEIL CHANNEL_TABLES CONCATENATION COS DEQUANTIZE DIV ELU EQUAL EXP FLOOR FLOOR_DIV FLOOR_MOD "
    "FULLY_CONNECTED FUSED_LOOP "
    "GELU GREATER GREATER_EQUAL HARD_SWISH LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC "
    "MAXIMUM MEAN MINIMUM MUL NEG NOT_EQUAL PLANES_TO_ROWS POW PRELU QUANTIZE REDUCE_ALL REDUCE_MAX REDUCE_MIN "
    "RELU RELU6 ROUND ROWS_MATMUL ROWS_TO_PLANES ROW_MACS ROW_MAX ROW_MIN ROW_SUM RSQRT SELECT_V2 SIN SOFTMAX SQRT "
    "SQUARE SQUARED_DIFFERENCE SUB SUM TABLE TABLE_SOFTMAX TANH"
)
_OF_ELEMENTS = frozenset(_ELEMENTWISE.split())


def _rows_of_elements(op: Op, height: int, y: int) -> tuple[int, int]:
    """Row `y`, or row 0 of an input whose single row is broadcast."""
    row = y if height > 1 else 0
    return row, row + 1


def _pads_before(padding: str | tuple[int, ...], dim: int, count: int, reach: int, stride: int) -> int:
    """Counts the rows of padding above the image. SAME padding puts half of all missing rows above, and an odd one
    below."""
    if isinstance(padding, tuple):
        return padding[0]
    return max((count - 1) * stride + reach - dim, 0) // 2 if padding == "SAME" else 0


def _rows_of_window(op: Op, height: int, y: int) -> tuple[int, int]:
    """Rows read by CONV_2D, DEPTHWISE_CONV_2D and pooling."""
    a: Pool2D | Conv2D
    if isinstance(op.attributes, Pool2D):
        a, taps, step = op.attributes, op.attributes.filter[0], 1
    else:
        a = op.attributes_as(Conv2D)
        taps, step = op.operand(1).shape[1], a.dilation[0]
    reach = 1 + step * (taps - 1)
    start = a.stride[0] * y - _pads_before(a.padding, height, op.output.shape[1], reach, a.stride[0])
    return start, start + reach


def _rows_of_transposed(op: Op, height: int, y: int) -> tuple[int, int]:
    """Rows read by TRANSPOSE_CONV: input row r adds to the kernel-height output rows from r * stride - cut on.

    The cut is the padding of a convolution of the output. A file may ask for an output that its input does not fill.
    """
    a, taps, rows = op.attributes_as(TransposeConv), op.operand(1).shape[1], op.output.shape[1]
    stride = a.stride[0]
    cut = _pads_before(a.padding, rows, -(-rows // stride), taps, stride)
    return -(-(y + cut - taps + 1) // stride), (y + cut) // stride + 1


def _rows_of_bilinear(op: Op, height: int, y: int) -> tuple[int, int]:
    """Rows read by RESIZE_BILINEAR: the two around y's position, in 1024ths of an input row (float32: in rows)."""
    a, rows, before = op.attributes_as(Resize), op.output.shape[1], 0
    if a.excerpt is not None:
        height, rows, before, y = a.excerpt.in_height, a.excerpt.out_height, a.excerpt.first_in, a.excerpt.first_out + y
    over, under = (height - 1, rows - 1) if a.align_corners and rows > 1 else (height, rows)
    if op.output.dtype == "float32":
        slant, shift = np.float32(over) / np.float32(under), np.float32(0.5 if a.half_pixel_centers else 0)
        at = float((np.float32(y) + shift) * slant - shift)
        return max(math.floor(at), 0) - before, min(math.ceil(at), height - 1) + 1 - before
    slope = (1024 * over + under // 2) // under
    place = y * slope + (slope // 2 - 512 if a.half_pixel_centers else 0)
    above, below = max(place // 1024, 0), min(max(-(-place // 1024), 0), height - 1)
    return min(above, below) - before, max(above, below) + 1 - before


def _rows_of_moved(op: Op, height: int, y: int) -> tuple[int, int]:
    """Row read by an operator that only moves rows, found by running its reference on row numbers."""
    row = _moved_rows(op)[y]
    return row, row + 1


@lru_cache(maxsize=1024)
def _moved_rows(op: Op) -> list[int]:
    shape = op.input.shape
    numbers = np.broadcast_to(np.arange(shape[1], dtype=np.int32)[None, :, None, None], shape)
    others = [None if tensor is None else tensor.data for tensor in op.inputs[1:]]
    (moved,) = FAMILIES[op.kind].reference(op, numbers, *others)
    rows: list[int] = moved[0, :, 0, 0].tolist()
    return rows


def _rows_of_padded(op: Op, height: int, y: int) -> tuple[int, int]:
    row = y - int(op.operand(1).values[1][0])
    return row, row + 1


def _all_rows(op: Op, height: int, y: int) -> tuple[int, int]:
    return 0, height


def _last_row(op: Op, height: int, y: int) -> tuple[int, int]:
    return height - 1, height


def _rows_of_parts(op: Op, height: int, y: int) -> tuple[int, int]:
    """Rows that the first part of a TILED operator reads to make row `y` of the last part."""
    rows = range(y, y + 1)
    for part in reversed(op.attributes_as(Tiled).parts):
        read = [_inside(*_rows_of_window(part, part.input.shape[1], row), part.input.shape[1]) for row in rows]
        rows = range(read[0].start, read[-1].stop)
    return rows.start, rows.stop


def _rows_of_layer(op: Op, height: int, y: int) -> tuple[int, int]:
    """Rows read by a layer with a fused lookup table: the rows that the layer itself reads."""
    return _rows_of_window(op.attributes_as(LookedUp).layer, height, y)


_ROWS: Mapping[str, Callable[[Op, int, int], tuple[int, int]]] = {
    "CONV_2D": _rows_of_window,
    "DEPTHWISE_CONV_2D": _rows_of_window,
    "AVERAGE_POOL_2D": _rows_of_window,
    "MAX_POOL_2D": _rows_of_window,
    "L2_POOL_2D": _rows_of_window,
    "LOOKED_UP": _rows_of_layer,
    "TILED": _rows_of_parts,
    "TRANSPOSE_CONV": _rows_of_transposed,
    "RESIZE_BILINEAR": _rows_of_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": _rows_of_moved,
    "MIRROR_PAD": _rows_of_moved,
    "PAD": _rows_of_padded,
    "PADV2": _rows_of_padded,
    "AVERAGE_OF_SUM": _last_row,
    "MEAN_OF_SUM": _last_row,
    "OUTPUT_OF_SUMS": _last_row,
}
