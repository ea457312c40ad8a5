"""Which cuts of the operator order to make: groups as edges of a shortest path with two weights.

Nodes are the places between operators of the topological order; an edge (i, j) is the fusion group
of operators i..j-1. It weighs the bytes that are alive while it runs (its rings and scratch, its
inputs and outputs with the best single overlap, the tensors that pass it by) and the instructions that
the cost tables predict. Along a path bytes are maximized and instructions added. Each node keeps the
paths to it that no other one beats in both: labels, as in multi-objective shortest paths (Hansen,
"Bicriterion path problems", 1980). Those at the last node are the Pareto front.

The bytes leave alignment and fragmentation to the planner, so the caller plans what it is interested
in (tinyfuse/schedule/plans/pick_plan.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tinyfuse import limits
from tinyfuse.cost.predict import kernel_instructions, loop_instructions
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.kernels.core.kernel import Context
from tinyfuse.limits import Limit, Reached
from tinyfuse.once import cached_property
from tinyfuse.ops.layers.tiled import Tiled
from tinyfuse.plan import Stage
from tinyfuse.plan.liveness import BEFORE, Liveness
from tinyfuse.plan.places import Places, is_alias
from tinyfuse.plan.rows import RingModes, Stream
from tinyfuse.schedule.groups.in_place import may_lie_over
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.lower import growing_output, may_stack
from tinyfuse.schedule.groups.overlaps import Streamed, buffer_distance
from tinyfuse.schedule.groups.tiling import with_tiles
from tinyfuse.schedule.kernel_choice.select import row_kernel
from tinyfuse.schedule.kernel_choice.stages import StageMemo, make_stages
from tinyfuse.thinning import evenly

#: operators of the groups that are weighed first
_SHORTER = (4, 10)


@dataclass
class Work:
    """Rows that simulations may still compute, of `rows`, and which limits were reached meanwhile."""

    reached: Reached = field(default_factory=Reached)
    rows: Limit = field(default_factory=lambda: limits.GROUP_ROWS)
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.rows.most


@dataclass(frozen=True, eq=False)
class Candidate:
    """A partition of `graph` with its estimated bytes of RAM and predicted instructions, for the kernels
    of `context`; its groups' rings lie as `rings` has it. `reordered`: the graph's order is
    another one than the file's."""

    graph: Graph
    context: Context
    groups: tuple[tuple[Op, ...], ...]
    rings: RingModes
    ram: int
    instructions: float
    reordered: bool = False


@dataclass(eq=False, slots=True)  # by the hundred thousand: frozen ones take three times as long to make
class _Label:
    """A path to a node: its most bytes, its instructions, the bytes of all its groups added up, how
    many these are, how many MACs it takes more than the operators; its tower, where the last group has one; and the
    label it continues, with that one's node and the last group's weight."""

    ram: int
    instructions: float
    bytes: int
    groups: int
    more_macs: int
    tower: _Tower | None
    came_from: tuple[int, _Label, Weight] | None


class Link(NamedTuple):
    """Of a group's bytes, what the best single overlap saves: what it makes begins so many bytes below an input,
    `above`. `below`: the output that does, None where the group's stack does, which leaves nothing there."""

    below: Tensor | None
    above: Tensor
    distance: int
    saved: int


class _Tower(NamedTuple):
    """Buffers of groups that follow one another, each begun below the one before: the lowest, and how many bytes they
    take together."""

    lowest: Tensor
    bytes: int


def pareto_front(
    graph: Graph, context: Context, budget: int, progress: Callable[[str], None] = lambda text: None,
    work: Work | None = None, memo: StageMemo | None = None,
) -> list[Candidate]:  # fmt: skip
    """The partitions into groups of consecutive operators, of at most `budget` bytes, that no other one
    beats in both RAM and instructions; and a few that may turn out better once they are planned. None
    at all where there is none within the budget. `progress` gets progress; `work` is used up (default: of its own);
    `memo` as in make_stages.

    A group that by itself exceeds the budget, and every longer one that begins with it, is left out:
    a group's own bytes only grow with its length.
    """
    weigher = weigher_of(graph, context, memo, work)
    return partitions(weigher, weigh_groups(weigher, budget, progress))


def weigher_of(graph: Graph, context: Context, memo: StageMemo | None = None, work: Work | None = None) -> Weigher:
    """What weighs the groups of a graph's operators in their order."""
    return Weigher(graph, tuple(op for op in graph.ops if not is_alias(op)), context, memo, work)


def partitions(weigher: Weigher, edges: Sequence[Sequence[tuple[int, Weight]]], more_macs: int = 0) -> list[Candidate]:
    """`pareto_front` of the groups that were weighed: per node i, `edges` has (j, weight) of groups ops[i:j]; together
    they may take so many multiply-accumulates more than the graph has."""
    graph, context, ops = weigher.graph, weigher.context, weigher.ops
    labels: list[list[_Label]] = [[_Label(0, 0, 0, 0, 0, None, None)]] + [[] for _ in ops]
    for i in range(len(ops)):
        labels[i] = _worthwhile(labels[i], weigher.work.reached)
        for j, weight in edges[i]:
            for label in labels[i]:
                more = label.more_macs + weight.more_macs
                if more > more_macs:
                    continue
                ram, tower = _on_top(label, weight)
                labels[j].append(
                    _Label(
                        ram, label.instructions + weight.instructions,
                        label.bytes + weight.ram, label.groups + 1, more, tower, (i, label, weight),
                    )
                )  # fmt: skip
    return [_candidate(graph, context, ops, label) for label in _worthwhile(labels[-1], weigher.work.reached)]


def _on_top(label: _Label, weight: Weight) -> tuple[int, _Tower | None]:
    """The most bytes of a label's groups and one more, and the tower then. Two overlaps in a row are one tower: what
    the first group read lies above what it made, and that above what the second makes. Where that is taller than the
    second group without its overlap, it has none."""
    ram, link = weight.ram, weight.link
    ram = label.ram if label.ram > ram else ram  # by the thousand: sooner than by max()
    if link is None:
        return ram, None
    below, above, distance, saved = link
    of_chain = label.tower is not None and label.tower.lowest is above
    tall = (label.tower.bytes if label.tower is not None and of_chain else above.bytes) + distance
    if tall > ram:
        apart = max(ram, weight.ram + saved)
        if apart < tall:
            return apart, None
        ram = tall
    return ram, None if below is None else _Tower(below, max(tall, below.bytes))


def weigh_groups(
    weigher: Weigher, budget: int, progress: Callable[[str], None] = lambda text: None
) -> list[list[tuple[int, Weight]]]:
    """Per node i, (j, weight) of the weigher's groups ops[i:j] within the budget; shorter groups are weighed
    first, as long as there is work left."""
    ops, most = weigher.ops, limits.GROUP_LENGTH.most
    edges: list[list[tuple[int, Weight]]] = [[] for _ in ops]
    open_ends = dict.fromkeys(range(len(ops)), 1)  # node -> the length to weigh next
    for longest in (*(length for length in _SHORTER if length < most), most):
        for i in list(open_ends):
            if i % 16 == 0:
                progress(f"weighing groups of up to {longest} operators: {i} of {len(ops)}")
            while open_ends[i] <= min(longest, len(ops) - i):
                weights = weigher.weigh(i, i + open_ends[i])
                if weights is None or (weights and min(weight.own for weight in weights) > budget):
                    del open_ends[i]
                    break
                edges[i] += [(i + open_ends[i], weight) for weight in weights if weight.ram <= budget]
                open_ends[i] += 1
    if any(i + length <= len(ops) and weigher.may_go_on(i, i + length) for i, length in open_ends.items()):
        weigher.work.reached.note(limits.GROUP_LENGTH)
    return edges


def _worthwhile(labels: list[_Label], reached: Reached) -> list[_Label]:
    """The labels that no other one equals or beats in bytes, instructions and MACs; not more than
    limits.PARTITIONS: beyond, the ends stay and what lies evenly between them. And of all with the least
    bytes the one with the fewest bytes over all groups, in the most groups: where the estimates are
    equal, it is the most likely to be placed without gaps."""
    if not labels:
        return []
    kept: list[_Label] = []
    least: dict[int, float] = {}  # the fewest instructions of the kept ones with so many more MACs
    for label in sorted(labels, key=lambda label: (label.ram, label.instructions, label.more_macs, label.bytes)):
        limit = label.instructions + 0.5
        if not any(least[more] <= limit for more in least if more <= label.more_macs):
            least[label.more_macs] = label.instructions
            kept.append(label)
    if len(kept) > limits.PARTITIONS.most:
        reached.note(limits.PARTITIONS)
        kept = evenly(kept, limits.PARTITIONS.most)
    least_ram = min(labels, key=lambda label: (label.ram, label.bytes, -label.groups))
    return kept if least_ram in kept else [*kept, least_ram]


def _candidate(graph: Graph, context: Context, ops: tuple[Op, ...], label: _Label) -> Candidate:
    groups, weights, end, at = [], [], len(ops), label
    tiled: list[Op] = []
    while at.came_from is not None:
        start, at, weight = at.came_from
        groups.append(weight.ops or ops[start:end])
        tiled += [op for op in weight.ops if isinstance(op.attributes, Tiled)]
        weights.append(weight)
        end = start
    numbered = list(enumerate(reversed(weights)))
    rings = RingModes(
        frozenset(index for index, weight in numbered if not weight.slides),
        frozenset(index for index, weight in numbered if weight.stacked),
        frozenset(index for index, weight in numbered if weight.resident_output),
    )
    graph = with_tiles(graph, tiled, label.more_macs)
    return Candidate(graph, context, tuple(reversed(groups)), rings, label.ram, label.instructions)


class Weight(NamedTuple):
    """Of a group: all bytes alive while it runs, those of its inner buffers, and its instructions;
    `slides`: with rings that slide; `stacked`: in a stack, `resident_output`: on an output. Where some of its operators
    are computed in tiles, its operators with these in their place, and the MACs that this takes more. `link`: the
    overlap that is counted on."""

    ram: int
    own: int
    instructions: float
    slides: bool
    ops: tuple[Op, ...] = ()
    more_macs: int = 0
    stacked: bool = False
    resident_output: bool = False
    link: Link | None = None


class Weigher:
    """Bytes alive while a group of consecutive operators runs, and its predicted instructions. `ops`: those
    of the graph that are no aliases, in its order; `memo` as in make_stages."""

    def __init__(
        self, graph: Graph, ops: tuple[Op, ...], context: Context, memo: StageMemo | None = None,
        work: Work | None = None,
    ):  # fmt: skip
        self.graph, self.ops, self.context = graph, ops, context
        self.legality = Legality(graph, context)
        self.memo: StageMemo = {} if memo is None else memo
        self.costs: dict[Stage, float] = {}  # of kernels alone, without the loop
        self.weights: dict[tuple[int, int], tuple[Weight, ...]] = {}
        self.work = Work() if work is None else work

    @cached_property
    def places(self) -> Places:
        return Places(op for op in self.graph.ops if is_alias(op))

    @cached_property
    def live(self) -> Liveness:
        return Liveness(self.graph, [(op,) for op in self.ops], self.places)

    def weigh(self, i: int, j: int) -> tuple[Weight, ...] | None:
        """The weights of the group ops[i:j]: with rings that stay and, where that takes less RAM, with
        rings that slide, in a stack, and in one on an output. Nothing where only longer ones may be a group, None where
        no longer one is either, or where the work is used up."""
        if (i, j) not in self.weights:
            if j - i > 1 and self.work.left < 0:
                if self.may_go_on(i, j):
                    self.work.reached.note(self.work.rows)
                return None
            refusal = self.legality.refusal(self.ops[i:j])
            if refusal and refusal.final:
                return None
            self.weights[i, j] = () if refusal else tuple(self._weigh(i, j))
        return self.weights[i, j]

    def may_go_on(self, i: int, j: int) -> bool:
        """Whether ops[i:j], or a longer one, may be a group."""
        refusal = self.legality.refusal(self.ops[i:j])
        return refusal is None or not refusal.final

    def _weigh(self, i: int, j: int) -> Iterator[Weight]:
        yield from self._weights(i, j, self.ops[i:j])

    def weights_of(self, i: int, j: int, ops: tuple[Op, ...], more_macs: int) -> list[Weight]:
        """The weights of the group ops[i:j] where `ops` compute some of it in tiles, and take more MACs for it."""
        return [weight._replace(ops=ops, more_macs=more_macs) for weight in self._weights(i, j, ops)]

    def row_scratch(self, op: Op) -> int | None:
        """Bytes of scratch of the kernel that computes rows of an operator from rings; None where none does."""
        kernel = row_kernel(op, self.context, True)
        return None if kernel is None else kernel.scratch(op, self.context)

    def _weights(self, i: int, j: int, ops: tuple[Op, ...]) -> Iterator[Weight]:
        """The weights of the group ops[i:j], for whose operators `ops` stand."""
        stages, kept = self._stages(i, j, ops)
        stream = Stream(stages, kept) if stages[0].by_row else None
        self.work.left -= stream.events if stream else 1
        around, link = self._around(i, j, stages, stream, kept)
        own = stream.inner_bytes if stream else stages[0].scratch_bytes
        yield Weight(around + own, own, self._instructions(stages, stream), False, link=link)
        if stream and self.context.optimize != "speed":
            sliding = stream.with_slides()
            if sliding.sliding and sliding.inner_bytes < own:
                own = sliding.inner_bytes
                yield Weight(around + own, own, self._instructions(stages, sliding), True, link=link)
        if stream and may_stack(stages, self.context):
            stacked = stream.stacked()
            if stacked.inner_bytes < own:
                own = stacked.inner_bytes
                yield Weight(around + own, own, self._instructions(stages, stacked), True, stacked=True, link=link)
            begun = {tensor for tensor in kept if self.places.root(tensor) is tensor and self.live.first(tensor) >= i}
            resident_output = growing_output(stages, begun)
            if resident_output is not None and stacked.stack is not None:
                grown = stream.stacked(resident_output)
                ram, link = self._with_resident_output(i, j, grown, resident_output, kept)
                if ram < around + own:
                    instructions = self._instructions(stages, grown)
                    yield Weight(
                        ram, grown.inner_bytes, instructions, True, stacked=True, resident_output=True, link=link
                    )

    def _instructions(self, stages: tuple[Stage, ...], stream: Stream | None) -> float:
        for stage in stages:
            if stage not in self.costs:
                self.costs[stage] = kernel_instructions(stage, self.context)
        loops = loop_instructions(stages, stream, self.context)
        return sum(self.costs[stage] + loop for stage, loop in zip(stages, loops, strict=True))

    def _stages(self, i: int, j: int, ops: tuple[Op, ...] = ()) -> tuple[tuple[Stage, ...], frozenset[Tensor]]:
        """The stages of the group ops[i:j], for whose operators `ops` stand, and what it writes whole."""
        whole = self.ops[i:j]
        return make_stages(ops or whole, self.context, self.memo), self.legality.leaving(whole)

    def _around(
        self, i: int, j: int, stages: tuple[Stage, ...], stream: Streamed | None, kept: frozenset[Tensor]
    ) -> tuple[int, Link | None]:
        """Bytes of the whole tensors alive while ops[i:j] run, less what the best single overlap saves; and that."""
        ops = self.ops[i:j]
        made = {t for op in ops for t in op.outputs}
        inputs = self._by_root(t for op in ops for t in op.activations if t not in made)
        outputs = self._by_root(kept)
        by = sum(
            root.bytes
            for root in self.live.passing[i]
            if self.live.last(root) >= j and root not in inputs and root not in outputs
        )
        best: Link | None = None
        for source in inputs:
            for output in outputs:
                if self.live.last(source) < j and i <= self.live.first(output):
                    if self._in_place(i, j, stream, inputs[source], output):
                        distance = 0
                    else:
                        distance = buffer_distance(stages, stream, inputs[source], outputs[output])
                        distance = min(distance, output.bytes)
                    saved = source.bytes + output.bytes - max(distance + source.bytes, output.bytes)
                    if saved > (best.saved if best else 0):
                        best = Link(output, source, distance, saved)
        return sum(root.bytes for root in {**inputs, **outputs}) - (best.saved if best else 0) + by, best

    def _in_place(
        self, i: int, j: int, stream: Streamed | None, sources: list[tuple[Tensor, int]], output: Tensor
    ) -> bool:
        """Whether an output of ops[i:j] will lie where an input lay (in_place.py)."""
        source, _ = sources[0]
        root = self.places.root(source)
        if stream is None or len(sources) > 1 or source.bytes != root.bytes:
            return False
        first = i == 0 and self.live.first(root) == BEFORE
        return may_lie_over(source, output, first, j == len(self.ops)) and stream.in_place(source, output)

    def _with_resident_output(
        self, i: int, j: int, stream: Stream, resident_output: Tensor, kept: frozenset[Tensor]
    ) -> tuple[int, Link | None]:
        """Bytes of all that is alive while ops[i:j] run, of which one output is the lowest in the stack: that less what
        the best single overlap with an input saves; and that."""
        ops = self.ops[i:j]
        made = {t for op in ops for t in op.outputs}
        inputs = self._by_root(t for op in ops for t in op.activations if t not in made)
        alive = {root for root in self.live.passing[i] if self.live.last(root) >= j}
        alive |= {*inputs, *self._by_root(kept)} - {resident_output}
        whole = sum(root.bytes for root in alive)
        apart, best = stream.inner_bytes + whole, None
        for root, tensors in inputs.items():
            if self.live.last(root) < j and len(tensors) == 1:
                ((source, _),) = tensors
                beside = stream.most_beside(source)
                saved = stream.inner_bytes + source.bytes - beside
                if saved > (best.saved if best else 0):
                    best = Link(None, root, beside - root.bytes, saved)
        return apart - (best.saved if best else 0), best

    def _by_root(self, tensors: Iterable[Tensor]) -> dict[Tensor, list[tuple[Tensor, int]]]:
        """Per root, the tensors in it with their offsets."""
        found: dict[Tensor, list[tuple[Tensor, int]]] = {}
        for tensor in dict.fromkeys(tensors):
            place = self.places.of(tensor)
            found.setdefault(place.root, []).append((tensor, place.offset))
        return found
