"""Exact search: can buffers lie in an arena of so many bytes? For each pair that conflicts, one is to lie below.

Each buffer has a lowest and a highest start. What lies below another raises that one's lowest start, and has its own
highest one lowered; where a pair leaves room for one order alone, that is decided, and so is what follows from two
decided pairs. What is left is tried: the pair that shares bytes if all lie as low as they can, and of these the
largest. (Precedence constraint posting: Cesta, Oddi and Smith, "A constraint-based method for project scheduling with
time windows", Journal of Heuristics 8, 2002.) Where buffers that are alive together don't fit above the lowest start of
some of them, or below the highest, nothing that was decided can stay (bounds.OverlapChain).

It says no where there is little room to lose, and yes where there is much; between, its budget ends it.
"""

from __future__ import annotations

from math import gcd

from tinyfuse.arena.bounds import OverlapChain
from tinyfuse.arena.problem import Problem


class Budget:
    """Work that a search may still do, in elementary operations: about a microsecond each. Counted,
    never timed: the result is the same on every machine."""

    def __init__(self, work: int):
        self.left = work

    @property
    def spent(self) -> bool:
        return self.left <= 0


class _State:
    """Of each buffer its lowest and highest start, and as bit sets those that lie above and below it, and those of
    which nothing is decided yet."""

    __slots__ = ("above", "below", "highest", "lowest", "undecided")

    def __init__(self, lowest: list[int], highest: list[int], above: list[int], below: list[int], undecided: list[int]):
        self.lowest, self.highest = lowest, highest
        self.above, self.below, self.undecided = above, below, undecided

    def copy(self) -> _State:
        return _State(self.lowest[:], self.highest[:], self.above[:], self.below[:], self.undecided[:])


class Pairs:
    """The search over `items`, numbers of the problem's buffers, in an arena of `most` bytes. Here they are numbered
    from 0."""

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
            self._numbered(OverlapChain(problem, alive), number) for alive in sorted(together) if len(alive) > 1
        ]

    @staticmethod
    def _numbered(
        chain: OverlapChain, number: dict[int, int]
    ) -> tuple[int, list[tuple[int, int]], int, list[tuple[int, int, int]]]:
        """Its buffers as a bit set, their heights, what is spare, and savings."""
        heights = [(number[i], height) for i, height in chain.heights.items()]
        savings = [(saved, number[i], number[j]) for saved, i, j in chain.savings]
        return sum(1 << n for n, _ in heights), heights, chain.spare, savings

    def run(self, budget: Budget) -> list[int] | None:
        """Starts of all items; None where there are none, or the budget ends before that is known."""
        begun = self._begin(budget)
        waiting = [] if begun is None else [begun]
        while waiting and not budget.spent:
            state = waiting.pop()
            budget.left -= len(self.items)
            pair = self._open_pair(state)
            if pair is None:
                return state.lowest
            waiting += self._both(state, *pair, budget)
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
        """The undecided pair to be tried next; None where all may start at their lowest."""
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

    def _both(self, state: _State, i: int, j: int, budget: Budget) -> list[_State]:
        """What comes of either order of a pair, the one that leaves more room last."""
        room = [state.highest[b] - state.lowest[a] - self.apart[a][b] for a, b in ((i, j), (j, i))]
        found = []
        for below, above in ((j, i), (i, j)) if room[0] >= room[1] else ((i, j), (j, i)):
            child = state.copy()
            if self._decide(child, [(below, above)], 1 << below | 1 << above, budget):
                found.append(child)
        return found

    def _decide(self, state: _State, decided: list[tuple[int, int]], changed: int, budget: Budget) -> bool:
        """Notes these pairs, (below, above), and all that follows; whether that can be. `changed`: the buffers of which
        something is new."""
        raised: set[int] = set()
        lowered: set[int] = set()
        while decided or raised or lowered:
            if decided:
                below, above = decided.pop()
                budget.left -= 2
                possible = self._note(state, below, above, decided, raised, lowered)
            elif raised:
                i = raised.pop()
                changed |= 1 << i
                budget.left -= 2
                possible = self._raise(state, i, decided, raised)
            else:
                i = lowered.pop()
                changed |= 1 << i
                budget.left -= 2
                possible = self._lower(state, i, decided, lowered)
            if not possible:
                return False
        return self._chains_fit(state, changed, budget)

    def _note(
        self, state: _State, i: int, j: int, decided: list[tuple[int, int]], raised: set[int], lowered: set[int]
    ) -> bool:
        """Buffer i lies below j."""
        above, below, undecided = state.above, state.below, state.undecided
        if above[i] >> j & 1:
            return True
        if below[i] >> j & 1:
            return False
        above[i] |= 1 << j
        below[j] |= 1 << i
        undecided[i] &= ~(1 << j)
        undecided[j] &= ~(1 << i)
        decided += [(i, k) for k in _numbers(above[j] & undecided[i])]
        decided += [(k, j) for k in _numbers(below[i] & undecided[j])]
        distance = self.apart[i][j]
        return self._start_from(state, j, state.lowest[i] + distance, raised) and self._start_until(
            state, i, state.highest[j] - distance, lowered
        )

    def _start_from(self, state: _State, i: int, start: int, raised: set[int]) -> bool:
        if start > state.lowest[i]:
            state.lowest[i] = start = -(-start // self.aligns[i]) * self.aligns[i]
            raised.add(i)
            return start <= state.highest[i]
        return True

    def _start_until(self, state: _State, i: int, start: int, lowered: set[int]) -> bool:
        if start < state.highest[i]:
            state.highest[i] = start = start // self.aligns[i] * self.aligns[i]
            lowered.add(i)
            return start >= state.lowest[i]
        return True

    def _raise(self, state: _State, i: int, decided: list[tuple[int, int]], raised: set[int]) -> bool:
        """What follows of the lowest start of a buffer."""
        start, apart, highest = state.lowest[i], self.apart[i], state.highest
        decided += [(j, i) for j in _numbers(state.undecided[i]) if start + apart[j] > highest[j]]
        return all(self._start_from(state, j, start + apart[j], raised) for j in _numbers(state.above[i]))

    def _lower(self, state: _State, i: int, decided: list[tuple[int, int]], lowered: set[int]) -> bool:
        """What follows of the highest start of a buffer."""
        start, apart, lowest = state.highest[i], self.apart, state.lowest
        decided += [(i, j) for j in _numbers(state.undecided[i]) if lowest[j] + apart[j][i] > start]
        return all(self._start_until(state, j, start - apart[j][i], lowered) for j in _numbers(state.below[i]))

    def _chains_fit(self, state: _State, changed: int, budget: Budget) -> bool:
        """Whether those that are alive together, of which one is `changed`, fit above the lowest start of any of them,
        and below the highest end."""
        lowest, highest, below, above = state.lowest, state.highest, state.below, state.above
        for members, heights, spare, savings in self.chains:
            if not members & changed:
                continue
            budget.left -= len(heights)
            reaching: dict[int, int] = {}  # what each saves that reaches into another, and into which another does
            reached: dict[int, int] = {}
            for saved, i, j in savings:
                if i in reaching and j in reached:
                    continue
                if below[i] >> j & 1 or above[i] & below[j] & members:
                    continue  # it doesn't lie next above it
                reaching.setdefault(i, saved)
                reached.setdefault(j, saved)
            room = spare + self.most
            total = saved_below = saved_above = 0
            rising = sorted([(lowest[i], i, height) for i, height in heights], reverse=True)
            for n, (start, i, height) in enumerate(rising, 1):
                total += height
                saved_below += reaching.get(i, 0)
                saved_above += reached.get(i, 0)
                # what lies between two of them is one of them: so all that may start there count, or none
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


def _numbers(bits: int) -> list[int]:
    """Those of a bit set, rising."""
    found = []
    while bits:
        bit = bits & -bits
        bits ^= bit
        found.append(bit.bit_length() - 1)
    return found
