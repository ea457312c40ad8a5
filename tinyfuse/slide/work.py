"""What a step takes: multiply-accumulates, and where an operator has none the elements that it goes through."""

from __future__ import annotations

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.needs import Rows, macs_of
from tinyfuse.slide.time_rows import Analysis


def work_of(op: Op, rows: Rows, analysis: Analysis) -> int:
    """Of making these rows of an operator's output, and of adding them up where that is asked for."""
    if FAMILIES[op.kind].alias:
        return work_of_sums(op.output, rows, analysis)
    elements = sum(_elements_a_row(op, i) for i, tensor in enumerate(op.inputs) if tensor in analysis.rows)
    return max(macs_of(op, rows), elements * rows.made_rows) + work_of_sums(op.output, rows, analysis)


def _elements_a_row(op: Op, index: int) -> int:
    """What a row of the output goes through of an input."""
    window, tensor = FAMILIES[op.kind].slide_window(op, index), op.operand(index)
    return 0 if window is None else tensor.elements // tensor.shape[1] * -(-window.kernel // window.spread)


def work_of_sums(tensor: Tensor, rows: Rows, analysis: Analysis) -> int:
    """Of the operators that add up all rows of a tensor: of those that move, or of all."""
    known, row = analysis.rows[tensor], tensor.elements // tensor.shape[1]
    return row * sum(rows.made_rows + known.shift if op in rows.sums else known.height for op in known.sums)
