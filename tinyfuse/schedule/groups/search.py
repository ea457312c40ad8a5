"""Searches the cuts of the operator order: groups are edges of a shortest path with two weights.

Nodes are the places between operators of the topological order; an edge (i, j) is the fusion group of operators i..j-1.
One weight is the bytes alive while it runs: its rings and scratch, its inputs and outputs with the best single overlap,
and tensors that only stay alive meanwhile. The other is the instructions that the cost tables predict. Along a path
bytes are maximized and instructions added. Each node keeps the paths to it that no other beats in both: labels, as in
multi-objective shortest paths (Hansen, "Bicriterion path problems", 1980). Those at the last node are the Pareto front.

Alignment and fragmentation are left to the planner, so the caller plans the candidates that it is interested in
(schedule/plans/pick_plan.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tinyfuse import limits
from tinyfuse.cost.predict import kernel_instructions, loop_instructions
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.limits import Limit, Reached
from tinyfuse.ops.layers.tiled import Tiled
from tinyfuse.plan import Stage
from tinyfuse.plan.liveness import BEFORE, Liveness
from tinyfuse.plan.places import Places, is_alias
from tinyfuse.plan.rows import RingModes, Stream
from tinyfuse.schedule.groups.in_place import may_lie_over
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.lower import growing_output, may_stack
from tinyfuse.schedule.groups.overlaps import Streamed, buffer_distance
from tinyfuse.schedule.groups.tiling import tile_graph
from tinyfuse.schedule.kernel_choice.select import row_kernel
from tinyfuse.schedule.kernel_choice.stages import StageMemo, make_stages
from tinyfuse.thinning import pick_evenly

#: lengths up to which groups are weighed first
_SHORTER = (4, 10)


@dataclass
class Work:
    """Budget of rows that simulations may still compute, from the limit `rows`; and limits reached meanwhile."""

    reached: Reached = field(default_factory=Reached)
    rows: Limit = field(default_factory=lambda: limits.GROUP_ROWS)
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.rows.most


@dataclass(frozen=True, eq=False)
class Candidate:
    """A partition of `graph` with its estimated bytes of RAM and predicted instructions, for the kernels of `context`.

    rings      layout of its groups' rings
    reordered  the graph's order differs from the file's
    """

    graph: Graph
    context: Context
    groups: tuple[tuple[Op, ...], ...]
    rings: RingModes
    ram: int
    instructions: float
    reordered: bool = False


@dataclass(eq=False, slots=True)  # hundreds of thousands are made; frozen ones take three times as long
class _Label:
    """A path to a node.

    ram           most bytes of a group
    instructions  sum over its groups
    bytes         bytes of all groups added up
    groups        number of groups
    more_macs     recomputed MACs, beyond those of the graph
    chain         chain of overlaps that the last group continues; None without one
    came_from     (node, label, weight of the last group) that it extends
    """

    ram: int
    instructions: float
    bytes: int
    groups: int
    more_macs: int
    chain: _OverlapChain | None
    came_from: tuple[int, _Label, Weight] | None


class Link(NamedTuple):
    """Best single overlap of a group: `below` starts `distance` bytes below the input `above`, which saves `saved`
    bytes.

    `below` is an output, or None for the group's stack, which leaves nothing there.
    """

    below: Tensor | None
    above: Tensor
    distance: int
    saved: int


class _OverlapChain(NamedTuple):
    """Chain of buffers of consecutive groups, each starting below the one before: the lowest, and the bytes of all
    together."""

    lowest: Tensor
    bytes: int


def pareto_front(
    graph: Graph, context: Context, budget: int, progress: Callable[[str], None] = lambda text: None,
    work: Work | None = None, memo: StageMemo | None = None,
) -> list[Candidate]:  # fmt: skip
    """Finds the partitions into groups of consecutive operators, of at most `budget` bytes, that no other beats in both
    RAM and instructions, and a few that may turn out better once planned. Empty if none keeps the budget.

    `progress` gets lines of progress, `work` is used up (default: its own), `memo`: see make_stages. A group that
    exceeds the budget by its own bytes is left out with every longer one that begins with it: a group's own bytes only
    grow with its length.
    """
    weigher = weigher_of(graph, context, memo, work)
    return partitions(weigher, weigh_groups(weigher, budget, progress))


def weigher_of(graph: Graph, context: Context, memo: StageMemo | None = None, work: Work | None = None) -> Weigher:
    """Weigher of the groups of a graph's operators, in their order."""
    return Weigher(graph, tuple(op for op in graph.ops if not is_alias(op)), context, memo, work)


def partitions(weigher: Weigher, edges: Sequence[Sequence[tuple[int, Weight]]], more_macs: int = 0) -> list[Candidate]:
    """Pareto front of weighed groups: `edges` has, per node i, (j, weight) of groups ops[i:j].

    Together they may take `more_macs` multiply-accumulates beyond the graph's.
    """
    graph, context, ops = weigher.graph, weigher.context, weigher.ops
    labels: list[list[_Label]] = [[_Label(0, 0, 0, 0, 0, None, None)]] + [[] for _ in ops]
    for i in range(len(ops)):
        labels[i] = _worthwhile(labels[i], weigher.work.reached)
        for j, weight in edges[i]:
            for label in labels[i]:
                more = label.more_macs + weight.more_macs
                if more > more_macs:
                    continue
                ram, chain = _extend_chain(label, weight)
                labels[j].append(
                    _Label(
                        ram, label.instructions + weight.instructions,
                        label.bytes + weight.ram, label.groups + 1, more, chain, (i, label, weight),
                    )
                )  # fmt: skip
    return [_candidate(graph, context, ops, label) for label in _worthwhile(labels[-1], weigher.work.reached)]


def _extend_chain(label: _Label, weight: Weight) -> tuple[int, _OverlapChain | None]:
    """Most bytes of any group of a path after one more group is added, and the chain of overlaps that this group ends.

    Two overlaps in a row form one chain: the first group's input lies above its output, which lies above the second
    group's output. If the chain takes more bytes than the second group without its overlap, that overlap is not used.
    """
    ram, link = max(label.ram, weight.ram), weight.link
    if link is None:
        return ram, None
    below, above, distance, saved = link
    continues = label.chain is not None and label.chain.lowest is above
    stacked_bytes = (label.chain.bytes if label.chain is not None and continues else above.bytes) + distance
    if stacked_bytes > ram:
        apart = max(ram, weight.ram + saved)
        if apart < stacked_bytes:
            return apart, None
        ram = stacked_bytes
    return ram, None if below is None else _OverlapChain(below, max(stacked_bytes, below.bytes))


def weigh_groups(
    weigher: Weigher, budget: int, progress: Callable[[str], None] = lambda text: None
) -> list[list[tuple[int, Weight]]]:
    """Weighs groups: per node i, (j, weight) of the groups ops[i:j] within the budget.

    Shorter groups are weighed first, as long as work is left.
    """
    ops, most = weigher.ops, limits.GROUP_LENGTH.most
    edges: list[list[tuple[int, Weight]]] = [[] for _ in ops]
    open_ends = dict.fromkeys(range(len(ops)), 1)  # node -> length to weigh next
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
    """Keeps the labels that no other equals or beats in bytes, instructions and MACs.

    At most limits.PARTITIONS, evenly spread with both ends. Among all with the fewest bytes, the one with the fewest
    bytes over all groups, in the most groups, is added: of equal estimates it is the most likely to be placed without
    gaps.
    """
    if not labels:
        return []
    kept: list[_Label] = []
    least: dict[int, float] = {}  # MACs beyond the operators' -> fewest instructions of kept labels
    for label in sorted(labels, key=lambda label: (label.ram, label.instructions, label.more_macs, label.bytes)):
        limit = label.instructions + 0.5
        if not any(least[more] <= limit for more in least if more <= label.more_macs):
            least[label.more_macs] = label.instructions
            kept.append(label)
    if len(kept) > limits.PARTITIONS.most:
        reached.note(limits.PARTITIONS)
        kept = pick_evenly(kept, limits.PARTITIONS.most)
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
    graph = tile_graph(graph, tiled, label.more_macs)
    return Candidate(graph, context, tuple(reversed(groups)), rings, label.ram, label.instructions)


class Weight(NamedTuple):
    """Weight of a group.

    ram              all bytes alive while it runs
    own              bytes of its rings and scratch
    instructions     predicted, or estimated cycles
    slides           rings slide
    ops              its operators with TILED ones in place of their parts; empty without tiles
    more_macs        MACs that the tiles add
    stacked          rings lie in a stack
    resident_output  the stack lies on an output
    link             the overlap that `ram` counts on
    """

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
    """Weighs groups of consecutive operators: bytes alive while one runs, and its predicted instructions.

    `ops` are the graph's operators that compute something, in its order; `memo` is the cache of make_stages.
    """

    def __init__(
        self, graph: Graph, ops: tuple[Op, ...], context: Context, memo: StageMemo | None = None,
        work: Work | None = None,
    ):  # fmt: skip
        self.graph, self.ops, self.context = graph, ops, context
        self.legality = Legality(graph, context)
        self.memo: StageMemo = {} if memo is None else memo
        self.costs: dict[Stage, float] = {}  # cost of each kernel, without the row loop
        self.weights: dict[tuple[int, int], tuple[Weight, ...]] = {}
        self.work = Work() if work is None else work

    @cached_property
    def places(self) -> Places:
        return Places(op for op in self.graph.ops if is_alias(op))

    @cached_property
    def live(self) -> Liveness:
        return Liveness(self.graph, [(op,) for op in self.ops], self.places)

    def weigh(self, i: int, j: int) -> tuple[Weight, ...] | None:
        """Weights of the group ops[i:j]: with rings that wrap around and, where these take less RAM, with sliding
        rings, with rings in a stack, and with a stack on top of an output.

        Empty if only longer ones may be a group; None if no longer one may be either, or the work is used up.
        """
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
        """Tells whether ops[i:j], or a longer range from i on, may be a group."""
        refusal = self.legality.refusal(self.ops[i:j])
        return refusal is None or not refusal.final

    def _weigh(self, i: int, j: int) -> Iterator[Weight]:
        yield from self._weights(i, j, self.ops[i:j])

    def weights_of(self, i: int, j: int, ops: tuple[Op, ...], more_macs: int) -> list[Weight]:
        """Weights of the group ops[i:j], in which `ops` contains operators in tiles, with `more_macs` additional
        MACs."""
        return [weight._replace(ops=ops, more_macs=more_macs) for weight in self._weights(i, j, ops)]

    def row_scratch(self, op: Op) -> int | None:
        """Bytes of scratch of the kernel that computes rows of an operator from rings; None without one."""
        kernel = row_kernel(op, self.context, True)
        return None if kernel is None else kernel.scratch(op, self.context)

    def _weights(self, i: int, j: int, ops: tuple[Op, ...]) -> Iterator[Weight]:
        """Weights of the group ops[i:j], whose operators `ops` replace."""
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
        """Stages of the group ops[i:j], whose operators `ops` replace, and the tensors that it writes whole."""
        whole = self.ops[i:j]
        return make_stages(ops or whole, self.context, self.memo), self.legality.leaving(whole)

    def _around(
        self, i: int, j: int, stages: tuple[Stage, ...], stream: Streamed | None, kept: frozenset[Tensor]
    ) -> tuple[int, Link | None]:
        """Bytes of whole tensors alive while ops[i:j] run, less those that the best single overlap saves; and that
        overlap."""
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
        """Tells whether an output of ops[i:j] will take the place of an input (in_place.py)."""
        source, _ = sources[0]
        root = self.places.root(source)
        if stream is None or len(sources) > 1 or source.bytes != root.bytes:
            return False
        first = i == 0 and self.live.first(root) == BEFORE
        return may_lie_over(source, output, first, j == len(self.ops)) and stream.in_place(source, output)

    def _with_resident_output(
        self, i: int, j: int, stream: Stream, resident_output: Tensor, kept: frozenset[Tensor]
    ) -> tuple[int, Link | None]:
        """Bytes alive while ops[i:j] run with an output at the bottom of the stack, less those that the best single
        overlap saves; and that overlap."""
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
        """Tensors in each root, with their offsets."""
        found: dict[Tensor, list[tuple[Tensor, int]]] = {}
        for tensor in dict.fromkeys(tensors):
            place = self.places.of(tensor)
            found.setdefault(place.root, []).append((tensor, place.offset))
        return found
