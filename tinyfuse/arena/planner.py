"""Offsets for buffers: several greedy orders, a lower bound, then an exact search if they differ.

Why orders suffice: take any valid placement and put the buffers one by one, by rising offset (of
two at one offset, the one that may lie below the other first), each as low as it can lie above those
before it that it conflicts with. By induction none lies higher than it did: at its old offset it is
still far enough above every earlier one, for those only moved down, and alignment allowed that offset
before. So some order gives an optimal placement, overlaps included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tinyfuse.arena.bounds import lower_bound
from tinyfuse.arena.problem import Buffer, Overlap, Placement, Problem

#: buffers placed by the exact search, at most: about a second
WORK_LIMIT = 200_000


def plan_arena(
    buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = (), work_limit: int = WORK_LIMIT
) -> Placement:
    """A placement of every buffer, deterministic; `optimal` where it is proven minimal.

    AssertionError where two buffers have one name.
    """
    problem = Problem(tuple(buffers), tuple(overlaps))
    bound = lower_bound(problem)
    best: dict[int, int] = {}
    for order in _greedy_orders(problem):
        offsets = place(problem, order)
        if not best or problem.top(offsets) < problem.top(best):
            best = offsets
        if problem.top(best) <= bound:
            break
    finished = True
    if problem.top(best) > bound:
        best, finished = _search(problem, best, bound, work_limit)
    size = problem.top(best)
    names = {problem.buffers[i].name: offset for i, offset in sorted(best.items())}
    return Placement(names, size, size if finished else bound, finished)


def place(problem: Problem, order: Iterable[int]) -> dict[int, int]:
    """Each buffer at its lowest valid offset, in that order."""
    offsets: dict[int, int] = {}
    for item in order:
        offsets[item] = problem.lowest_offset(item, offsets)
    return offsets


def _greedy_orders(problem: Problem) -> Iterable[list[int]]:
    """Orders that do well on real models: large first, long-lived first, by time, and mixtures."""
    buffers = problem.buffers
    life = [b.last_step - b.first_step + 1 for b in buffers]
    keys: list[Callable[[int], tuple]] = [
        lambda i: (-buffers[i].bytes, buffers[i].first_step, i),
        lambda i: (-buffers[i].bytes * life[i], i),
        lambda i: (-life[i], -buffers[i].bytes, i),
        lambda i: (buffers[i].first_step, -buffers[i].bytes, i),
        lambda i: (-buffers[i].last_step, -buffers[i].bytes, i),
        lambda i: (-sum(buffers[j].bytes for j in problem.apart[i]) - buffers[i].bytes, i),
    ]
    for key in keys:
        yield sorted(range(len(buffers)), key=key)
    yield _chained(problem)


def _chained(problem: Problem) -> list[int]:
    """Outputs before the inputs they overlap: the order in which overlaps can be used from below."""
    buffers = problem.buffers
    below = {i: sum(d < buffers[i].bytes for d in problem.apart[i].values()) for i in range(len(buffers))}
    return sorted(below, key=lambda i: (-below[i], -buffers[i].first_step, -buffers[i].bytes, i))


def _search(
    problem: Problem, best: dict[int, int], bound: int, work_limit: int
) -> tuple[dict[int, int], bool]:
    """Depth-first over orders by rising offset; True if the search was complete.

    A branch is cut when it is no better than the best, or when its set of placed buffers was
    reached before with no buffer higher. Buffers that conflict with nothing are placed last.
    """
    count = len(problem.buffers)
    best_top = problem.top(best)
    stack: list[tuple[dict[int, int], int, int]] = [({}, 0, 0)]
    visited: dict[frozenset[int], list[dict[int, int]]] = {}
    work = 0
    while stack:
        placed, top, floor = stack.pop()
        if top >= best_top:
            continue
        if len(placed) == count:
            best, best_top = placed, top
            if best_top <= bound:
                return best, True
            continue
        rivals = visited.setdefault(frozenset(placed), [])
        if any(_no_higher(rival, placed) for rival in rivals):
            continue
        rivals.append(placed)
        children = []
        for item in range(count):
            if item in placed:
                continue
            offset = problem.above(item, placed)
            end = max(top, offset + problem.buffers[item].bytes)
            # rising offsets are enough (see above), so a lower one was a branch of its own
            if end < best_top and offset >= floor:
                children.append((offset, -problem.buffers[item].bytes, item, end))
        work += count
        if work > work_limit:
            return best, False
        for offset, _, item, end in sorted(children, reverse=True):
            stack.append(({**placed, item: offset}, end, offset))
    return best, True


def _no_higher(rival: dict[int, int], placed: dict[int, int]) -> bool:
    return all(rival[item] <= offset for item, offset in placed.items())
