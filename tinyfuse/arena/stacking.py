"""Exact search: the arena is filled from below, one buffer after another by rising offset.

Each buffer starts where those below it that it conflicts with let it, so a placement is an order.
Good where many buffers are alive together and little room is lost: what is left at each moment has to
fit above the last offset, which rules out most orders soon. (Where few are alive together over many
steps, sweep.py is better: it needs no order between buffers that never meet.)

Two rules leave out orders without losing the best arena. Take a placement below the limit whose
offsets have the least sum: every buffer lies as low as those below it allow.
- By rising offset: a buffer whose lowest start is below the last one placed should have come before.
- No hole: if some other buffer could end at or below the start of the next one, then moving it there
  would give a smaller sum.
(Compare Moffitt, "MiniMalloc", ASPLOS 2023, for buffers that never overlap.) And the same
set placed with the same lowest starts for the rest has the same future: it is searched once.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.arena.bounds import Clique
from tinyfuse.arena.problem import Problem
from tinyfuse.arena.search import Budget, Found

_PLACED = 1 << 62  # in place of a lowest start
_NO_NEED = -_PLACED  # the room that a clique needs of which nothing is left
_NONE = -1  # in place of a buffer


@dataclass(slots=True)
class _Level:
    """One buffer of the order so far: what may lie there, which one does, and the state in front of it."""

    choices: list[tuple[int, int]]  # (offset, buffer), the best last
    lowest: list[int]
    needs: list[int]
    room: list[int]
    item: int = _NONE


class Stacking:
    """The search over `items`, the numbers of all buffers that conflict with any."""

    def __init__(self, problem: Problem, items: list[int]):
        self.problem, self.items = problem, items
        chosen = set(items)
        live_sets = [[i for i in alive if i in chosen] for alive in problem.live_sets]
        # the largest first: it rules out most
        self.cliques = sorted((Clique(problem, alive) for alive in live_sets if len(alive) > 1), key=lambda c: -c.bound)
        self.cost = 16 + len(items) // 8  # of one try
        self.members = [tuple(clique.step) for clique in self.cliques]
        # per buffer, its cliques: number, the buffer's step there, what is spare, the members
        self.cliques_of: dict[int, list[tuple[int, int, int, tuple[int, ...]]]] = {i: [] for i in items}
        for number, clique in enumerate(self.cliques):
            for i, step in clique.step.items():
                self.cliques_of[i].append((number, step, clique.spare, self.members[number]))
        # per buffer, (other, least distance above it, alignment) of those that it conflicts with
        aligns = [buffer.align for buffer in problem.buffers]
        self.above = {i: [(other, apart, aligns[other]) for other, apart in problem.apart[i].items()] for i in items}

    def _begin(self) -> None:
        """The state: who is left, their lowest starts, and the room that each clique still needs. A level keeps the
        lists in front of it, so they are replaced and never changed."""
        self.left = set(self.items)
        self.lowest = [0] * len(self.problem.buffers)
        self.needs = [sum(clique.step.values()) for clique in self.cliques]
        self.room = [needs - clique.spare for needs, clique in zip(self.needs, self.cliques, strict=True)]

    def run(self, limit: int, enough: int, budget: Budget) -> Found:
        """The least arena of fewer than `limit` bytes; any of `enough` bytes will do."""
        self._begin()
        sizes = [buffer.bytes for buffer in self.problem.buffers]
        best: list[int] | None = None
        seen: set[tuple[int, ...]] = set()
        levels = [self._level(0)]
        while levels:
            level = levels[-1]
            if level.item != _NONE:
                self._take_back(level)
            if not level.choices:
                levels.pop()
                continue
            if budget.spent:
                return Found(best, enough)
            offset, item = level.choices.pop()
            level.item = item
            self.left.remove(item)
            budget.left -= self.cost
            if offset + sizes[item] >= limit or not self._put(item, offset, limit):
                continue
            if not self.left:
                best = [level.item for level in levels]
                limit = self.problem.top(self.problem.place(best))
                if limit <= enough:
                    return Found(best, limit)
                continue
            state = (offset, *self.lowest)
            if state not in seen:
                seen.add(state)
                levels.append(self._level(offset))
        return Found(best, limit)

    def _level(self, floor: int) -> _Level:
        return _Level(self._choices(floor), self.lowest, self.needs, self.room)

    def _choices(self, floor: int) -> list[tuple[int, int]]:
        """Which buffers may come next, at `floor` or above: the lowest and then largest last."""
        buffers, lowest = self.problem.buffers, self.lowest
        # the two that could end first: after them others would leave a hole
        ends = sorted([(lowest[i] + buffers[i].bytes, i) for i in self.left])[:2]
        (first_end, first), hole = ends[0], ends[-1][0]
        found = [(-lowest[i], buffers[i].bytes, -i) for i in self.left if floor <= lowest[i] < first_end and i != first]
        if floor <= lowest[first] and (lowest[first] < hole or len(ends) == 1):
            found.append((-lowest[first], buffers[first].bytes, -first))
        found.sort()
        return [(-start, -i) for start, _, i in found]

    def _put(self, item: int, offset: int, limit: int) -> bool:
        """Places a buffer. Whether what is left can still lie below `limit`: of every clique at `offset` or above,
        and of those of the buffer, which it raised, at the lowest start or above. (Where it can't, the state is left
        half changed: the buffer is taken back.)"""
        self.needs = needs = self.needs[:]
        self.room = room = self.room[:]
        for number, step, spare, _ in self.cliques_of[item]:
            needs[number] = left = needs[number] - step
            room[number] = left - spare if left else _NO_NEED
        if offset + max(room, default=_NO_NEED) >= limit:
            return False
        self.lowest = lowest = self.lowest[:]
        lowest[item] = _PLACED
        for other, apart, align in self.above[item]:
            start = -(-(offset + apart) // align) * align
            if start > lowest[other]:
                lowest[other] = start
        start_of = lowest.__getitem__
        for number, _, _, members in self.cliques_of[item]:
            if needs[number] and min(map(start_of, members)) + room[number] >= limit:
                return False
        return True

    def _take_back(self, level: _Level) -> None:
        self.lowest, self.needs, self.room = level.lowest, level.needs, level.room
        self.left.add(level.item)
        level.item = _NONE
