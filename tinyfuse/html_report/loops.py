"""Data of the loops of row groups, event by event, which the page plays as an animation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.cost.predict import group_stream
from tinyfuse.ir import Tensor
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.plan import Group, Plan
from tinyfuse.plan.rows import Stream, height, readers, row_bytes
from tinyfuse.report.answer import JsonObject

#: most events of one group, and of all groups, in a page; further groups are named, but not played
MOST_EVENTS, MOST_EVENTS_IN_ALL = 20_000, 100_000


def loops_data(plan: Plan) -> list[JsonObject]:
    """Data of every group of several operators that runs by rows.

    lanes  tensors read from outside, then the output of each stage
    order  stage that computes in each event; null if there are too many events to be shown
    """
    found, left = [], MOST_EVENTS_IN_ALL
    for group in plan.groups:
        if len(group.stages) < 2:
            continue
        stream = group_stream(plan, group)
        if stream is None:
            continue
        shown = stream.events <= min(MOST_EVENTS, left)
        left -= stream.events if shown else 0
        found.append(_loop(plan, group, stream) if shown else _too_long(group, stream))
    return found


def _too_long(group: Group, stream: Stream) -> JsonObject:
    return {"group": group.index, "events": stream.events, "order": None, "outside": 0, "lanes": []}


def _loop(plan: Plan, group: Group, stream: Stream) -> JsonObject:
    made = {stage.op.output for stage in group.stages}
    outside = list(
        dict.fromkeys(
            tensor
            for stage in group.stages
            for i, tensor in enumerate(stage.op.inputs)
            if tensor is not None and tensor not in made and stage.windows[i] is not None
        )
    )
    tensors = [*outside, *(stage.op.output for stage in group.stages)]
    lanes = [_lane(plan, stream, tensor, number - len(outside)) for number, tensor in enumerate(tensors)]
    for lane, stage in zip(lanes[len(outside) :], group.stages, strict=True):
        lane["kind"] = stage.op.kind
        lane["at_once"] = stage.kernel.rows_a_call
        lane["reads"] = [
            _reads(tensors.index(tensor), tensor, stage.window(i), height(stage.op.output), stage.kernel.rows_a_call)
            for i, tensor in enumerate(stage.op.inputs)
            if tensor in tensors and stage.windows[i] is not None
        ]
    order = stream.loop.order.tolist()
    return {"group": group.index, "events": stream.events, "order": order, "outside": len(outside), "lanes": lanes}


def _lane(plan: Plan, stream: Stream, tensor: Tensor, stage: int) -> JsonObject:
    """Data of a tensor's rows.

    rows, row_bytes  number of rows, and bytes of each
    ring    rows that are kept; null for all
    needed  (event, row) whenever the oldest row that is still needed changes; empty for rows that leave the group
    """
    ring, events = stream.rings.get(tensor), np.arange(stream.events + 1)
    kept = stage >= 0 and ring is None
    uses = [(use.stage, stream.stages[use.stage].window(use.input)) for use in readers(stream.stages, tensor)]
    needed = [] if kept else _changes(np.minimum(stream.loop.oldest_needed(uses, events), height(tensor)).tolist())
    return {
        "name": tensor.name,
        "kind": None,
        "at_once": 1,
        "rows": height(tensor),
        "row_bytes": row_bytes(tensor),
        "ring": ring,
        "slides": tensor in stream.sliding,
        "buffer": plan.storage[tensor].buffer if tensor in plan.storage else None,
        "needed": needed,
        "reads": [],
    }


def _changes(values: Sequence[int]) -> list[tuple[int, int]]:
    """(place, value) of each value that differs from the one before."""
    return [(at, value) for at, value in enumerate(values) if at == 0 or values[at - 1] != value]


def _reads(lane: int, tensor: Tensor, window: RowWindow, rows: int, at_once: int) -> JsonObject:
    """Rows of a lane that a stage's call reads, for each of its `rows` rows: from `first` up to `end` (exclusive).

    A call makes `at_once` rows.
    """
    return {
        "lane": lane,
        "first": [window.first(y) for y in range(rows)],
        "end": [window.needed(min(y + at_once, rows) - 1, height(tensor)) for y in range(rows)],
    }
