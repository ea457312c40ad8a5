"""What each operator of a model does in a step of a sliding window, and what stands in the way of doing less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyfuse.ir import Op, Window
from tinyfuse.slide.needs import Needs, macs_of
from tinyfuse.slide.step_graph import needs_of


@dataclass(frozen=True)
class OperatorStep:
    """What an operator that reads frames, or what follows from them, does in a step.

    made, height   rows of its output that it makes, of all; whole where it doesn't go by rows: 0 of 0
    new            of those made, rows that are new in the window; the others see padding, or are made again
    kept, state    rows of its output that stay for later steps, and their bytes
    macs           multiply-accumulates of a step, of `whole_macs`
    reason         why it runs over the whole window, None where it goes by rows
    """

    op: Op
    made: int
    height: int
    new: int
    kept: int
    state: int
    macs: int
    whole_macs: int
    reason: str | None


def account(window: Window) -> tuple[OperatorStep, ...]:
    """In the order of the operators; without those that no output needs."""
    return tuple(_steps(needs_of(window)))


def _steps(needs: Needs) -> Iterator[OperatorStep]:
    for op in needs.graph.ops:
        macs = macs_of(op, None)
        end = needs.analysis.ends.get(op)
        if end is not None:
            yield OperatorStep(op, 0, 0, 0, 0, 0, macs, macs, end.reason)
        elif op.outputs and op.output in needs.rows:
            rows, tensor = needs.rows[op.output], op.output
            height = tensor.shape[1]
            kept = rows.ring[1] - rows.ring[0] if rows.ring else 0
            new = min(rows.fresh[1] - rows.fresh[0], rows.made_rows)
            state, step_macs = rows.kept_bytes(tensor), macs_of(op, rows)
            yield OperatorStep(op, rows.made_rows, height, new, kept, state, step_macs, macs, None)
