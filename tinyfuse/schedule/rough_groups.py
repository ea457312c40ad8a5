"""What groups of operators roughly take, from shapes alone: no loop over rows is played.

Where a tensor has one reader, its ring holds the rows of that reader's window and nothing else matters; where it has
several, what also counts is how many rows one of them is ahead of the other, which their windows say. So a group is
weighed by setting an operator in front of one that is known: bytes and instructions are sums. Windows go on as if
images had no borders, and no ring is in a stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinyfuse.cost.predict import call_instructions, loop_factors
from tinyfuse.ir import Graph, Tensor
from tinyfuse.kernels.base import AccessOrder, Context, Kernel
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.base import RowWindow
from tinyfuse.plan.liveness import BEFORE
from tinyfuse.plan.places import is_alias
from tinyfuse.plan.rows import free_bytes, height, held_bytes, row_bytes
from tinyfuse.schedule.in_place import may_lie_over
from tinyfuse.schedule.overlaps import whole_call_distance
from tinyfuse.schedule.search import Link, Weigher, Weight
from tinyfuse.schedule.select import row_kernel, whole_kernel

#: moments that are looked at: when a group's last operator makes its first row, and its last one
_FIRST, _LAST = 0, 1
_MOMENTS = _FIRST, _LAST


@dataclass(frozen=True, slots=True)
class _Use:
    """The operator of that number reads a tensor as that input, by that window."""

    op: int
    input: int
    window: RowWindow


@dataclass(frozen=True, slots=True)
class _Call:
    """How an operator is computed: bytes of scratch, instructions without the loop's, how many calls by rows it is."""

    kernel: Kernel
    by_row: bool
    scratch: int
    instructions: float
    times: int


class _Ring(NamedTuple):
    """Rows that a ring holds: at most, which is while its maker or a reader runs; while operators behind these run; and
    while some in front of its maker do."""

    most: int = 0
    behind: int = 0
    before: int = 0


class RoughWeights(Weigher):
    """What all groups of a graph's operators, in their order, have in common."""

    def __init__(self, graph: Graph, context: Context):
        super().__init__(graph, tuple(op for op in graph.ops if not is_alias(op)), context)
        self.factors = loop_factors(context)
        self._calls: dict[tuple[int, bool | None], _Call] = {}
        self._alone: dict[int, Weight] = {}
        self._uses: dict[Tensor, list[_Use]] = {}
        for number, op in enumerate(self.ops):
            for i, tensor in enumerate(op.inputs):
                if tensor is not None and not tensor.is_constant:
                    window = FAMILIES[op.kind].row_window(op, i)
                    if window is not None:
                        self._uses.setdefault(tensor, []).append(_Use(number, i, window))
        # before each operator, and at the end, bytes that are there and needed from then on
        self.alive = [0] * (len(self.ops) + 1)
        for root in self.live.uses:
            for step in range(self.live.first(root) + 1, min(self.live.last(root), len(self.ops)) + 1):
                self.alive[step] += root.bytes

    def uses(self, tensor: Tensor, begin: int, end: int) -> list[_Use]:
        """Those by rows in ops[begin:end]."""
        return [use for use in self._uses.get(tensor, ()) if begin <= use.op < end]

    def call(self, number: int, rings: bool | None) -> _Call:
        """How an operator is computed, where an input is a ring or none is, or (None) where it stands alone."""
        found = self._calls.get((number, rings))
        if found is None:
            found = self._calls[number, rings] = self._call(number, rings)
        return found

    def _call(self, number: int, rings: bool | None) -> _Call:
        op = self.ops[number]
        alone = whole_kernel(op, self.context) if rings is None else None
        kernel, by_row = alone or (row_kernel(op, self.context, bool(rings)), True)
        assert kernel is not None, "legality knows"
        times = -(-height(op.output) // kernel.rows_a_call) if by_row else 0
        instructions = call_instructions(op, kernel, by_row, self.context)
        return _Call(kernel, by_row, kernel.scratch(op, self.context), instructions, times)

    def of_one(self, number: int) -> Weight:
        """Of an operator alone."""
        if number not in self._alone:
            call = self.call(number, True if self.ops[number].reads_ring else None)
            loop = self.factors.get("groups", 0) + self.factors.get("rows", 0) * call.times
            group = RoughGroup(self, number + 1)
            self._alone[number] = group.weight(call.scratch, call.instructions + loop, False, call)
        return self._alone[number]


class RoughGroup:
    """The group ops[begin:end], which grows at its front.

    made      per operator how many rows of its output there are when the last one makes its first row, and its last
    reads     tensors that it reads and doesn't make
    kept      what it makes whole, each with the number of its operator
    held      per operator the most bytes of rings and scratch while it runs, less `behind`; of rings that stay, and of
              those that slide
    behind    bytes of all rings, each while operators behind its readers run
    before    the same while operators in front of its maker do
    """

    def __init__(self, weights: RoughWeights, end: int):
        self._weights, self.begin, self.end = weights, end - 1, end
        op, last = weights.ops[end - 1], weights.live.last
        self._made = {end - 1: (1, height(op.outputs[0]) if op.outputs and op.output.is_image else 1)}
        self._reads: dict[Tensor, None] = dict.fromkeys(op.activations)
        self._kept: list[tuple[Tensor, int]] = [(tensor, end - 1) for tensor in op.outputs]
        self._unread = sum(tensor.bytes for tensor in op.outputs if last(weights.places.root(tensor)) < end)
        self._through = [root for root in weights.live.uses if weights.live.first(root) < end <= last(root)]
        self._of_rings: set[int] = set()
        self._held: tuple[dict[int, int], dict[int, int]] = {end - 1: 0}, {end - 1: 0}
        self._behind, self._before = [0, 0], [0, 0]
        self._rows = self._checks = self._looks = self._moved = 0
        self._instructions = 0.0

    def begin_with(self, begin: int) -> None:
        """One operator more, in front of the others."""
        weights, self.begin = self._weights, begin
        if begin == self.end - 2:
            self._add_call(self.end - 1)  # which is in a group of several now
        output = weights.ops[begin].output
        uses = weights.uses(output, begin + 1, self.end)
        self._made[begin] = 1, height(output)
        if uses:
            first, last = (max(_end(use.window, self._made[use.op][k] - 1) for use in uses) for k in _MOMENTS)
            self._made[begin] = first, last
        for reader in {use.op for use in uses}:
            self._read_ring(reader)
        if not uses or weights.places.root(output) is not output or weights.live.last(output) >= self.end:
            self._kept.append((output, begin))
            rings = _Ring(), _Ring()
        else:
            rings = self._ring(begin, uses)
        own = row_bytes(output)
        for k, ring in enumerate(rings):
            for reader in {use.op for use in uses}:
                self._held[k][reader] += (ring.most - ring.behind) * own
            self._behind[k] += ring.behind * own
            self._held[k][begin] = self._before[k] + ring.most * own - self._behind[k]
            self._before[k] += ring.before * own
        if rings[0] != rings[1]:
            looks = [(weights.call(use.op, True).times, use.window) for use in uses]
            self._looks += sum(times for times, _ in looks)
            # nothing is moved before the first row is used up
            moves = sum(times - -(-(window.pad_top + 1) // max(1, window.stride)) for times, window in looks)
            self._moved += max(0, moves) * rings[1].behind * own
        self._reads.pop(output, None)
        self._reads |= dict.fromkeys(weights.ops[begin].activations)
        self._add_call(begin)

    def _ring(self, begin: int, uses: Sequence[_Use]) -> tuple[_Ring, _Ring]:
        """The ring of what an operator makes, where it stays, and where it slides if it may."""
        weights, tall = self._weights, height(self._weights.ops[begin].output)
        maker = weights.call(begin, False).kernel
        if len(uses) == 1:
            window, together = uses[0].window, weights.call(uses[0].op, True).kernel.rows_a_call
            span = max(_end(window, y + together - 1) - _start(window, y) for y in (0, 1))
            step = _start(window, together) - _start(window, 0)
        else:  # rows wait for the reader that is the last to need them
            span = self._made[begin][_LAST] - min(_start(use.window, self._made[use.op][_LAST] - 1) for use in uses)
            step = 0
        most = max(1, min(span + maker.rows_a_call - 1, tall))
        if maker.accumulates:
            return (_Ring(most, most, most),) * 2
        alive = most if most > 1 or len(uses) > 1 else 0
        still, sliding = _Ring(most, alive, alive), _Ring(most, max(0, min(span - step, most)), most - 1)
        slides = weights.context.optimize != "speed" and max(sliding.behind, sliding.before) < most > 1
        return still, sliding if slides and not any(use.window.leaves_rows_out for use in uses) else still

    def _add_call(self, number: int) -> None:
        """Takes into account how a member is computed, no input of which is a ring yet."""
        call = self._weights.call(number, False)
        self._instructions += call.instructions
        for held in self._held:
            held[number] += call.scratch
        self._rows += call.times
        self._checks += call.times * (self.end - number)

    def _read_ring(self, number: int) -> None:
        """An input of a member is a ring now."""
        if number not in self._of_rings:
            self._of_rings.add(number)
            call, before = (self._weights.call(number, rings) for rings in (True, False))
            self._instructions += call.instructions - before.instructions
            for held in self._held:
                held[number] += call.scratch - before.scratch

    def weights(self) -> list[Weight]:
        """With rings that stay and, where that takes less, with rings that slide."""
        factors = self._weights.factors
        counts = {"groups": 1, "rows": self._rows, "checks": self._checks}
        instructions = self._instructions + sum(factors.get(name, 0) * count for name, count in counts.items())
        still, sliding = (max(held.values()) + more for held, more in zip(self._held, self._behind, strict=True))
        found = [self.weight(still, instructions, slides=False)]
        if sliding < still:
            instructions += factors.get("slides", 0) * self._looks + factors.get("slid_bytes", 0) * self._moved
            found.append(Weight(found[0].ram - still + sliding, sliding, instructions, True, link=found[0].link))
        return found

    def weight(self, own: int, instructions: float, slides: bool, alone: _Call | None = None) -> Weight:
        """With so many bytes of rings and scratch; `alone`: how its only operator is computed."""
        alive = self._weights.alive
        passing = sum(root.bytes for root in self._through if self._weights.live.first(root) < self.begin)
        link = self._overlap(alone)
        around = alive[self.begin] + alive[self.end] - passing + self._unread
        return Weight(around + own - (link.saved if link else 0), own, instructions, slides, link=link)

    def _overlap(self, alone: _Call | None) -> Link | None:
        """The best single overlap of an input that ends here and an output that begins here."""
        live, places = self._weights.live, self._weights.places
        best: Link | None = None
        for source in self._reads:
            above = places.of(source)
            if live.last(above.root) >= self.end:
                continue
            for output, writer in self._kept:
                below = places.of(output)
                if live.first(below.root) < self.begin or live.last(below.root) < self.end:
                    continue
                distance = self._distance(source, output, writer, alone) + below.offset - above.offset
                distance = min(max(0, distance), below.root.bytes)
                taken = max(distance + above.root.bytes, below.root.bytes)
                saved = above.root.bytes + below.root.bytes - taken
                if saved > (best.saved if best else 0):
                    best = Link(below.root, above.root, distance, saved)
        return best

    def _distance(self, source: Tensor, output: Tensor, writer: int, alone: _Call | None) -> int:
        """How far an output must start below a source, as overlaps.overlap_distance."""
        op = self._weights.ops[writer]
        if alone is not None and not alone.by_row:
            return whole_call_distance(op, alone.kernel, source, output)
        call = alone or self._weights.call(writer, writer in self._of_rings)
        uses = self._weights.uses(source, self.begin, self.end)
        own = [use for use in uses if use.op == writer]
        order: AccessOrder | None = None
        if len(own) == 1 and call.kernel.rows_a_call == 1:
            order = call.kernel.row_access_orders(op).get(own[0].input)
        tall, read, written = height(source), row_bytes(source), row_bytes(output)
        oldest, distances = [], []
        for k in _MOMENTS:
            # operators in front of the writer have made their rows; a writer in its access order has read its first one
            rows = [self._made[use.op][k] - (use.op >= writer) for use in uses]
            firsts = [
                _start(use.window, row) + (use.op == writer and order is not None)
                for use, row in zip(uses, rows, strict=True)
            ]
            oldest.append(max(0, min(firsts, default=tall)))
            distances.append(held_bytes(output, self._made[writer][k]) - free_bytes(source, oldest[k]))
        if self._may_lie_over(source, output) and all(oldest[k] >= self._made[writer][k] for k in _MOMENTS):
            return 0
        if oldest[_LAST] >= tall > oldest[_FIRST]:  # all of it is used up before the last row is written
            share = (tall - 1 - oldest[_FIRST]) / max(1, oldest[_LAST] - oldest[_FIRST])
            distances[_LAST] = int(distances[_FIRST] + (distances[_LAST] - distances[_FIRST]) * share)
        if order is not None:
            for row in (0, height(output) - 1):
                first = max(0, _start(own[0].window, row))
                if first < tall:
                    distances.append(row * written + order.distance(read, written) - first * read)
        return min(max(0, *distances), output.bytes)

    def _may_lie_over(self, source: Tensor, output: Tensor) -> bool:
        """Whether planes may lie where others lay (in_place.py)."""
        live, root = self._weights.live, self._weights.places.root(source)
        first = self.begin == 0 and live.first(root) == BEFORE
        return root.bytes == source.bytes and may_lie_over(source, output, first, self.end == len(self._weights.ops))


def _start(window: RowWindow, y: int) -> int:
    """The first row that row y's window takes; images have no borders here."""
    return (y * window.stride - window.pad_top + window.spread - 1) // window.spread


def _end(window: RowWindow, y: int) -> int:
    """The row after its last one."""
    return (y * window.stride - window.pad_top + window.spread - 1 + window.kernel) // window.spread
