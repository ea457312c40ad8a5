"""Estimates row loops from shapes: rings, overlaps, and bytes alive around them, but not the cost of calls.

The ring of a tensor with one reader holds the rows of that reader's window. With several readers, it also holds the
rows by which one reader is ahead of another, computed from their windows. Windows continue as if images had no borders,
and no ring is in a stack. The only properties of kernels that matter here are rows per call and access order
(`Manner`). The kernels of different objectives mostly agree in both, so that they share loops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tinyfuse.ir import Graph, Tensor
from tinyfuse.kernels.core.kernel import AccessOrder, Kernel
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.plan.liveness import BEFORE, Liveness
from tinyfuse.plan.places import Places, is_alias
from tinyfuse.plan.rows import free_bytes, height, held_bytes, row_bytes
from tinyfuse.schedule.groups.in_place import may_lie_over
from tinyfuse.schedule.groups.overlaps import whole_call_distance
from tinyfuse.schedule.groups.search import Link

#: the two events of a loop that are estimated: the group's last operator makes its first row, and its last row
_FIRST, _LAST = 0, 1
_EVENTS = _FIRST, _LAST


class Use(NamedTuple):
    """Use of a tensor: number of the operator, index of its input, and window."""

    op: int
    input: int
    window: RowWindow


class Where(NamedTuple):
    """Position of a tensor: offset in its root, and first and last step of that."""

    root: Tensor
    offset: int
    first: int
    last: int


class _Ring(NamedTuple):
    """Rows in a ring: at most (while its maker or a reader runs), while operators downstream of its readers run, and
    while operators upstream of its maker run."""

    most: int = 0
    downstream: int = 0
    upstream: int = 0


_NO_RING = _Ring()


class RingBytes(NamedTuple):
    """Bytes of all rings of a loop.

    held        operator -> most bytes while it runs, less `downstream`.
    downstream  sum over all rings, each while operators downstream of its readers run.
    upstream    sum over all rings, each while operators upstream of its maker run.
    looks       number of checks for used-up rows, if rings slide.
    moved       bytes moved, if rings slide.
    """

    held: Mapping[int, int]
    downstream: int = 0
    upstream: int = 0
    looks: int = 0
    moved: int = 0

    def with_one_more(
        self, maker: int, readers: Iterable[int], ring: _Ring, row: int, looks: int, moved: int
    ) -> RingBytes:
        """Ring bytes with the ring of one more operator before the first one, whose rows have `row` bytes."""
        rise, held = (ring.most - ring.downstream) * row, {**self.held}
        for reader in readers:
            held[reader] += rise
        held[maker] = self.upstream - self.downstream + rise
        downstream, upstream = self.downstream + ring.downstream * row, self.upstream + ring.upstream * row
        return RingBytes(held, downstream, upstream, self.looks + looks, self.moved + moved)


@dataclass(frozen=True, eq=False)
class Manner:
    """Manner in which a kernel computes an operator, by rows or whole; equal ones are shared."""

    rows_a_call: int
    accumulates: bool
    orders: Mapping[int, AccessOrder]


class Shapes:
    """Shapes and lifetimes of a graph's tensors if each operator runs alone, in the graph's order.

    ops          operators that are no aliases
    alive        before each of them and at the end: (first step, bytes) of the roots that are needed from then on
    alive_bytes  sums of these bytes
    """

    def __init__(self, graph: Graph):
        self.ops = tuple(op for op in graph.ops if not is_alias(op))
        self.places = Places(op for op in graph.ops if is_alias(op))
        self.live = Liveness(graph, [(op,) for op in self.ops], self.places)
        self._manners: dict[tuple[int, Kernel, bool], Manner] = {}
        self._alike: dict[Hashable, Manner] = {}
        self._loops: dict[tuple[int, Manner, bool, bool], EstimatedLoop] = {}
        self._where: dict[Tensor, Where] = {}
        self._uses: dict[Tensor, list[Use]] = {}
        for number, op in enumerate(self.ops):
            for i, tensor in enumerate(op.inputs):
                if tensor is not None and not tensor.is_constant:
                    window = FAMILIES[op.kind].row_window(op, i)
                    if window is not None:
                        self._uses.setdefault(tensor, []).append(Use(number, i, window))
        self.alive: list[list[tuple[int, int]]] = [[] for _ in range(len(self.ops) + 1)]
        for root in self.live.uses:
            first = self.live.first(root)
            for step in range(first + 1, min(self.live.last(root), len(self.ops)) + 1):
                self.alive[step].append((first, root.bytes))
        self.alive_bytes = [sum(size for _, size in alive) for alive in self.alive]

    def uses(self, tensor: Tensor, begin: int, end: int) -> list[Use]:
        """Row-wise uses of a tensor in ops[begin:end]."""
        return [use for use in self._uses.get(tensor, ()) if begin <= use.op < end]

    def where(self, tensor: Tensor) -> Where:
        """Position of an activation."""
        found = self._where.get(tensor)
        if found is None:
            place, live = self.places.of(tensor), self.live
            found = Where(place.root, place.offset, live.first(place.root), live.last(place.root))
            self._where[tensor] = found
        return found

    def manner(self, number: int, kernel: Kernel, by_row: bool) -> Manner:
        """Manner in which a kernel computes operator `number`, by rows or whole."""
        found = self._manners.get((number, kernel, by_row))
        if found is None:
            op, of_several = self.ops[number], by_row and kernel.rows_a_call > 1
            orders = {} if of_several else kernel.row_access_orders(op) if by_row else kernel.access_orders(op)
            alike = kernel.rows_a_call, kernel.accumulates, tuple(orders.items())
            found = self._alike.get(alike)
            if found is None:
                found = self._alike[alike] = Manner(kernel.rows_a_call, kernel.accumulates, orders)
            self._manners[number, kernel, by_row] = found
        return found

    def loop(self, number: int, manner: Manner, by_row: bool, slides: bool) -> EstimatedLoop:
        """Loop of one operator. `slides`: rings may slide once other operators are added before it."""
        key = number, manner, by_row, slides
        if key not in self._loops:
            op = self.ops[number]
            self._loops[key] = EstimatedLoop(
                self, number, number + 1, slides, by_row, {number: manner},
                {number: (1, height(op.outputs[0]) if op.outputs and op.output.is_image else 1)},
                dict.fromkeys(op.activations), tuple((tensor, number) for tensor in op.outputs),
                (RingBytes({number: 0}),) * 2,
            )  # fmt: skip
        return self._loops[key]


@dataclass(eq=False)
class EstimatedLoop:
    """Row loop of ops[begin:end], which can grow at its front.

    slides   rings may slide.
    by_row   False: one operator, computed by a whole call.
    manners  operator -> manner in which it is computed.
    made     operator -> rows of its output when the last operator makes its first row, and its last.
    reads    tensors that it reads and does not make.
    kept     tensors that it makes whole, each with the number of its operator.
    rings    (bytes if rings wrap around, bytes if rings slide where they may); twice the same object if none slides.
    """

    shapes: Shapes
    begin: int
    end: int
    slides: bool
    by_row: bool
    manners: Mapping[int, Manner]
    made: Mapping[int, tuple[int, int]]
    reads: Mapping[Tensor, None]
    kept: tuple[tuple[Tensor, int], ...]
    rings: tuple[RingBytes, RingBytes]
    _longer: dict[tuple[Manner, ...], EstimatedLoop] = field(default_factory=dict)

    @cached_property
    def next_uses(self) -> list[Use]:
        """Uses of the output of the operator in front of the loop."""
        return self.shapes.uses(self.shapes.ops[self.begin - 1].output, self.begin, self.end)

    def with_one_more(self, manner: Manner, readers: Mapping[int, Manner]) -> EstimatedLoop:
        """Loop with the operator before its first one added, computed in this manner. `readers` has new manners for the
        readers of that operator's output, because they then read a ring."""
        key = manner, *readers.values()
        found = self._longer.get(key)
        if found is None:
            found = self._longer[key] = self._with_one_more(manner, readers)
        return found

    def _with_one_more(self, manner: Manner, readers: Mapping[int, Manner]) -> EstimatedLoop:
        begin, end, shapes, uses = self.begin - 1, self.end, self.shapes, self.next_uses
        op = shapes.ops[begin]
        output, where = op.output, shapes.where(op.output)
        made, manners = (1, height(output)), {**self.manners, **readers, begin: manner}
        if uses:
            made = _rows_after(uses, self.made, _FIRST), _rows_after(uses, self.made, _LAST)
        is_kept = not uses or where.root is not output or where.last >= end
        reads = dict(self.reads)
        reads.pop(output, None)
        reads |= dict.fromkeys(op.activations)
        ring = slid = _NO_RING
        if not is_kept:
            ring, slid = self._ring(manner, made[_LAST], uses, manners)
        (still, sliding), row, looks, moved = self.rings, row_bytes(output), 0, 0
        if ring != slid:
            calls = [(-(-height(shapes.ops[use.op].output) // manners[use.op].rows_a_call), use.window) for use in uses]
            looks = sum(times for times, _ in calls)
            # nothing is moved before the first row is used up
            moves = sum(times - -(-(window.pad_top + 1) // max(1, window.stride)) for times, window in calls)
            moved = max(0, moves) * slid.downstream * row
        longer = still.with_one_more(begin, readers, ring, row, 0, 0)
        alike = still is sliding and ring == slid
        return EstimatedLoop(
            shapes, begin, end, self.slides, True, manners, {**self.made, begin: made}, reads,
            (*self.kept, (output, begin)) if is_kept else self.kept,
            (longer, longer if alike else sliding.with_one_more(begin, readers, slid, row, looks, moved)),
        )  # fmt: skip

    def _ring(
        self, maker: Manner, made: int, uses: Sequence[Use], manners: Mapping[int, Manner]
    ) -> tuple[_Ring, _Ring]:
        """Ring of the output of the operator before the loop: (if it wraps around, if it slides where it may). `made`
        rows exist at the last event."""
        tall = height(self.shapes.ops[self.begin - 1].output)
        if len(uses) == 1:
            window, together = uses[0].window, manners[uses[0].op].rows_a_call
            span = max(_end(window, y + together - 1) - _start(window, y) for y in (0, 1))
            step = _start(window, together) - _start(window, 0)
        else:  # rows wait for the last reader that needs them
            span = made - min(_start(use.window, self.made[use.op][_LAST] - 1) for use in uses)
            step = 0
        most = max(1, min(span + maker.rows_a_call - 1, tall))
        if maker.accumulates:
            return (_Ring(most, most, most),) * 2
        alive = most if most > 1 or len(uses) > 1 else 0
        still, sliding = _Ring(most, alive, alive), _Ring(most, max(0, min(span - step, most)), most - 1)
        slides = self.slides and max(sliding.downstream, sliding.upstream) < most > 1
        return still, sliding if slides and not any(use.window.leaves_rows_out for use in uses) else still

    @cached_property
    def around(self) -> tuple[int, Link | None]:
        """Bytes that are alive during the loop in addition to rings and scratch, less those that the best overlap
        saves; and that overlap."""
        link = self._link()
        return self._alive - (link.saved if link else 0), link

    @cached_property
    def least_around(self) -> int:
        """Lower bound on `around`: no overlap saves more than the smaller of two buffers."""
        sizes = [[where.root.bytes for _, where in ends] for ends in (self._ending, self._begun)]
        return self._alive - min(max(of_one_end, default=0) for of_one_end in sizes)

    @cached_property
    def _alive(self) -> int:
        """Bytes alive while the loop runs, besides rings and scratch; no overlap is assumed."""
        shapes = self.shapes
        passing = sum(size for first, size in shapes.alive[self.end] if first < self.begin)
        unread = sum(
            tensor.bytes for tensor in shapes.ops[self.end - 1].outputs if shapes.where(tensor).last < self.end
        )
        return shapes.alive_bytes[self.begin] + shapes.alive_bytes[self.end] - passing + unread

    @cached_property
    def _ending(self) -> list[tuple[Tensor, Where]]:
        """Tensors that are read for the last time, with their positions."""
        found = [(source, self.shapes.where(source)) for source in self.reads]
        return [(source, above) for source, above in found if above.last < self.end]

    @cached_property
    def _begun(self) -> list[tuple[tuple[Tensor, int], Where]]:
        """Tensors made in buffers that hold nothing before, with their operator's number and position."""
        found = [(made, self.shapes.where(made[0])) for made in self.kept]
        return [(made, below) for made, below in found if below.first >= self.begin and below.last >= self.end]

    def _link(self) -> Link | None:
        """Best single overlap of an input that ends here with an output that begins here."""
        best, most_saved = None, 0
        for source, above in self._ending:
            for (output, writer), below in self._begun:
                if min(above.root.bytes, below.root.bytes) <= most_saved:
                    continue
                distance = self._distance(source, output, writer) + below.offset - above.offset
                distance = min(max(0, distance), below.root.bytes)
                taken = max(distance + above.root.bytes, below.root.bytes)
                saved = above.root.bytes + below.root.bytes - taken
                if saved > most_saved:
                    best, most_saved = Link(below.root, above.root, distance, saved), saved
        return best

    def _distance(self, source: Tensor, output: Tensor, writer: int) -> int:
        """Bytes that an output must start below a source; estimates overlaps.overlap_distance."""
        op, manner = self.shapes.ops[writer], self.manners[writer]
        if not self.by_row:
            return whole_call_distance(op, manner.orders, source, output)
        uses, order = self.shapes.uses(source, self.begin, self.end), None
        if manner.orders:
            own = [use for use in uses if use.op == writer]
            order = manner.orders.get(own[0].input) if len(own) == 1 else None
        tall, read, written = height(source), row_bytes(source), row_bytes(output)
        oldest, distances = [], [0]
        for k in _EVENTS:
            row = tall
            for use in uses:
                # operators in front of the writer have made their rows; a writer with an access order has read its
                # first
                first = _start(use.window, self.made[use.op][k] - (use.op >= writer))
                row = min(row, first + (use.op == writer and order is not None))
            oldest.append(max(0, row))
            distances.append(held_bytes(output, self.made[writer][k]) - free_bytes(source, oldest[k]))
        if self._may_lie_over(source, output) and all(oldest[k] >= self.made[writer][k] for k in _EVENTS):
            return 0
        if oldest[_LAST] >= tall > oldest[_FIRST]:  # all of it is used up before the last row is written
            share = (tall - 1 - oldest[_FIRST]) / max(1, oldest[_LAST] - oldest[_FIRST])
            distances[-1] = int(distances[-2] + (distances[-1] - distances[-2]) * share)
        if order is not None:
            for row in (0, height(output) - 1):
                first = max(0, _start(own[0].window, row))
                if first < tall:
                    distances.append(row * written + order.distance(read, written) - first * read)
        return min(max(distances), output.bytes)

    def _may_lie_over(self, source: Tensor, output: Tensor) -> bool:
        """Tells whether planes may take the place of others (in_place.py)."""
        if source.planes == 1 or output.planes == 1:
            return False
        where = self.shapes.where(source)
        first = self.begin == 0 and where.first == BEFORE
        last = self.end == len(self.shapes.ops)
        return where.root.bytes == source.bytes and may_lie_over(source, output, first, last)


def _rows_after(uses: Sequence[Use], made: Mapping[int, tuple[int, int]], event: int) -> int:
    """Rows of a tensor that exist at an event, as its readers need them."""
    return max(_end(use.window, made[use.op][event] - 1) for use in uses)


def _start(window: RowWindow, y: int) -> int:
    """First row in row y's window; images have no borders here."""
    return (y * window.stride - window.pad_top + window.spread - 1) // window.spread


def _end(window: RowWindow, y: int) -> int:
    """Row after the last one in row y's window."""
    return (y * window.stride - window.pad_top + window.spread - 1 + window.kernel) // window.spread
