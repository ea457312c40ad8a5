"""Offsets for buffers: greedy orders first; where they miss the lower bound, exact searches; where those leave a gap,
trials (climb.py).

Why orders suffice. Take any valid placement, and of two buffers in conflict call that one the lower
which lies so by enough: offset(j) - offset(i) >= apart[i][j]. These relations form no circle: around
it distances would add up to more than nothing, or all be in-place overlaps, which Problem refuses. So
there is an order with every lower buffer before its upper ones. Place by that order, each buffer at
its lowest valid offset beside those placed already. None lies higher than it did: all placed ones it
conflicts with are its lower ones, and they only moved down, so its old offset is still far enough
above them; and it was aligned. So some order gives an optimal arena, with overlaps and alignments.
Overlaps need not be transitive for this: only pairs that conflict themselves are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from math import lcm

from tinyfuse import limits
from tinyfuse.arena.bounds import lower_bound
from tinyfuse.arena.climb import climb
from tinyfuse.arena.greedy import greedy_orders
from tinyfuse.arena.problem import Buffer, Overlap, Placement, Problem
from tinyfuse.arena.search import Budget, Found
from tinyfuse.arena.stacking import Stacking
from tinyfuse.arena.sweep import Sweep

#: a share of a limit
_FAR = 0.05

#: Sweep tells apart this many offsets modulo the alignments, at most
_FINEST = 64


def plan_arena(buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = (), work_limit: int | None = None) -> Placement:
    """A placement of every buffer; `optimal` where it is proven that none is smaller.

    arena_bytes is exactly where the highest buffer ends; nothing is rounded. `work_limit` (limits.PLACEMENT) bounds
    the searches in elementary operations (about a microsecond each), so the result depends on the
    arguments alone. InternalFault where two buffers have one name, or an overlap is impossible.
    """
    found = _plan(tuple(buffers), tuple(overlaps), None, _work(work_limit))
    assert found is not None, "a placement within no limit"
    return replace(found, offsets=dict(found.offsets))  # the caller's own


def plan_arena_within(
    most: int, buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = (), work_limit: int | None = None,
    like: Placement | None = None,
) -> Placement | None:  # fmt: skip
    """`plan_arena` where it takes at most so many bytes, else None: that is often known sooner than a placement, or
    so unlikely that no exact search is made. Where there is one, it is never more bytes than `plan_arena` takes; less
    work is lost on what is too large.

    `like`: of nearly the same buffers. Where their order by its offsets takes at most so many bytes, that is the
    answer, and nothing is searched."""
    buffers, overlaps, work = tuple(buffers), tuple(overlaps), _work(work_limit)
    found = _in_order(like, most, buffers, overlaps, work) if like else None
    found = found or _plan(buffers, overlaps, most, work)
    return None if found is None else replace(found, offsets=dict(found.offsets))


def _in_order(
    like: Placement, most: int, buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...], work_limit: int
) -> Placement | None:
    """The buffers in that placement's order, and those that it hasn't at its end; None where they take more bytes."""
    problem = Problem(buffers, overlaps)
    far = max(like.offsets.values(), default=0) + 1

    def place(i: int) -> tuple[int, int]:
        return like.offsets.get(buffers[i].name, far), i

    offsets = problem.place(sorted(range(len(buffers)), key=place))
    size = problem.top(offsets)
    if size > most:
        return None
    bound = lower_bound(problem, Budget(work_limit // 2), most)
    return Placement({buffer.name: offsets[i] for i, buffer in enumerate(buffers)}, size, bound, size == bound)


def _work(asked: int | None) -> int:
    return limits.PLACEMENT.most if asked is None else asked


@lru_cache(maxsize=64)
def _plan(
    buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...], most: int | None, work_limit: int
) -> Placement | None:
    """Both of these, remembered: candidates of several objectives often come to the same buffers."""
    problem = Problem(buffers, overlaps)
    bound = lower_bound(problem, Budget(work_limit // 2), most)
    if most is not None and bound > most:
        return None
    best, size = _place_greedily(problem, bound)
    if most is not None and size > most and not _comes_near(problem, best, most):
        return None
    if size > bound:
        limit = size if most is None else min(size, most + 1)
        found = _search(problem, limit, bound, work_limit)
        bound, order = found.bound, found.order
        if order is not None:
            best = problem.place(order)
            size = problem.top(best)
    if size > bound:
        order = climb(problem, best, bound)
        if order is not None:
            best = problem.place(order)
            size = problem.top(best)
    if most is not None and size > most:
        return None
    names = {buffer.name: best[i] for i, buffer in enumerate(problem.buffers)}
    return Placement(names, size, bound, size == bound)


def _comes_near(problem: Problem, offsets: dict[int, int], most: int) -> bool:
    """Whether a placement of at most so many bytes is worth an exact search: trials come near one. What hundreds of
    them miss by _FAR, no search of ours was seen to find."""
    order = climb(problem, offsets, most)
    size = problem.top(offsets if order is None else problem.place(order))
    return size <= most * (1 + _FAR)


def _place_greedily(problem: Problem, enough: int) -> tuple[dict[int, int], int]:
    """The best offsets of greedy orders, and the bytes they take; any of `enough` bytes will do."""
    best: dict[int, int] = {}
    size: int | None = None
    for order in greedy_orders(problem):
        offsets = problem.place(order)
        top = problem.top(offsets)
        if size is None or top < size:
            best, size = offsets, top
        if size <= enough:
            break
    return best, size or 0


def _search(problem: Problem, size: int, bound: int, work_limit: int) -> Found:
    """The exact searches in turn for less than `size` bytes, until one meets the bound or proves that there is no
    better placement.

    Which of them ends soon depends on the model, so each gets a share of the work.
    """
    crowded = [i for i, others in enumerate(problem.apart) if others]
    alone = [i for i, others in enumerate(problem.apart) if not others]
    align = {i: problem.buffers[i].align for i in crowded}
    stacking, brief = Stacking(problem, crowded), work_limit // 50
    searches: list[tuple[Stacking | Sweep, int]] = [(stacking, work_limit // 4 - brief)]
    if lcm(*align.values()) // min(align.values()) <= _FINEST:
        searches.insert(0, (Sweep(problem, crowded, align, width=8), work_limit // 2))
        searches.append((Sweep(problem, crowded, align, width=128), work_limit // 2))
        # where many buffers are alive together it often ends in a hundredth of what sweeping takes
        searches.insert(0, (stacking, brief))
    order, too_wide = None, False
    for search, share in searches:
        if isinstance(search, Sweep) and too_wide:
            continue
        budget = Budget(share)
        found = search.run(size, bound, budget)
        too_wide = too_wide or (
            isinstance(search, Sweep) and budget.spent
        )  # where the narrow one doesn't end, no wide one does
        if found.order is not None:
            order = found.order + alone
            size = problem.top(problem.place(order))
        bound = min(size, max(bound, found.bound))
        if size == bound:
            break
    return Found(order, bound)
