"""Exact search: buffers enter one by one, and for each pair it is decided which lies below.

Once every conflicting pair has its order, the least offsets are longest paths. So the search decides
pairs, not permutations: buffers that never meet need no order between them, and what was decided
about early steps stays apart from what happens later.

Buffers enter by first step, and leave as soon as everything they conflict with has entered. A state
keeps, for the buffers that are still in, how far each must lie above the arena's bottom, above each
other, and below its top: all that the past has to say to the future. A state that demands no less
than another anywhere can't lead to a better arena and is dropped. This is dynamic programming along
a path decomposition of the conflict graph (Bodlaender, "A partial k-arboretum of graphs with bounded
treewidth", 1998), with the dominance of labels known from shortest paths under resource constraints.
Where the states of one layer become too many, only the most promising go on (beam search); the least
size of the others is then the bound that is proven.

Alignment: a demand "j lies at least d above i" depends on i's offset modulo M, the least common
multiple of all alignments, once a path goes through a buffer that is aligned more strictly. So each
demand is a tuple with one number for every offset that i may have modulo M. With one alignment for
all, that is one number.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import chain
from math import lcm
from operator import le

from tinyfuse.arena.problem import Problem
from tinyfuse.arena.search import Budget, Found

_BOTTOM, _TOP = 0, 1  # places of the arena's ends in a state's matrix; buffers follow

#: demands between two places: least distances, or -1 where there is none
_Demand = tuple[int, ...]

_Decided = tuple[list[list[_Demand]], int, tuple[int, ...], tuple[int, ...]]


class _State:
    """demands[p][q]: how far place q must lie above place p. The rest tells how it came about:
    `item` entered above `under` and below `over`."""

    __slots__ = ("demands", "item", "over", "parent", "under")

    def __init__(
        self,
        demands: list[list[_Demand]],
        parent: _State | None = None,
        item: int = -1,
        under: tuple[int, ...] = (),
        over: tuple[int, ...] = (),
    ):
        self.demands = demands
        self.parent, self.item, self.under, self.over = parent, item, under, over

    @property
    def size(self) -> int:
        return self.demands[_BOTTOM][_TOP][0]


class Sweep:
    """The search over `items` (numbers of problem.buffers) with their alignments; at most `width`
    states of a layer go on."""

    def __init__(self, problem: Problem, items: list[int], align: dict[int, int], width: int):
        self.problem, self.align, self.width = problem, align, width
        chosen = set(items)
        self.partners = {i: [j for j in problem.apart[i] if j in chosen] for i in items}
        buffers = problem.buffers
        self.entries = sorted(items, key=lambda i: (buffers[i].first_step, -buffers[i].bytes, i))
        self.modulus = lcm(*align.values())

    def run(self, limit: int, enough: int, budget: Budget) -> Found:
        """The least arena of fewer than `limit` bytes; any of `enough` bytes will do."""
        entered: set[int] = set()
        inside: list[int] = []
        layer = [_State([[(0,), (enough,)], []])]
        bound = limit
        for item in self.entries:
            least = min(state.size for state in layer)
            layer = [child for state in layer for child in self._enter(state, item, inside, limit, budget)]
            if budget.spent:
                return Found(None, min(bound, least))
            entered.add(item)
            inside.append(item)
            for gone in [i for i in inside if entered.issuperset(self.partners[i])]:
                place = 2 + inside.index(gone)
                inside.remove(gone)
                for state in layer:
                    state.demands = [
                        row[:place] + row[place + 1 :] for row in state.demands[:place] + state.demands[place + 1 :]
                    ]
            layer, missed = _best(layer, self.width)
            bound = bound if missed is None else min(bound, missed)
            if not layer:
                return Found(None, bound)
        return Found(self._order(layer[0]), min(bound, layer[0].size))

    def _enter(self, state: _State, item: int, inside: list[int], limit: int, budget: Budget) -> Iterator[_State]:
        """Every state with `item` above or below each buffer it conflicts with."""
        here, places = len(inside) + 2, {i: p for p, i in enumerate(inside, 2)}
        aligns = [self.modulus, 1, *(self.align[i] for i in inside), self.align[item]]
        nothing = [(-1,) * (self.modulus // align) for align in aligns]
        cost = len(aligns) * (len(aligns) + sum(map(len, nothing)) // 8)  # of one decision
        demands = [[*row, nothing[p]] if row else row for p, row in enumerate(state.demands)]
        demands.append([nothing[here]] * (here + 1))
        size = self.problem.buffers[item].bytes
        demands[_BOTTOM][here] = (0,)
        demands[_BOTTOM][_TOP] = (max(state.size, size),)
        demands[here][_TOP] = (size,) * len(nothing[here])
        met = [i for i in self.partners[item] if i in places]
        # the largest first: it decides most
        met.sort(key=lambda i: (-self.problem.buffers[i].bytes, i))
        # demands, how many pairs are decided, what the buffer lies above, and below
        open_choices: list[_Decided] = [(demands, 0, (), ())]
        while open_choices and not budget.spent:
            demands, decided, under, over = open_choices.pop()
            if demands[_BOTTOM][_TOP][0] >= limit:
                continue
            if decided == len(met):
                yield _State(demands, state, item, under, over)
                continue
            other = met[decided]
            there = places[other]
            for low, high, apart, below, above in (
                (there, here, self.problem.apart[other][item], (*under, other), over),
                (here, there, self.problem.apart[item][other], under, (*over, other)),
            ):
                if demands[high][low][0] >= 0:
                    continue  # decided already by a chain of others
                budget.left -= cost
                changed = [row[:] for row in demands]
                self._demand(changed, aligns, low, high, apart)
                open_choices.append((changed, decided + 1, below, above))

    def _demand(self, demands: list[list[_Demand]], aligns: list[int], low: int, high: int, apart: int) -> None:
        """Adds "high lies at least `apart` above low" and all that follows."""
        step = aligns[high]
        edge = tuple(-(-(residue + apart) // step) * step - residue for residue in range(0, self.modulus, aligns[low]))
        if all(map(le, edge, demands[low][high])):
            return
        after = [(q, demand) for q, demand in enumerate(demands[high]) if demand[0] >= 0]
        for p, row in enumerate(demands):
            if p == low:
                first = edge
            elif p != _TOP and row[low][0] >= 0:
                first = self._chain(row[low], self._along(row[low], aligns[p], aligns[low]), edge)
            else:
                continue
            row[high] = _either(row[high], first)
            along = self._along(first, aligns[p], step)
            for q, demand in after:
                row[q] = _either(row[q], self._chain(first, along, demand))

    def _along(self, first: _Demand, align: int, middle_align: int) -> _Demand | None:
        """Which numbers of another demand a path goes on with: after `first`, from a place aligned to `align` to one
        aligned to `middle_align`. None where there is but one."""
        modulus = self.modulus
        if modulus == middle_align:
            return None
        return tuple([(r + d) % modulus // middle_align for r, d in zip(range(0, modulus, align), first, strict=True)])

    @staticmethod
    def _chain(first: _Demand, along: _Demand | None, second: _Demand) -> _Demand:
        """The demand of a path: `first`, then `second`, of which `along` says what goes on where."""
        if along is None:
            rest = second[0]
            return tuple([d + rest for d in first])
        return tuple([d + second[k] for d, k in zip(first, along, strict=True)])

    def _order(self, state: _State) -> list[int]:
        """Buffers from below to above; placed so, each at its lowest offset, they take no more."""
        below: dict[int, set[int]] = {i: set() for i in self.entries}
        while state.parent is not None:
            below[state.item].update(state.under)
            for other in state.over:
                below[other].add(state.item)
            state = state.parent
        return list(TopologicalSorter(below).static_order())


def _either(one: _Demand, other: _Demand) -> _Demand:
    """The demand that both hold."""
    if len(one) == 1:
        return one if one[0] >= other[0] else other
    return tuple(map(max, one, other))


def _best(layer: list[_State], width: int) -> tuple[list[_State], int | None]:
    """The `width` best states of a layer that no other is as good as everywhere, and the least size
    of the rest, None where there are none."""
    keys: dict[tuple[int, ...], _State] = {}
    for state in layer:
        keys.setdefault(tuple(chain.from_iterable(chain.from_iterable(state.demands))), state)
    # a state that is as good as another everywhere comes before it
    ranked = sorted(keys.items(), key=lambda entry: (entry[1].size, sum(entry[0]), entry[0]))
    kept: list[tuple[tuple[int, ...], _State]] = []
    missed: int | None = None
    for key, state in ranked:
        if any(all(map(le, rival, key)) for rival, _ in kept):
            continue
        if len(kept) == width:
            missed = state.size if missed is None else missed  # they come by size
            continue
        kept.append((key, state))
    return [state for _, state in kept], missed
