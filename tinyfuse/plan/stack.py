"""Rings of a group in a stack: one above the other in a single buffer, each with exactly the rows that are still needed.

A ring that slides leaves its last row's bytes to others for most of the time, but only to what lies there anyway: the
rows of another ring that are always needed can't come and go. In a stack they do. A row that is made opens a gap behind
its ring's last row, for which all rings above move up; a row that is used up closes one. So the stack never holds more
than the rows that are needed at the moment, whose most bytes no placement can fall below. The scratch of the stage that
runs lies on top. Stages lie in order, the last one's ring at the bottom, for it moves least.

Nothing moves where a row can be written over one that is used up by the very call: the first row of the ring above, if
the call reads that in an order that keeps in front of what it writes (`Kernel.row_access_orders`). A convolution's
row lies there over the first row of its window, a sum over one of its terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Tensor
from tinyfuse.plan.loop import NEVER, Loop, first_rows
from tinyfuse.plan.plan import STACK_ALIGN, StackedRing, Stage

#: what a ring in a stack begins at a multiple of: its elements are no larger
_UNIT = 4


class RingStack:
    """The stack of a group's rings.

    rings  bottom first
    bytes  event by event what it holds, the scratch of the stage that runs among it
    """

    def __init__(self, stages: Sequence[Stage], loop: Loop):
        self._stages, self._loop = stages, loop
        self._members = [s for s in reversed(range(len(stages))) if s in loop.rings and _may_be_stacked(stages[s])]
        self._made = loop.made_before
        self._oldest = {s: loop.oldest_kept(s) for s in self._members}
        #: of each ring whose rows may be written over the first of the one above it: the gap, and the events
        self._over = {
            below: taken for below, above in pairwise(self._members) if (taken := self._taken(below, above)) is not None
        }
        rings = []
        for below, s in zip([-1, *self._members], self._members, strict=False):
            gap, _ = self._over.get(below, (0, None))
            rings.append(StackedRing(stages[s].op.output, gap, below in self._over))
        self.rings = tuple(rings)
        rows = np.zeros(len(loop.order), np.int64)
        for s in self._members:
            rows += (self._before(s) + loop.made_now(s)) * _row_bytes(stages[s])
        for below, (_, events) in self._over.items():
            rows[events] -= _row_bytes(stages[below])
        top = rows + sum(ring.gap for ring in rings)
        scratch = np.array([stage.scratch_bytes for stage in stages])[loop.order]
        self.bytes = np.where(scratch > 0, -(-top // STACK_ALIGN) * STACK_ALIGN + scratch, top)

    @property
    def members(self) -> frozenset[int]:
        """The stages whose rings are in it."""
        return frozenset(self._members)

    def _taken(self, below: int, above: int) -> tuple[int, np.ndarray] | None:
        """Where the rows of the ring `below` can be written over the first of the one `above` by its stage: the gap
        that there must be between both, and the events; None where they can't."""
        stage, source = self._stages[below], self._stages[above]
        uses = [i for i, tensor in enumerate(stage.op.inputs) if tensor is source.op.output]
        orders = stage.kernel.row_access_orders(stage.op)
        read, written = _row_bytes(source), _row_bytes(stage)
        if len(uses) != 1 or uses[0] not in orders or written > read or stage.kernel.rows_a_call > 1:
            return None
        gap = -(-orders[uses[0]].distance(read, written) // _UNIT) * _UNIT
        first = self._oldest[above]
        after = np.append(first[1:], NEVER)
        events = np.flatnonzero((self._loop.order == below) & (after > first) & (first < self._made[above]))
        read_first = first_rows(stage.window(uses[0]), stage.op.output.shape[1])[self._made[below][events]]
        if gap >= written or not len(events) or (read_first != first[events]).any():
            return None
        return gap, events

    @cached_property
    def moves(self) -> Mapping[int, tuple[int, int]]:
        """Per stage how often the stack is looked at for it, and how many bytes are moved."""
        found: dict[int, tuple[int, int]] = {}
        sizes = {s: _row_bytes(self._stages[s]) for s in self._members}
        gaps = dict(zip(self._members, (ring.gap for ring in self.rings), strict=True))
        for s, stage in enumerate(self._stages):
            events = np.flatnonzero(self._loop.order == s)
            _, over = self._over.get(s, (0, np.array([], int)))
            in_place, looks, moved = np.isin(events, over), 0, 0
            for number, m in enumerate(self._members):
                reads = any(tensor is self._stages[m].op.output for tensor in stage.op.inputs)
                if m != s and not reads:
                    continue
                looks += len(events)
                above = self._members[number + 1 :]
                higher = sum((self._before(a)[events] * sizes[a] + gaps[a] for a in above), np.zeros(len(events), int))
                moves = ~in_place
                if reads:  # what is left moves, too, but over a row in whose place another one was written
                    left = np.append(self._oldest[m][1:], NEVER)[events]
                    moves = left > self._oldest[m][events]
                    if number and self._members[number - 1] == s:
                        moves &= ~in_place
                    higher = higher + np.maximum(self._made[m][events] - left, 0) * sizes[m]
                moved += int(higher[moves].sum())
            found[s] = looks, moved
        return found

    def _before(self, s: int) -> np.ndarray:
        """Rows of a ring before each event."""
        before: np.ndarray = self._made[s] - self._oldest[s]
        return before


def _row_bytes(stage: Stage) -> int:
    return stage.op.output.bytes // stage.op.output.shape[1]


def _may_be_stacked(stage: Stage) -> bool:
    """Whether the rows of what a stage makes can be moved, and lie anywhere."""
    tensor: Tensor = stage.op.output
    return not stage.kernel.accumulates and _row_bytes(stage) % _UNIT == 0 and ITEM_BYTES[tensor.dtype] <= _UNIT
