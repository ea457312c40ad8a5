"""Analysis of which rows of a graph's tensors are equal in the next window.

A tensor [1, H, W, C] computed from frames has frames as rows, or fewer rows after strides. They move by `shift` rows
from one window to the next. Row r is clean if nothing that it depends on is padding. Then row r of this window is row r
+ shift of the window before, if that is clean too, whatever the frames are. With the window of an operator's rows
(`OpFamily.slide_window`):

    clean rows of the output   those that read only clean rows, of every input
    shift of the output        the inputs' shift / stride * output rows per input row
                               (`RowWindow.spread`: upsampling, transposed convolutions)

If that is no whole number, rows move in several steps: row r is row r + shift of the window `phases` steps before, and
no window in between has that row.

If an operator's rows do not move like this, the region of rows ends: the operator runs whole in each step, over all
rows of its inputs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.running_sums import sums_rows


@dataclass(frozen=True)
class TimeRows:
    """Rows of a tensor: `height` of them, moving by `shift` in `phases` steps; those from `start` to before `end` are
    clean.

    `sums` are the operators that add them all up (running_sums.py).
    """

    height: int
    shift: int
    start: int
    end: int
    phases: int = 1
    sums: tuple[Op, ...] = ()


@dataclass(frozen=True)
class End:
    """Reason why an operator runs over all rows in each step.

    `hint` says what the model's author could change; None if nothing.
    """

    reason: str
    hint: str | None


@dataclass(frozen=True)
class Analysis:
    """Result of the analysis.

    step  frames that are new in each step
    rows  rows of each tensor that has frames as rows
    ends  operators computed from frames that make no rows -> the reason
    """

    step: int
    rows: dict[Tensor, TimeRows]
    ends: dict[Op, End]

    @property
    def smallest_step(self) -> int:
        """Smallest step, in frames, that all strides along time divide."""
        # a tensor's rows move by `step` frames over its stride
        return lcm(*(Fraction(self.step * rows.phases, rows.shift).numerator for rows in self.rows.values()))


def time_rows(graph: Graph, frames: Tensor, step: int) -> Analysis:
    """Analyses the tensors of a graph whose input `frames` [1, H, W, C] moves by `step` rows."""
    height = frames.shape[1]
    rows = {frames: TimeRows(height, step, 0, height)}
    ends: dict[Op, End] = {}
    behind: dict[Tensor, Op] = {}  # tensors computed from frames without frames as rows -> their operator
    for op in graph.ops:
        if rows.keys().isdisjoint(op.activations) and behind.keys().isdisjoint(op.activations):
            continue
        found: TimeRows | End
        if sums_rows(op) and op.input in rows:
            found = _ADDS_UP
            rows[op.input] = replace(rows[op.input], sums=(*rows[op.input].sums, op))
        elif rows.keys().isdisjoint(op.activations):
            found = _end_behind(op, behind, rows)
        else:
            found = _rows_of_output(op, rows, behind)
        if isinstance(found, TimeRows):
            rows[op.output] = found
        else:
            ends[op] = found
            behind |= dict.fromkeys(op.outputs, op)
    return Analysis(step, rows, ends)


_ADDS_UP = End("it adds up all rows", None)
_REDUCES = End(
    "it needs all rows", "layers without padding along time in front of it, or a mean over time, of integers"
)
_FLOATS = End("sums of floats depend on their order", "quantize the model: sums of integers are kept from step to step")
_WEIGHS = End("it weighs each row by its place in the window", "a mean over time in front of it")
_BEHIND = End("what it reads follows from all rows", None)
_NO_ROWS = End("its output has no rows of frames", "keep the time axis in front, in operators that go along it")
_ROWS_TOGETHER = End("it makes no rows of its output alone", "operators that take each row from the rows about it")
_ROWS_DIFFER = End("it has other constants for each row", "constants that are the same for all frames")
_NO_ROWS_LEFT = End("rows of what it reads are no frames any more", _NO_ROWS.hint)
_PADDING = "let it and the layers before it pad nothing along time (padding 'valid')"


def _end_behind(op: Op, behind: dict[Tensor, Op], rows: dict[Tensor, TimeRows]) -> End:
    """Reason why rows end at an operator: its inputs have another shape than frames in rows, or depend on all rows."""
    made = next(behind[tensor] for tensor in op.activations if tensor in behind)
    while FAMILIES[made.kind].alias and made.input in behind:
        made = behind[made.input]
    if not FAMILIES[made.kind].alias or made.input not in rows:
        return _BEHIND
    # a layer that is no convolution
    family = FAMILIES[op.kind]
    return _WEIGHS if family.data_and_weights is not None and not family.convolution else _NO_ROWS_LEFT


def _other(tensor: Tensor) -> End:
    """Reason for an operator that reads an input that does not slide."""
    hint = "let what doesn't slide come in behind the layers that look at time"
    return End(f"it reads {tensor}, which may change from step to step", hint)


def _whole(op: Op) -> End:
    """Reason why a step must compute an operator as a whole: it cannot make single rows."""
    if FAMILIES[op.kind].reduces:
        return _FLOATS if op.output.dtype == "float32" and FAMILIES[op.kind].sums else _REDUCES
    if FAMILIES[op.kind].rows_alike and op.output.is_image and any(t is not None and t.is_constant for t in op.inputs):
        return _ROWS_DIFFER
    return _ROWS_TOGETHER if len(op.outputs) == 1 and op.output.is_image else _NO_ROWS


def _within(rows: tuple[int, int], source: TimeRows) -> bool:
    return source.start <= rows[0] and rows[1] <= source.end


def _rows_of_output(op: Op, rows: dict[Tensor, TimeRows], behind: Collection[Tensor]) -> TimeRows | End:
    """Rows of the operator's output, or the reason why it has none."""
    family = FAMILIES[op.kind]
    if len(op.outputs) != 1 or not op.output.is_image or family.of_rows(op, op.inputs, op.output, 0, 0, 0) is None:
        return _whole(op)
    start, end = 0, op.output.shape[1]
    moves: list[Fraction] = []  # rows per step
    phases = 1
    for i, tensor in enumerate(op.inputs):
        if tensor is None or tensor.is_constant:
            continue
        if tensor not in rows:
            return End(f"it reads {tensor}, which follows from all rows", None) if tensor in behind else _other(tensor)
        window = family.slide_window(op, i)
        if window is None or window.stride < 1 or window.kernel < window.spread:
            return End(f"a row of its output needs more than the rows about it of {tensor}", _NO_ROWS.hint)
        source = rows[tensor]
        if window.needed(0, source.height) < 1 or window.first(op.output.shape[1] - 1) >= source.height:
            return End("a row of its output sees padding alone", _PADDING)
        # `spread` rows of the output follow from `stride` more rows of the input
        periods = Fraction(source.shift, source.phases * window.stride)
        moves.append(periods * window.spread)
        phases = lcm(phases, source.phases, periods.denominator)
        clean = [y for y in range(start, end) if _within(window.reach(y), source)]
        start, end = (clean[0], clean[-1] + 1) if clean else (0, 0)
    if len(set(moves)) > 1:
        return End("its inputs move by different numbers of rows", "the same strides along time in both branches")
    if end <= start:
        sees = "the one row of its output sees" if op.output.shape[1] == 1 else "every row of its output sees"
        return End(f"{sees} padding, or rows that do", _PADDING)
    return TimeRows(op.output.shape[1], int(moves[0] * phases), start, end, phases)
