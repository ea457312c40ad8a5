"""Improves an order of placing by hill climbing: each trial moves one of the buffers that support the highest one.

Exact searches prove much and find little where dozens of buffers are alive together, such as rings and scratch of a
long group. A few hundred orders, each a small change of the best so far, come closer there in a fraction of the time.
TVM places its memory pools likewise. An order of equal size is accepted too, because it may open the way for the next
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tinyfuse.arena.problem import Problem

#: orders tried in a row without improvement; orders tried in all
PATIENCE, _MOST_ORDERS = 250, 1500

#: conflicts inspected in all, so larger problems get fewer trials
_MOST_CONFLICTS = 250_000


def climb(problem: Problem, offsets: dict[int, int], enough: int, patience: int = PATIENCE) -> list[int] | None:
    """Finds an order of all buffers that takes fewer bytes than `offsets` do; None without success.

    It stops at `enough` bytes, or after `patience` orders in a row without improvement. Deterministic.
    """
    crowded = [i for i, others in enumerate(problem.apart) if others]
    order = _Climb(problem, crowded, offsets).run(enough, patience)
    return None if order is None else order + [i for i, others in enumerate(problem.apart) if not others]


class _Climb:
    """State of the climb.

    order    the best order so far, or one of equal size
    offsets  per buffer, its place by that order; -1 for buffers without conflicts
    settled  from this index of the order on, offsets are the lowest that the order allows
    """

    def __init__(self, problem: Problem, items: Sequence[int], offsets: dict[int, int]):
        self.sizes = [buffer.bytes for buffer in problem.buffers]
        self.aligns = [buffer.align for buffer in problem.buffers]
        # per buffer: (other, bytes that the other must start above this one, bytes that this one must start above the
        # other)
        self.conflicts = [
            [(other, distance, problem.apart[other][i]) for other, distance in others.items()]
            for i, others in enumerate(problem.apart)
        ]
        # per buffer: itself and all that conflict with it
        self.near = [{i, *others} for i, others in enumerate(problem.apart)]
        self.order = sorted(items, key=lambda i: (offsets[i], i))
        self.settled = len(self.order)
        self.offsets = [-1] * len(self.sizes)
        for i in items:
            self.offsets[i] = offsets[i]
        self.top = max((self.offsets[i] + self.sizes[i] for i in items), default=0)
        self.tries = min(_MOST_ORDERS, _MOST_CONFLICTS // max(1, sum(map(len, self.conflicts))))

    def run(self, enough: int, patience: int) -> list[int] | None:
        random, begun, best, waited = Random(0), self.top, None, 0
        movable = self._find_supports()
        for _ in range(self.tries):
            if self.top <= enough or waited > patience:
                break
            waited += 1
            order = self.order[:]
            # only random() is the same in every version of Python
            item = movable[int(random.random() * len(movable))]
            old, new = order.index(item), int(random.random() * len(order))
            swapped = random.random() < 0.5
            if swapped:
                order[old], order[new] = order[new], order[old]
            else:
                order.insert(new, order.pop(old))
            before, moved, first = self.offsets, {order[old], order[new]} if swapped else {item}, min(old, new)
            passed = order[first : max(old, new) + 1]
            if first >= self.settled and all(len(self.near[i].intersection(passed)) == 1 for i in moved):
                self.order = order  # a move past buffers without conflicts changes no offset
            elif self._place(order, first, moved):
                self.order = order
                if self.offsets == before:
                    continue  # nothing moved
                top = max([self.offsets[i] + self.sizes[i] for i in order])
                if top < self.top:
                    best, waited = order, 0
                self.top = top
                movable = self._find_supports()
        return best if self.top < begun else None

    def _place(self, order: list[int], first: int, moved: set[int]) -> bool:
        """Tells whether an order takes no more bytes than the best so far, and then takes its offsets.

        The order is unchanged before index `first`, and buffers not in `moved` keep their relative order. A settled
        buffer that conflicts with none that moved or got another offset stays in place.
        """
        sizes, aligns, top, before, near = self.sizes, self.aligns, self.top, self.offsets, self.near
        offsets, changed = [-1] * len(sizes), moved
        for item in order[:first]:
            offsets[item] = before[item]
        settled = self.settled + (first < self.settled)  # a buffer that moves forward shifts the others back by one
        for place, item in enumerate(order[first:], first):
            if place >= settled and near[item].isdisjoint(changed):
                offsets[item] = before[item]
                continue
            forbidden = sorted(
                [
                    (offsets[other] - below, offsets[other] + above)
                    for other, below, above in self.conflicts[item]
                    if offsets[other] >= 0
                ]
            )
            candidate, align = 0, aligns[item]
            for start, end in forbidden:
                if start < candidate < end:
                    candidate = -(-end // align) * align
            if candidate + sizes[item] > top:
                return False
            offsets[item] = candidate
            if candidate != before[item]:
                changed.add(item)
        self.offsets, self.settled = offsets, min(self.settled, first)
        return True

    def _find_supports(self) -> list[int]:
        """Numbers, ascending, of the highest buffers and of all buffers below them that determine their offsets, down
        to the bottom."""
        offsets = self.offsets
        waiting = [i for i in self.order if offsets[i] + self.sizes[i] == self.top]
        found = set(waiting)
        while waiting:
            item = waiting.pop()
            offset = offsets[item]
            if offset:
                gap = offset - self.aligns[item]  # ends above the gap round up to the offset
                for other, _, above in self.conflicts[item]:
                    if gap < offsets[other] + above <= offset and other not in found:
                        found.add(other)
                        waiting.append(other)
        return sorted(found)
