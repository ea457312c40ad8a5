"""Checks of a plan that need no playing: states, the order of operators on them, and memory of row feeding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.plan.plan import FEED_STATE, Plan


def check_states(plan: Plan) -> None:
    """Checks that states have disjoint, aligned bytes, and that operators on states run in the graph's order."""
    order = [op for group in plan.groups for op in group.ops if op.states]
    if order != [op for op in plan.graph.ops if op.states] or not all(map(_is_in_files_order, _halves(order))):
        raise _fault("operators on states changed places")
    for group in plan.groups:
        if len(group.ops) > 1 and any(FAMILIES[op.kind].updated(op) for op in group.ops):
            raise _fault(f"group {group.index} changes a state while its rows are made")
    if set(plan.states) != set(plan.graph.states):
        raise _fault("states without a place, or places without a state")
    taken = np.zeros(plan.state_bytes, bool)
    for tensor, offset in plan.states.items():
        place = taken[offset : offset + tensor.bytes]
        if offset % max(4, ITEM_BYTES[tensor.dtype]) or place.size != tensor.bytes or place.any():
            raise _fault(f"{tensor}: misplaced")
        place[:] = True


def _is_in_files_order(ops: Sequence[Op]) -> bool:
    numbers = [op.index for op in ops if op.index >= 0]
    return numbers == sorted(numbers)


def _halves(ops: Sequence[Op]) -> tuple[Sequence[Op], Sequence[Op]]:
    """Splits operators at AWAIT_ROWS: (operators that run for each row of a step's frames, operators that run once per
    step). Without AWAIT_ROWS, the second part is empty."""
    border = next((number for number, op in enumerate(ops) if op.kind == "AWAIT_ROWS"), len(ops))
    return ops[:border], ops[border:]


def check_border(plan: Plan) -> None:
    """Checks that a step's operators that run per row precede its only AWAIT_ROWS, and that all others follow it."""
    scheduled = [op for group in plan.groups for op in group.ops]
    if sum(op.kind == "AWAIT_ROWS" for op in scheduled) > 1:
        raise _fault("two operators await rows")
    for_rows, _ = _halves(scheduled)
    if set(for_rows) != set(_halves(plan.graph.ops)[0]) & set(scheduled):
        raise _fault("an operator runs for each row that is for a step, or the other way round")


def check_feed(plan: Plan) -> None:
    """Checks that a fed group has readers for its rows, and room for a tinyfuse_feed and a counter per other stage."""
    group = plan.fed_group
    if group is None or group.counters is None:
        return
    if len(group.stages) < 2:
        raise _fault(f"{group.stages[0].op}: nothing takes the rows that are fed")
    rows = max(stage.op.output.shape[1] for stage in group.stages)
    number = next(size for size in (1, 2, 4) if rows < 256**size)
    sizes = {buffer.name: buffer.bytes for buffer in plan.buffers}
    if sizes[FEED_STATE] < 8 or sizes[group.counters] < number * (len(group.stages) - 1):
        raise _fault(f"group {group.index}: no room for what the calls that feed rows keep")


def _fault(what: str) -> InternalFault:
    return InternalFault("the checker of plans", what)
