"""Offsets for buffers: greedy orders first; where they miss the lower bound, trials (climb.py), and an exact search for
anything smaller (fits.py).

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

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from tinyfuse import limits
from tinyfuse.arena.bounds import lower_bound
from tinyfuse.arena.climb import climb
from tinyfuse.arena.fits import fits
from tinyfuse.arena.greedy import greedy_orders
from tinyfuse.arena.pairs import Budget
from tinyfuse.arena.problem import Buffer, Overlap, Placement, Problem

#: a share of a limit
_FAR = 0.05

#: the work after which trials are made before more is done: most searches end within it
_SOON = 3_000

#: the work for a placement that is like one which is known
_BRIEF = 5_000

#: trials in a row without a better one, where no work is asked for: they are for an estimate
_IMPATIENT = 60


def plan_arena(buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = (), work_limit: int | None = None) -> Placement:
    """A placement of every buffer; `optimal` where it is proven that none is smaller.

    arena_bytes is exactly where the highest buffer ends; nothing is rounded. `work_limit` (limits.PLACEMENT) bounds
    the search in elementary operations (about a microsecond each), so the result depends on the arguments alone; for 0
    there are greedy orders and trials alone, and nothing is proven. InternalFault where two buffers have one name, or
    an overlap is impossible.
    """
    found = _plan(tuple(buffers), tuple(overlaps), None, _work(work_limit))
    assert found is not None, "a placement within no limit"
    return replace(found, offsets=dict(found.offsets))  # the caller's own


def plan_arena_within(
    most: int, buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = (), work_limit: int | None = None,
    like: Placement | None = None,
) -> Placement | None:  # fmt: skip
    """`plan_arena` where it takes at most so many bytes, else None: that is often known sooner than a placement, or
    so unlikely that no more is tried.

    `like`: of nearly the same buffers. Where their order by its offsets takes at most so many bytes, little more is
    searched."""
    buffers, overlaps, work = tuple(buffers), tuple(overlaps), _work(work_limit)
    found = _in_order(like, most, buffers, overlaps, work) if like else None
    found = found or _plan(buffers, overlaps, most, work)
    return None if found is None else replace(found, offsets=dict(found.offsets))


def _work(asked: int | None) -> int:
    return limits.PLACEMENT.most if asked is None else asked


@lru_cache(maxsize=4)
def _problem(buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...]) -> Problem:
    """The last ones are remembered: what fits in no order that is known is placed anew."""
    return Problem(buffers, overlaps)


def _in_order(
    like: Placement, most: int, buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...], work_limit: int
) -> Placement | None:
    """The buffers in that placement's order, and those that it hasn't at its end; None where they take more bytes."""
    problem = _problem(buffers, overlaps)
    far = max(like.offsets.values(), default=0) + 1

    def place(i: int) -> tuple[int, int]:
        return like.offsets.get(buffers[i].name, far), i

    offsets = problem.place(sorted(range(len(buffers)), key=place))
    if problem.top(offsets) > most:
        return None
    return _tightened(problem, offsets, lower_bound(problem), min(work_limit, _BRIEF))


@lru_cache(maxsize=64)
def _plan(
    buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...], most: int | None, work_limit: int
) -> Placement | None:
    """Both of these, remembered: candidates of several objectives often come to the same buffers."""
    problem = _problem(buffers, overlaps)
    bound = lower_bound(problem, most)
    if most is not None and bound > most:
        return None
    offsets = _place_greedily(problem, bound)
    if most is not None and problem.top(offsets) > most and work_limit:
        answer = fits(problem, most, Budget(work_limit))
        if answer.order is None and (answer.known or not _comes_near(problem, offsets, most)):
            return None
        offsets = offsets if answer.order is None else problem.place(answer.order)
    found = _tightened(problem, offsets, bound, work_limit)
    return found if most is None or found.arena_bytes <= most else None


def _place_greedily(problem: Problem, enough: int) -> dict[int, int]:
    """The best offsets of greedy orders; any of `enough` bytes will do."""
    best: dict[int, int] = {}
    size = math.inf
    for order in greedy_orders(problem):
        offsets = problem.place_below(size, order)
        if offsets is not None:
            best, size = offsets, problem.top(offsets)
        if size <= enough:
            break
    return best


def _comes_near(problem: Problem, offsets: dict[int, int], most: int) -> bool:
    """Whether more is worth trying for a placement of at most so many bytes: what hundreds of trials miss by _FAR, no
    search of ours was seen to find."""
    order = climb(problem, offsets, most)
    size = problem.top(offsets if order is None else problem.place(order))
    return size <= most * (1 + _FAR)


def _tightened(problem: Problem, offsets: dict[int, int], bound: int, work_limit: int) -> Placement:
    """The best placement that is found, beginning with these offsets; no one takes less than `bound` bytes."""
    size, tried = problem.top(offsets), False
    if size > bound and not work_limit and (order := climb(problem, offsets, bound, _IMPATIENT)) is not None:
        offsets = problem.place(order)
        size = problem.top(offsets)
    budget = Budget(min(work_limit, _SOON))
    while size > bound and work_limit:
        answer = fits(problem, size - 1, budget)
        order = answer.order
        if answer.known and order is None:
            bound = size
        elif order is None and not tried:
            order, tried, budget = climb(problem, offsets, bound), True, Budget(work_limit)
        elif order is None:
            break
        if order is not None:
            offsets = problem.place(order)
            size = problem.top(offsets)
    names = {buffer.name: offsets[i] for i, buffer in enumerate(problem.buffers)}
    return Placement(names, size, bound, size == bound)
