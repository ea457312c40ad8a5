"""Simulates a stack of rings for the checker, independently of the plan: which rows each ring holds, and at which
addresses.

It is told which rows are added and dropped, not how the plan places them. Each ring's rows start at the end of the ring
below, and move with it. The lowest member may be an output of the group, whose rows all stay.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Tensor
from tinyfuse.plan.plan import STACK_ALIGN, Group, Plan

#: stamp of bytes that a move leaves between rings; never a value's number
_GAP = -8


class StackPlayer:
    """The stack of a group's rings, in `memory`, the byte map of the arena."""

    def __init__(self, plan: Plan, group: Group, memory: np.ndarray, sizes: dict[str, int]):
        self._rings = group.stack
        name = plan.storage[group.stack[-1].tensor].buffer
        for i, ring in enumerate(group.stack):
            storage = plan.storage[ring.tensor]
            if ring.tensor in group.outputs:
                if i or ring.taken or storage.slides:
                    raise _fault(f"group {group.index}: its stack moves {ring.tensor}, which leaves it")
            elif storage.buffer != name or storage.offset or not storage.slides:
                raise _fault(f"group {group.index}: a ring of its stack lies elsewhere, or stays")
        self.start, self.size, self._memory = plan.placement.offsets[name], sizes[name], memory
        if self.start % STACK_ALIGN:
            raise _fault(f"{name} is not aligned")
        self._first = {ring.tensor: 0 for ring in self._rings}
        self._made = {ring.tensor: 0 for ring in self._rings}
        #: the ring whose first row was partly overwritten, and by how many bytes
        self._over: tuple[Tensor, int] | None = None

    def __contains__(self, tensor: object) -> bool:
        return tensor in self._first

    def span(self, tensor: Tensor, row: int) -> slice:
        """Finds where a row in its ring lies; InternalFault if it is not there."""
        if not self._first[tensor] <= row < self._made[tensor]:
            raise _fault(f"{tensor}: row {row} is not in its stack")
        found = self._at(self._begins(), tensor, row)
        if found.stop > self.start + self.size:
            raise _fault(f"{tensor}: row {row} lies above its stack")
        return found

    def scratch(self, size: int) -> slice:
        """Finds where `size` bytes of scratch lie on top of the stack; InternalFault if they do not fit."""
        top = self.start + -(-(self._end() - self.start) // STACK_ALIGN) * STACK_ALIGN
        if size and top + size > self.start + self.size:
            raise _fault(f"scratch of {size} bytes lies above the stack")
        return slice(top, top + size)

    def open(self, tensor: Tensor, rows: int, over: Tensor | None) -> None:
        """Makes room for `rows` more rows of a tensor. All rings above move up, less the bytes taken from `over`."""
        taken = None if over is None else (over, next(ring.taken for ring in self._rings if ring.tensor is over))
        self._move(tensor, made=self._made[tensor] + rows, over=taken)

    def close(self, tensor: Tensor, oldest: int) -> None:
        """Removes the rows before `oldest` from their ring, and moves everything above them down."""
        if oldest > self._first[tensor]:
            self._move(tensor, first=oldest)

    def loses(self, tensor: Tensor, oldest: int) -> bool:
        """Tells whether a ring loses rows if those from `oldest` on are needed."""
        return oldest > self._first[tensor]

    def leave(self, tensor: Tensor) -> list[np.ndarray]:
        """Removes the whole stack and returns the stamps of an output's rows."""
        rows = [self._memory[self.span(tensor, row)].copy() for row in range(self._made[tensor])]
        self._memory[self.start : self._end()] = _GAP
        return rows

    def may_take(self, tensor: Tensor, source: Tensor) -> bool:
        """Tells whether the plan lets rows of `tensor` overwrite the first rows of `source`."""
        pairs = pairwise(self._rings)
        return any(below.tensor is tensor and above.tensor is source and above.taken > 0 for below, above in pairs)

    def _begins(self) -> dict[Tensor, int]:
        begins, end = {}, self.start
        for ring in self._rings:
            begins[ring.tensor] = end
            if self._over is not None and self._over[0] is ring.tensor:
                begins[ring.tensor] -= self._over[1]
            end = begins[ring.tensor] + (self._made[ring.tensor] - self._first[ring.tensor]) * _row(ring.tensor)
        return begins

    def _end(self) -> int:
        last = self._rings[-1].tensor
        return self._begins()[last] + (self._made[last] - self._first[last]) * _row(last)

    def _move(
        self, tensor: Tensor, made: int | None = None, first: int | None = None, over: tuple[Tensor, int] | None = None
    ) -> None:
        """Plays a change of one ring: the stamps of all rows move to where the rows lie afterwards.

        A row that overwrites the first row of the ring above stays in place when that first row is dropped.
        """
        before, held = self._begins(), {t: (self._first[t], self._made[t]) for t in self._made}
        found = self._memory[self.start : self._end()].copy()
        if made is not None:
            self._made[tensor], self._over = made, over
        if first is not None:
            self._first[tensor] = first
            if self._over is not None and self._over[0] is tensor:
                self._over = None
        after = self._begins()
        if self._end() > self.start + self.size or min(after.values()) < self.start:
            raise _fault("a stack of rings is too small")
        moved = [after[other] for other, begin in before.items() if after[other] != begin]
        if moved:
            self._memory[min(moved) : self._end()] = _GAP
        for other, (oldest, newest) in held.items():
            kept = max(oldest, self._first[other])  # rows of a ring are contiguous before and afterwards
            source = before[other] - self.start + (kept - oldest) * _row(other)
            size = max(newest - kept, 0) * _row(other)
            self._memory[after[other] : after[other] + size] = found[source : source + size]

    def _at(self, begins: dict[Tensor, int], tensor: Tensor, row: int) -> slice:
        begin = begins[tensor] + (row - self._first[tensor]) * _row(tensor)
        return slice(begin, begin + _row(tensor))


def _row(tensor: Tensor) -> int:
    return tensor.bytes // tensor.shape[1]


def _fault(what: str) -> InternalFault:
    return InternalFault("the checker of plans", what)
