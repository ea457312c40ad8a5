"""A lower bound of every placement: the buffers that are alive at one step, placed best."""

from __future__ import annotations

from tinyfuse.arena.problem import Problem

#: buffers that overlap at one step up to which its bound is exact (the work doubles with each)
_EXACT = 12


def lower_bound(problem: Problem) -> int:
    """The largest optimum over all moments; every placement is at least as large."""
    buffers = problem.buffers
    best = 0
    seen: set[frozenset[int]] = set()
    for step in sorted({buffer.first_step for buffer in buffers}):
        here = [i for i, b in enumerate(buffers) if b.first_step <= step <= b.last_step and b.bytes]
        moments = frozenset().union(*(buffers[i].moments or () for i in here)) or {0}
        for moment in sorted(moments):
            alive = frozenset(
                i for i in here if buffers[i].moments is None or moment in buffers[i].moments
            )
            if alive and alive not in seen:
                seen.add(alive)
                best = max(best, _clique(problem, alive))
    return best


def _clique(problem: Problem, alive: frozenset[int]) -> int:
    """The least arena for buffers that are all alive together.

    They have an order by offset, and then the lowest offsets are a longest path: a buffer lies
    behind every earlier one by that pair's distance. With an overlap those distances are not sums
    of sizes, so the bound is found over orders. A buffer `x` placed after the set S starts at
    max over s in S of offset(s) + apart(s, x); the dynamic program keeps, for every set, the
    orders that no other order beats at every buffer's offset.
    """
    related = {
        i for i in alive for j in alive
        if i != j and (
            problem.apart[i][j] < problem.buffers[i].bytes or problem.apart[j][i] < problem.buffers[j].bytes
        )
    }  # fmt: skip
    # A buffer that overlaps none of the others takes its bytes, wherever it lies: whatever is above
    # it can move down by them once it is gone. So only the related ones need a search.
    alone = sum(problem.buffers[i].bytes for i in alive - related)
    items = sorted(related)
    if not items:
        return alone
    if len(items) > _EXACT:
        return alone + _weak(problem, items)
    best = [sum(problem.buffers[i].bytes for i in items) + 1]
    _extend(problem, items, {}, best)
    return alone + best[0]


def _extend(problem: Problem, items: list[int], offsets: dict[int, int], best: list[int]) -> None:
    """Branch and bound over orders by offset (alignment left out: the bound may only be too low)."""
    floor = _weak(problem, items)
    stack = [(offsets, 0)]
    visited: dict[frozenset[int], list[dict[int, int]]] = {}
    while stack:
        placed, top = stack.pop()
        if best[0] <= floor:
            return
        if top >= best[0]:
            continue
        if len(placed) == len(items):
            best[0] = top
            continue
        key = frozenset(placed)
        rivals = visited.setdefault(key, [])
        if any(all(rival[i] <= placed[i] for i in placed) for rival in rivals):
            continue
        rivals.append(placed)
        for item in items:
            if item in placed:
                continue
            offset = max((placed[o] + problem.apart[o][item] for o in placed), default=0)
            end = max(top, offset + problem.buffers[item].bytes)
            if end < best[0]:
                stack.append(({**placed, item: offset}, end))


def _weak(problem: Problem, items: list[int]) -> int:
    """Cheap and safe: an order's arena is at least the last one's size and the least distances of
    the others, each to whatever follows it."""
    least = {i: min((problem.apart[i][j] for j in items if j != i), default=0) for i in items}
    total = sum(least.values())
    return max(
        max(problem.buffers[i].bytes for i in items),
        min(total - least[i] + problem.buffers[i].bytes for i in items),
    )

