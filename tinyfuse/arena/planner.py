"""Places buffers: greedy orders first; where they miss the lower bound, hill climbing (climb.py) and an exact search
for a smaller size (fits.py).

Why orders suffice. Take any valid placement. Of two buffers in conflict, call that one the lower for which
offset(upper) - offset(lower) >= apart[lower][upper]. This relation has no cycle: around one, distances would add up to
more than zero, or all be in-place overlaps, which Problem refuses. So there is an order with every lower buffer before
its upper ones. Place by that order, each buffer at its lowest valid offset beside those placed already. None lies
higher than it did: the placed ones that it conflicts with are its lower ones, which only moved down, so its old,
aligned offset is still valid. Hence some order gives an optimal arena, with overlaps and alignments. Overlaps need not
be transitive: only pairs that conflict are compared.
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

#: share of a size limit; hundreds of trials that miss by more were never followed by success
_HOPELESS_EXCESS = 0.05

#: budget before trials; most searches end within it
_WORK_BEFORE_TRIALS = 3_000

#: budget for improving a placement that is like a known one
_WORK_FROM_KNOWN = 5_000

#: trials in a row without improvement, for estimates
_ESTIMATE_PATIENCE = 60


def plan_arena(buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = (), work_limit: int | None = None) -> Placement:
    """Places every buffer. `optimal` if it is proven that no placement is smaller.

    arena_bytes is the end of the highest buffer, not rounded. `work_limit` (limits.PLACEMENT) bounds the search in
    elementary operations of about a microsecond, so the result depends only on the arguments. With 0 there are only
    greedy orders and trials, and no proof. Raises InternalFault if two buffers have one name, or an overlap is
    impossible.
    """
    found = _plan(tuple(buffers), tuple(overlaps), None, _work_allowed(work_limit))
    assert found is not None, "a placement within no limit"
    return replace(found, offsets=dict(found.offsets))  # the cached dict must not be shared


def plan_arena_within(
    most: int, buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = (), work_limit: int | None = None,
    like: Placement | None = None,
) -> Placement | None:  # fmt: skip
    """Places every buffer in at most `most` bytes; None if that is impossible or was not found.

    It gives up early if success is unlikely. `like` is a placement of nearly the same buffers: if placing in order of
    its offsets fits, little more is searched.
    """
    buffers, overlaps, work = tuple(buffers), tuple(overlaps), _work_allowed(work_limit)
    found = _place_in_order_of(like, most, buffers, overlaps, work) if like else None
    found = found or _plan(buffers, overlaps, most, work)
    return None if found is None else replace(found, offsets=dict(found.offsets))


def _work_allowed(asked: int | None) -> int:
    return limits.PLACEMENT.most if asked is None else asked


@lru_cache(maxsize=4)
def _problem(buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...]) -> Problem:
    """Problem of these buffers and overlaps. Recent ones are cached, because `_place_in_order_of` and `_plan` often
    share one."""
    return Problem(buffers, overlaps)


def _place_in_order_of(
    like: Placement, most: int, buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...], work_limit: int
) -> Placement | None:
    """Places buffers in the order of another placement, new ones last; None if they take more than `most` bytes."""
    problem = _problem(buffers, overlaps)
    far = max(like.offsets.values(), default=0) + 1

    def place(i: int) -> tuple[int, int]:
        return like.offsets.get(buffers[i].name, far), i

    offsets = problem.place(sorted(range(len(buffers)), key=place))
    if problem.top(offsets) > most:
        return None
    return _improve(problem, offsets, lower_bound(problem), min(work_limit, _WORK_FROM_KNOWN))


@lru_cache(maxsize=64)
def _plan(
    buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...], most: int | None, work_limit: int
) -> Placement | None:
    """Searches and caches a placement: candidates of several objectives often have equal buffers."""
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
    found = _improve(problem, offsets, bound, work_limit)
    return found if most is None or found.arena_bytes <= most else None


def _place_greedily(problem: Problem, enough: int) -> dict[int, int]:
    """Best offsets of the greedy orders; stops at `enough` bytes."""
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
    """Tells whether hill climbing comes within _HOPELESS_EXCESS of `most` bytes.

    If not, no further search was ever seen to succeed.
    """
    order = climb(problem, offsets, most)
    size = problem.top(offsets if order is None else problem.place(order))
    return size <= most * (1 + _HOPELESS_EXCESS)


def _improve(problem: Problem, offsets: dict[int, int], bound: int, work_limit: int) -> Placement:
    """Improves a placement as far as the budget allows; `bound` is a lower bound on its bytes."""
    size, tried = problem.top(offsets), False
    if size > bound and not work_limit and (order := climb(problem, offsets, bound, _ESTIMATE_PATIENCE)) is not None:
        offsets = problem.place(order)
        size = problem.top(offsets)
    budget = Budget(min(work_limit, _WORK_BEFORE_TRIALS))
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
