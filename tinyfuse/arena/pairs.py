"""Exact search: can buffers lie in an arena of a given size? For each conflicting pair, one must lie below the other.

Each buffer has a lowest and a highest start. Deciding that i lies below j raises j's lowest start and lowers i's
highest. A pair with room for one order only is decided at once, and so is what follows from two decided pairs. Other
pairs are tried: those that share bytes if all buffers lie at their lowest, the largest first. If buffers of a live set
do not fit above the lowest start of some of them, or below the highest, the search backtracks (bounds.OverlapChain).

The method is precedence constraint posting. Source: Cesta, Oddi and Smith, "A constraint-based method for project
scheduling with time windows", Journal of Heuristics 8, 2002.

The search refuses quickly if the arena is clearly too small, and succeeds quickly if it is clearly large enough.
Otherwise its budget ends it.
"""

from __future__ import annotations

from math import gcd

from tinyfuse.arena.bounds import OverlapChain
from tinyfuse.arena.problem import Problem


class Budget:
    """Work left for a search, in elementary operations of about a microsecond. Operations are counted, not timed, so
    the result is the same on every machine."""

    def __init__(self, work: int):
        self.left = work

    @property
    def spent(self) -> bool:
        return self.left <= 0


class _State:
    """Lowest and highest start of each buffer; and bit sets of the buffers above, below, and undecided."""

    __slots__ = ("above", "below", "highest", "lowest", "undecided")

    def __init__(self, lowest: list[int], highest: list[int], above: list[int], below: list[int], undecided: list[int]):
        self.lowest, self.highest = lowest, highest
        self.above, self.below, self.undecided = above, below, undecided

    def copy(self) -> _State:
        return _State(self.lowest[:], self.highest[:], self.above[:], self.below[:], self.undecided[:])


class Pairs:
    """Search over `items`, numbers of the problem's buffers, in an arena of `most` bytes. Items are renumbered from
    0."""

    def __init__(self, problem: Problem, items: list[int], most: int):
        self.items, self.most = items, most
        self.sizes = [problem.buffers[i].bytes for i in items]
        self.aligns = [problem.buffers[i].align for i in items]
        number = {item: n for n, item in enumerate(items)}
        self.apart: list[dict[int, int]] = []
        for item in items:
            align = problem.buffers[item].align
            row = {}
            for other, distance in problem.apart[item].items():
                if other in number:
                    common = gcd(align, problem.buffers[other].align)
                    row[number[other]] = -(-distance // common) * common
            self.apart.append(row)
        together = {tuple(i for i in alive if i in number) for alive in problem.live_sets}
        self.chains = [
            self._renumber(OverlapChain(problem, alive), number) for alive in sorted(together) if len(alive) > 1
        ]

    @staticmethod
    def _renumber(
        chain: OverlapChain, number: dict[int, int]
    ) -> tuple[int, list[tuple[int, int]], int, list[tuple[int, int, int]]]:
        """Renumbers a chain: bit set of its buffers, (buffer, height), spare bytes, savings."""
        heights = [(number[i], height) for i, height in chain.heights.items()]
        savings = [(saved, number[i], number[j]) for saved, i, j in chain.savings]
        return sum(1 << n for n, _ in heights), heights, chain.spare, savings

    def run(self, budget: Budget) -> list[int] | None:
        """Starts of all items; None if there are none, or the budget runs out first."""
        begun = self._begin(budget)
        waiting = [] if begun is None else [begun]
        while waiting and not budget.spent:
            state = waiting.pop()
            budget.left -= len(self.items)
            pair = self._open_pair(state)
            if pair is None:
                return state.lowest
            waiting += self._try_both_orders(state, *pair, budget)
        return None

    def _begin(self, budget: Budget) -> _State | None:
        highest = [(self.most - size) // align * align for size, align in zip(self.sizes, self.aligns, strict=True)]
        if min(highest, default=0) < 0:
            return None
        count = len(self.items)
        undecided = [sum(1 << j for j in others) for others in self.apart]
        state = _State([0] * count, highest, [0] * count, [0] * count, undecided)
        decided = [(j, i) for i, others in enumerate(self.apart) for j in others if others[j] > highest[j]]
        return state if self._decide(state, decided, (1 << count) - 1, budget) else None

    def _open_pair(self, state: _State) -> tuple[int, int] | None:
        """Picks the undecided pair to try next; None if all buffers may lie at their lowest starts."""
        lowest, sizes = state.lowest, self.sizes
        best: tuple[int, int, int] | None = None
        pair: tuple[int, int] | None = None
        for i, start in enumerate(lowest):
            apart, others = self.apart[i], state.undecided[i] >> i << i
            while others:
                bit = others & -others
                others ^= bit
                j = bit.bit_length() - 1
                if start + apart[j] > lowest[j] and lowest[j] + self.apart[j][i] > start:
                    smaller, larger = sorted((sizes[i], sizes[j]))
                    room = state.highest[i] + state.highest[j] - start - lowest[j] - apart[j] - self.apart[j][i]
                    if best is None or (-smaller, -larger, room) < best:
                        best, pair = (-smaller, -larger, room), (i, j)
        return pair

    def _try_both_orders(self, state: _State, i: int, j: int, budget: Budget) -> list[_State]:
        """States after either order of a pair, without impossible ones; the order that leaves more room comes last."""
        room = [state.highest[b] - state.lowest[a] - self.apart[a][b] for a, b in ((i, j), (j, i))]
        found = []
        for below, above in ((j, i), (i, j)) if room[0] >= room[1] else ((i, j), (j, i)):
            child = state.copy()
            if self._decide(child, [(below, above)], 1 << below | 1 << above, budget):
                found.append(child)
        return found

    def _decide(self, state: _State, decided: list[tuple[int, int]], changed: int, budget: Budget) -> bool:
        """Records the pairs (below, above) and all that follows from them. Returns False on a contradiction.

        `changed` is the bit set of the buffers whose bounds or neighbours have changed so far.
        """
        raised: set[int] = set()
        lowered: set[int] = set()
        while decided or raised or lowered:
            if decided:
                below, above = decided.pop()
                budget.left -= 2
                possible = self._record(state, below, above, decided, raised, lowered)
            elif raised:
                i = raised.pop()
                changed |= 1 << i
                budget.left -= 2
                possible = self._propagate_lowest(state, i, decided, raised)
            else:
                i = lowered.pop()
                changed |= 1 << i
                budget.left -= 2
                possible = self._propagate_highest(state, i, decided, lowered)
            if not possible:
                return False
        return self._chains_fit(state, changed, budget)

    def _record(
        self, state: _State, i: int, j: int, decided: list[tuple[int, int]], raised: set[int], lowered: set[int]
    ) -> bool:
        """Records that buffer i lies below j; False on a contradiction."""
        above, below, undecided = state.above, state.below, state.undecided
        if above[i] >> j & 1:
            return True
        if below[i] >> j & 1:
            return False
        above[i] |= 1 << j
        below[j] |= 1 << i
        undecided[i] &= ~(1 << j)
        undecided[j] &= ~(1 << i)
        decided += [(i, k) for k in _bit_numbers(above[j] & undecided[i])]
        decided += [(k, j) for k in _bit_numbers(below[i] & undecided[j])]
        distance = self.apart[i][j]
        return self._raise_lowest(state, j, state.lowest[i] + distance, raised) and self._lower_highest(
            state, i, state.highest[j] - distance, lowered
        )

    def _raise_lowest(self, state: _State, i: int, start: int, raised: set[int]) -> bool:
        if start > state.lowest[i]:
            state.lowest[i] = start = -(-start // self.aligns[i]) * self.aligns[i]
            raised.add(i)
            return start <= state.highest[i]
        return True

    def _lower_highest(self, state: _State, i: int, start: int, lowered: set[int]) -> bool:
        if start < state.highest[i]:
            state.highest[i] = start = start // self.aligns[i] * self.aligns[i]
            lowered.add(i)
            return start >= state.lowest[i]
        return True

    def _propagate_lowest(self, state: _State, i: int, decided: list[tuple[int, int]], raised: set[int]) -> bool:
        """Propagates a raised lowest start of buffer i; False on a contradiction."""
        start, apart, highest = state.lowest[i], self.apart[i], state.highest
        decided += [(j, i) for j in _bit_numbers(state.undecided[i]) if start + apart[j] > highest[j]]
        return all(self._raise_lowest(state, j, start + apart[j], raised) for j in _bit_numbers(state.above[i]))

    def _propagate_highest(self, state: _State, i: int, decided: list[tuple[int, int]], lowered: set[int]) -> bool:
        """Propagates a lowered highest start of buffer i; False on a contradiction."""
        start, apart, lowest = state.highest[i], self.apart, state.lowest
        decided += [(i, j) for j in _bit_numbers(state.undecided[i]) if lowest[j] + apart[j][i] > start]
        return all(self._lower_highest(state, j, start - apart[j][i], lowered) for j in _bit_numbers(state.below[i]))

    def _chains_fit(self, state: _State, changed: int, budget: Budget) -> bool:
        """Tells whether the live sets with a `changed` buffer fit above the lowest start and below the highest end of
        each of their buffers."""
        lowest, highest, below, above = state.lowest, state.highest, state.below, state.above
        for members, heights, spare, savings in self.chains:
            if not members & changed:
                continue
            budget.left -= len(heights)
            # most bytes that each buffer saves by reaching into another, and by being reached into
            reaching: dict[int, int] = {}
            reached: dict[int, int] = {}
            for saved, i, j in savings:
                if i in reaching and j in reached:
                    continue
                if below[i] >> j & 1 or above[i] & below[j] & members:
                    continue  # j does not lie next above i
                reaching.setdefault(i, saved)
                reached.setdefault(j, saved)
            room = spare + self.most
            total = saved_below = saved_above = 0
            rising = sorted([(lowest[i], i, height) for i, height in heights], reverse=True)
            for n, (start, i, height) in enumerate(rising, 1):
                total += height
                saved_below += reaching.get(i, 0)
                saved_above += reached.get(i, 0)
                # if a buffer lies between two others in the chain, equal starts count as one
                if n == len(rising) or rising[n][0] < start:
                    too_much = start + total - room
                    if too_much > saved_below or too_much > saved_above:
                        return False
            total = saved_below = saved_above = end = 0
            falling = sorted([(highest[i], i, height) for i, height in heights])
            for n, (start, i, height) in enumerate(falling, 1):
                total += height
                end = max(end, start + self.sizes[i])
                saved_below += reaching.get(i, 0)
                saved_above += reached.get(i, 0)
                if n == len(falling) or falling[n][0] > start:
                    too_much = total - spare - end
                    if too_much > saved_below or too_much > saved_above:
                        return False
        return True


def _bit_numbers(bits: int) -> list[int]:
    """Numbers in a bit set, ascending."""
    found = []
    while bits:
        bit = bits & -bits
        bits ^= bit
        found.append(bit.bit_length() - 1)
    return found
