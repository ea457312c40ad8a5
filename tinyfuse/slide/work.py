"""Work of a step: multiply-accumulates, or for an operator without any, the elements that it reads."""

from __future__ import annotations

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.needs import Rows, macs_of
from tinyfuse.slide.time_rows import Analysis


def work_of(op: Op, rows: Rows, analysis: Analysis) -> int:
    """Work of making these rows of an operator's output, and of keeping running sums over them if `rows` has any."""
    if FAMILIES[op.kind].alias:
        return work_of_sums(op.output, rows, analysis)
    elements = sum(_elements_a_row(op, i) for i, tensor in enumerate(op.inputs) if tensor in analysis.rows)
    return max(macs_of(op, rows), elements * rows.made_rows) + work_of_sums(op.output, rows, analysis)


def _elements_a_row(op: Op, index: int) -> int:
    """Elements of an input that one row of the output reads."""
    window, tensor = FAMILIES[op.kind].slide_window(op, index), op.operand(index)
    return 0 if window is None else tensor.elements // tensor.shape[1] * -(-window.kernel // window.spread)


def work_of_sums(tensor: Tensor, rows: Rows, analysis: Analysis) -> int:
    """Work of the operators that add up all rows of a tensor: of new and leaving rows if the sums are kept, else of
    all."""
    known, row = analysis.rows[tensor], tensor.elements // tensor.shape[1]
    return row * sum(rows.made_rows + known.shift if op in rows.sums else known.height for op in known.sums)
