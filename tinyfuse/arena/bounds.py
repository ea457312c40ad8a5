"""A lower bound of every placement: the buffers that are alive at one moment, placed best."""

from __future__ import annotations

from math import gcd

from tinyfuse.arena.problem import Problem
from tinyfuse.arena.search import Budget
from tinyfuse.arena.sweep import Sweep

#: overlapping buffers of one moment up to which its optimum is searched, and states of that search
_EXACT, _WIDTH = 12, 64


class Clique:
    """Buffers that are alive together, so that they have an order by offset.

    step   buffer -> how far whatever of them lies next above it is away, at least
    spare  the sum of the steps of any of them counts at most this much too much: the last one is
           followed by nothing and takes its bytes instead
    align  a common divisor of their offsets; by default the greatest of their alignments
    """

    def __init__(self, problem: Problem, members: list[int], align: int | None = None):
        buffers = problem.buffers
        self.align = align or gcd(*(buffers[i].align for i in members))
        self.step = {}
        for i in members:
            apart = [problem.apart[i].get(j, 0) for j in members if j != i]
            self.step[i] = self.round_up(min(apart, default=buffers[i].bytes))
        self.spare = max(self.step[i] - buffers[i].bytes for i in members)
        self.bound = sum(self.step.values()) - self.spare

    def round_up(self, size: int) -> int:
        return -(-size // self.align) * self.align


def lower_bound(problem: Problem, budget: Budget, most: int | None = None) -> int:
    """The largest optimum over all moments, or a little less: every arena is at least as large. Of more than `most`
    bytes any will do."""
    best = max((buffer.bytes for buffer in problem.buffers), default=0)
    # the largest first: most of the others are then too small to be searched
    for alive in sorted(problem.live_sets, key=lambda alive: -Clique(problem, alive).bound):
        if most is not None and best > most:
            break
        best = max(best, _optimum(problem, alive, best, budget))
    return best


def _optimum(problem: Problem, alive: list[int], enough: int, budget: Budget) -> int:
    """A lower bound for buffers that are alive together; exact where it is above `enough`, no more
    than _EXACT overlap, and one alignment holds for all.

    A buffer that overlaps none of the others lies wholly above or below each of them: once it is
    gone, all that is above it can move down by its step. (Take the lowest first; only a topmost one
    gives back no more than its bytes.) What is left needs a search, with the alignment that is common to
    all: moving down keeps no other.
    """
    clique, buffers = Clique(problem, alive), problem.buffers
    related = [i for i in alive if any(_may_share(problem, i, j) for j in alive if i != j)]
    if not related:
        return clique.bound
    loose = [i for i in alive if i not in related]
    beside = sum(clique.step[i] for i in loose)
    beside -= max((clique.step[i] - buffers[i].bytes for i in loose), default=0)
    floor = max(enough - beside, max(buffers[i].bytes for i in related), Clique(problem, related, clique.align).bound)
    limit = sum(clique.round_up(buffers[i].bytes) for i in related)
    if len(related) > _EXACT or floor >= limit:
        return max(clique.bound, beside + floor)
    sweep = Sweep(problem, related, dict.fromkeys(related, clique.align), _WIDTH)
    return max(clique.bound, beside + sweep.run(limit, floor, budget).bound)


def _may_share(problem: Problem, i: int, j: int) -> bool:
    """Whether two buffers that are alive together may share bytes."""
    buffers, apart = problem.buffers, problem.apart
    return j not in apart[i] or apart[i][j] < buffers[i].bytes or apart[j][i] < buffers[j].bytes
