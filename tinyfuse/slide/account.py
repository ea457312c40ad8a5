"""What each operator of a model does in a step of a sliding window, and what stands in the way of doing less."""

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
    """What an operator that reads frames, or what follows from them, does in a step.

    made, height   rows of its output that it makes, of all; whole where it doesn't go by rows: 0 of 0
    new, padded    of those made, rows that are new in the window, and rows that see padding; the others are made again
                   because they are not kept
    kept, state    rows of its output that stay for later steps, and their bytes
    macs           multiply-accumulates of a step, of `whole_macs`
    end            why it runs over the whole window, None where it doesn't
    running_sum    whether it adds up all rows, and its sums are kept from step to step
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
    """In the order of the operators; without those that no output needs."""
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
