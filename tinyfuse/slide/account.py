"""Account of the work of each operator in a step of a sliding window, and of the reasons why it is not less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyfuse.ir import Op, Window
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.needs import Needs, macs_of, within
from tinyfuse.slide.running_sums import sum_bytes
from tinyfuse.slide.step_graph import needs_of
from tinyfuse.slide.time_rows import End


@dataclass(frozen=True)
class OperatorStep:
    """Work of one operator in a step; it reads frames, or tensors computed from them.

    made, height   rows of its output that it makes, and all rows; both 0 if it makes no single rows
    new, padded    of those made, rows that are new in the window, and rows that see padding; the others are made again
                   because they are not kept
    kept, state    rows of its output that stay for later steps, and their bytes
    macs           multiply-accumulates in a step; `whole_macs` has those of the whole window
    end            reason why it runs over the whole window; None if it does not
    running_sum    it adds up all rows, and its sums are kept from step to step
    """

    op: Op
    made: int
    height: int
    new: int
    padded: int
    kept: int
    state: int
    macs: int
    whole_macs: int
    end: End | None
    running_sum: bool = False


def account(window: Window) -> tuple[OperatorStep, ...]:
    """Accounts for all operators that outputs need, in their order."""
    return tuple(_steps(needs_of(window)))


def _steps(needs: Needs) -> Iterator[OperatorStep]:
    sums = {op: sum_bytes(op, rows.ring) for rows in needs.rows.values() if rows.ring for op in rows.sums}
    for op in needs.graph.ops:
        macs = macs_of(op, None)
        end = needs.analysis.ends.get(op)
        if end is not None:
            kept = sums.get(op, 0)
            if not FAMILIES[op.kind].alias:
                yield OperatorStep(op, 0, 0, 0, 0, 0, kept, macs, macs, None if kept else end, kept > 0)
        elif op.outputs and op.output in needs.rows:
            rows, tensor = needs.rows[op.output], op.output
            height = tensor.shape[1]
            kept = rows.ring.height if rows.ring else 0
            new = rows.new_rows
            known, state = needs.analysis.rows[tensor], rows.ring_bytes(tensor)
            clean = sum(end - start for start, end in within(rows.others, known.start, known.end))
            padded = rows.made_rows - clean - (new if rows.parts > 1 else 0)
            yield OperatorStep(op, rows.made_rows, height, new, padded, kept, state, macs_of(op, rows), macs, None)
