"""Exact search for a placement of a given size.

A buffer that always finds a free start, wherever the others lie, is placed last and needs no search; then others have
one buffer fewer in their way. What remains falls into independent parts, which pairs.py searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter

from tinyfuse.arena.pairs import Budget, Pairs
from tinyfuse.arena.problem import Problem


@dataclass(frozen=True)
class Answer:
    """Result of the search.

    order  order of placing that fits; None if none was found
    known  if `order` is None: it is proven that none exists
    """

    order: list[int] | None
    known: bool = True


def fits(problem: Problem, most: int, budget: Budget) -> Answer:
    """Searches a placement of all buffers in `most` bytes; not known if the budget runs out."""
    left, last = _split_off_placeable(problem, most)
    starts: dict[int, int] = {}
    for items in sorted(_independent_sets(problem, left), key=len):
        found = Pairs(problem, items, most).run(budget)
        if found is None:
            return Answer(None, known=not budget.spent)
        starts.update(zip(items, found, strict=True))
    return Answer([*_sort_upwards(problem, starts), *last])


def _sort_upwards(problem: Problem, starts: dict[int, int]) -> list[int]:
    """Sorts buffers so that each one comes after all buffers below it, also among buffers with equal starts."""
    below = {
        i: [j for j in problem.apart[i] if j in starts and starts[j] + problem.apart[j][i] <= start]
        for i, start in sorted(starts.items(), key=lambda item: (item[1], item[0]))
    }
    return list(TopologicalSorter(below).static_order())


def _split_off_placeable(problem: Problem, most: int) -> tuple[list[int], list[int]]:
    """Splits the buffers into those to be searched and the others, in an order in which they can be placed last."""
    buffers, left, last = problem.buffers, set(range(len(problem.buffers))), list[int]()
    starts = [max(0, most - buffer.bytes + buffer.align) // buffer.align for buffer in buffers]
    taken = [sum(_count_blocked_starts(problem, i, j) for j in others) for i, others in enumerate(problem.apart)]
    waiting = list(range(len(buffers)))
    while waiting:
        item = waiting.pop()
        if item in left and taken[item] < starts[item]:
            left.remove(item)
            last.append(item)
            for other in problem.apart[item]:
                taken[other] -= _count_blocked_starts(problem, other, item)
                waiting.append(other)
    return sorted(left), last[::-1]


def _count_blocked_starts(problem: Problem, item: int, other: int) -> int:
    """Counts the most starts of buffer `item` that buffer `other` can block, over all places of `other`."""
    align, below, above = problem.buffers[item].align, problem.apart[item][other], problem.apart[other][item]
    if problem.buffers[other].align % align == 0:
        return -(-below // align) + -(-above // align) - 1
    return -(-(below + above - 1) // align)


def _independent_sets(problem: Problem, items: list[int]) -> list[list[int]]:
    """Splits buffers into sets without conflicts between sets."""
    left, found = set(items), []
    while left:
        waiting, part = [left.pop()], []
        while waiting:
            item = waiting.pop()
            part.append(item)
            near = left.intersection(problem.apart[item])
            left -= near
            waiting += sorted(near)
        found.append(sorted(part))
    return sorted(found)
