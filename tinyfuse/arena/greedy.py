"""Greedy orders of placing buffers that do well on real models."""

from __future__ import annotations

from collections.abc import Iterator

from tinyfuse.arena.problem import Problem


def greedy_orders(problem: Problem) -> Iterator[list[int]]:
    """Yields orders by size, bytes times lifetime, lifetime, first step, last step, conflicts, and overlaps.

    The last one places outputs before the inputs that they overlap, so that the overlap can be used from below.
    """
    buffers, apart = problem.buffers, problem.apart
    steps = [b.last_step - b.first_step + 1 for b in buffers]
    overlaps = [sum(d < buffers[i].bytes for d in apart[i].values()) for i in range(len(buffers))]
    keys = (
        lambda i: (-buffers[i].bytes, buffers[i].first_step),
        lambda i: (-buffers[i].bytes * steps[i],),
        lambda i: (-steps[i], -buffers[i].bytes),
        lambda i: (buffers[i].first_step, -buffers[i].bytes),
        lambda i: (-buffers[i].last_step, -buffers[i].bytes),
        lambda i: (-buffers[i].bytes - sum(buffers[j].bytes for j in apart[i]),),
        lambda i: (-overlaps[i], -buffers[i].first_step, -buffers[i].bytes),
    )
    for key in keys:
        yield sorted(range(len(buffers)), key=key)
