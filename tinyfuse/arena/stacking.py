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

from array import array
from dataclasses import dataclass, field
from heapq import nsmallest

from tinyfuse.arena.bounds import Clique
from tinyfuse.arena.problem import Problem
from tinyfuse.arena.search import Budget, Found

_PLACED = 1 << 62  # in place of a lowest start
_NO_NEED = -_PLACED  # the room that a clique needs of which nothing is left


@dataclass
class _Level:
    """One buffer of the order so far: what may lie there, and what placing `item` changed."""

    choices: list[tuple[int, int]]  # (offset, buffer), the best last
    item: int | None = None
    raised: list[tuple[int, int]] = field(default_factory=list)  # (buffer, its lowest start before)


class Stacking:
    """The search over `items`, the numbers of all buffers that conflict with any."""

    def __init__(self, problem: Problem, items: list[int]):
        self.problem, self.items = problem, items
        chosen = set(items)
        live_sets = [[i for i in alive if i in chosen] for alive in problem.live_sets]
        self.cliques = [Clique(problem, alive) for alive in live_sets if len(alive) > 1]
        self.cost = 16 + len(items) // 8  # of one try
        self.cliques_of: dict[int, list[int]] = {i: [] for i in items}
        for number, clique in enumerate(self.cliques):
            for i in clique.step:
                self.cliques_of[i].append(number)
        self.members = [tuple(clique.step) for clique in self.cliques]
        # per buffer, (other, least distance above it, alignment) of those that it conflicts with
        aligns = [buffer.align for buffer in problem.buffers]
        self.above = {i: [(other, apart, aligns[other]) for other, apart in problem.apart[i].items()] for i in items}

    def _begin(self) -> None:
        """The state: who is left, their lowest starts, and the room that each clique still needs."""
        self.left = set(self.items)
        self.lowest = array("q", [0] * len(self.problem.buffers))
        self.needs = [sum(clique.step.values()) for clique in self.cliques]
        self.room = [needs - clique.spare for needs, clique in zip(self.needs, self.cliques, strict=True)]

    def run(self, limit: int, enough: int, budget: Budget) -> Found:
        """The least arena of fewer than `limit` bytes; any of `enough` bytes will do."""
        self._begin()
        buffers = self.problem.buffers
        best: list[int] | None = None
        seen: set[bytes] = set()
        levels = [_Level(self._choices(0))]
        while levels:
            level = levels[-1]
            if level.item is not None:
                self._take_back(level)
            if not level.choices:
                levels.pop()
                continue
            if budget.spent:
                return Found(best, enough)
            offset, level.item = level.choices.pop()
            self._put(level, offset)
            budget.left -= self.cost
            if offset + buffers[level.item].bytes >= limit or not self._fits(level.item, offset, limit):
                continue
            if not self.left:
                best = [level.item for level in levels]
                limit = self.problem.top(self.problem.place(best))
                if limit <= enough:
                    return Found(best, limit)
                continue
            state = self.lowest.tobytes() + offset.to_bytes(8, "little")
            if state not in seen:
                seen.add(state)
                levels.append(_Level(self._choices(offset)))
        return Found(best, limit)

    def _choices(self, floor: int) -> list[tuple[int, int]]:
        """Which buffers may come next, at `floor` or above: the lowest and then largest last."""
        buffers, lowest = self.problem.buffers, self.lowest
        ends = nsmallest(2, ((lowest[i] + buffers[i].bytes, i) for i in self.left))
        (first_end, first), hole = ends[0], ends[1][0] if len(ends) > 1 else None
        found = [
            i
            for i in self.left
            if floor <= lowest[i] and (lowest[i] < first_end if i != first else hole is None or lowest[i] < hole)
        ]
        found.sort(key=lambda i: (-lowest[i], buffers[i].bytes, -i))
        return [(lowest[i], i) for i in found]

    def _put(self, level: _Level, offset: int) -> None:
        item, lowest = level.item, self.lowest
        self.left.remove(item)
        level.raised = [(item, offset)]
        lowest[item] = _PLACED
        for other, apart, align in self.above[item]:
            start = -(-(offset + apart) // align) * align
            if start > lowest[other]:
                level.raised.append((other, lowest[other]))
                lowest[other] = start
        for clique in self.cliques_of[item]:
            self._need(clique, self.needs[clique] - self.cliques[clique].step[item])

    def _take_back(self, level: _Level) -> None:
        for other, start in level.raised:
            self.lowest[other] = start
        for clique in self.cliques_of[level.item]:
            self._need(clique, self.needs[clique] + self.cliques[clique].step[level.item])
        self.left.add(level.item)
        level.item = None

    def _need(self, clique: int, needs: int) -> None:
        self.needs[clique] = needs
        self.room[clique] = needs - self.cliques[clique].spare if needs else _NO_NEED

    def _fits(self, item: int, offset: int, limit: int) -> bool:
        """Whether what is left of every clique can still lie at `offset` or above, below `limit`;
        in the cliques of `item`, which it raised, also at the lowest start or above."""
        if offset + max(self.room, default=_NO_NEED) >= limit:
            return False
        lowest = self.lowest.__getitem__
        return all(
            min(map(lowest, self.members[clique])) + self.room[clique] < limit
            for clique in self.cliques_of[item]
            if self.needs[clique]
        )
