"""Which rows of a graph's tensors are the same in the next window.

A tensor [1, H, W, C] that follows from the frames has frames for rows, or fewer, where an operator has strides. From
one window to the next they move by `shift` rows. Row r is clean where nothing of what it follows from is padding: then
row r of this window is row r + shift of the window before, if that is clean too, whatever the frames are. With the
window of an operator's rows (`OpFamily.row_window`):

    clean rows of the output   those that read clean rows alone, of every input
    shift of the output        the inputs' over the stride, if that is a whole number

Where an operator's rows don't move so, the region of rows ends: the operator runs whole in each step, over all rows of
what it reads (`Ends.reason` says why).
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.base import SAME_ROW, RowWindow


@dataclass(frozen=True)
class TimeRows:
    """Rows of a tensor: `height` of them, which move by `shift` from one window to the next; those from `start` to
    before `end` are clean."""

    height: int
    shift: int
    start: int
    end: int


@dataclass(frozen=True)
class Ends:
    """Why an operator on rows runs whole; `smallest`: where its stride is the reason, the smallest step, in frames,
    that fits it."""

    reason: str
    smallest: int | None = None


@dataclass(frozen=True)
class Analysis:
    """`rows` of each tensor that has frames for rows; `ends`: the operators that read such tensors whole, and why."""

    rows: dict[Tensor, TimeRows]
    ends: dict[Op, Ends]


def time_rows(graph: Graph, frames: Tensor, step: int) -> Analysis:
    """What is known of the graph's tensors, where `frames`, one of its inputs [1, H, W, C], moves by `step` rows."""
    height = frames.shape[1]
    rows = {frames: TimeRows(height, step, 0, height)}
    ends: dict[Op, Ends] = {}
    for op in graph.ops:
        if rows.keys().isdisjoint(op.activations):
            continue
        found = _rows_of_output(op, rows, step)
        if isinstance(found, TimeRows):
            rows[op.output] = found
        else:
            ends[op] = found
    return Analysis(rows, ends)


def row_window(op: Op, index: int) -> RowWindow | None:
    """The family's; of one that gives rows another shape, that row."""
    if FAMILIES[op.kind].alias:
        shapes = (op.operand(index).shape, op.output.shape)
        return SAME_ROW if len(shapes[0]) == len(shapes[1]) == 4 and shapes[0][:2] == shapes[1][:2] else None
    return FAMILIES[op.kind].row_window(op, index)


def _rows_of_output(op: Op, rows: dict[Tensor, TimeRows], step: int) -> TimeRows | Ends:
    family = FAMILIES[op.kind]
    if len(op.outputs) != 1 or not op.output.is_image:
        return Ends("its output is no image [1, H, W, C]")
    if family.of_rows(op, op.inputs, op.output, 0, 0) is None:
        return Ends("it can't make some of its rows alone")
    start, end, shifts = 0, op.output.shape[1], set()
    for i, tensor in enumerate(op.inputs):
        if tensor is None or tensor.is_constant:
            continue
        if tensor not in rows:
            return Ends(f"it reads {tensor}, which may change from step to step")
        window = row_window(op, i)
        if window is None or window.stride < 1 or window.spread != 1:
            return Ends(f"a row of its output needs more than the rows about it of {tensor}")
        source = rows[tensor]
        if source.shift % window.stride and op.output.shape[1] == 1:
            return Ends("the one row of its output sees the whole window")
        if source.shift % window.stride:
            reason = f"its stride of {window.stride} rows does not divide the {source.shift} new ones"
            return Ends(reason, step // source.shift * window.stride)
        if window.needed(0, source.height) < 1 or window.first(op.output.shape[1] - 1) >= source.height:
            return Ends("a row of its output sees padding alone")
        shifts.add(source.shift // window.stride)
        start = max(start, -(-(source.start + window.pad_top) // window.stride))
        end = min(end, (source.end - window.kernel + window.pad_top) // window.stride + 1)
    if len(shifts) > 1:
        return Ends("its inputs move by different numbers of rows")
    if end <= start:
        sees = "the one row of its output sees" if op.output.shape[1] == 1 else "every row of its output sees"
        return Ends(f"{sees} padding, or rows that do")
    (shift,) = shifts
    return TimeRows(op.output.shape[1], shift, start, end)
