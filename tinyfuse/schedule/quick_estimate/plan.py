"""Strategy of estimates: groups are weighed quickly and only near the peak (edges.py), in the order of the file, and
only the best estimated partition is built. It serves figures, not code: the result is near the best, seldom the
best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyfuse.ir import Graph
from tinyfuse.kernels.core.context import intern_context, with_objective
from tinyfuse.ops import FAMILIES
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.schedule.groups.partition import partition_each
from tinyfuse.schedule.groups.search import Candidate, partitions
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.pick_plan import SLOWDOWN_FOR_ANY_RAM, Choices, Plans, max_slowdown
from tinyfuse.schedule.quick_estimate.edges import estimated_edges, single_operator_edges
from tinyfuse.schedule.quick_estimate.groups import EstimatedWeights
from tinyfuse.schedule.quick_estimate.loops import Shapes
from tinyfuse.schedule.variants.variants import Variant, Variants, at_once, with_least_scratch


@dataclass(frozen=True)
class _Unplaced:
    """Stand-in for a candidate's plan, with the bytes of its estimate."""

    candidate: Candidate

    @property
    def arena_bytes(self) -> int:
        return self.candidate.ram

    @property
    def ram_bytes(self) -> int:
        return self.arena_bytes + sum(state.bytes for state in self.candidate.graph.states)


def estimate_plan(variants: Variants, builder: Builder) -> Plan:
    """Plan that the options ask for, among quick estimates. CompileError if no variant can be computed."""
    options = builder.options
    found: list[Candidate] = []
    shapes: dict[Graph, Shapes] = {}
    for variant in _variants(variants, options):
        if variant.graph not in shapes:
            shapes[variant.graph] = Shapes(variant.graph)
        found += _candidates(variant, shapes[variant.graph], options, found)
    unplaced = Plans(lambda candidate, _: _Unplaced(candidate))
    chosen = Choices(found, unplaced).choose(options.optimize, options.max_ram).candidate
    return builder.plan(Variant(chosen.graph, chosen.context), chosen.groups, chosen.rings)


def _variants(variants: Variants, options: Options) -> list[Variant]:
    every = variants.for_every_objective()
    if options.optimize == "ram":
        every += with_least_scratch(every)
    if any(FAMILIES[op.kind].source for graph, _ in every for op in graph.ops):
        every = [variant for variant, _ in partition_each(every, "rows")]
    return every


def _candidates(variant: Variant, shapes: Shapes, options: Options, before: Sequence[Candidate]) -> list[Candidate]:
    """Partitions of a variant's operators; none if `before` has much faster ones."""
    (graph, context), balanced = variant, options.optimize == "balanced" and options.max_ram is None
    if context.optimize == "speed" and balanced:
        # only the fewest instructions are needed here, and more rows per call seldom take fewer
        weights = EstimatedWeights(graph, intern_context(with_objective(context, at_once=at_once("balanced"))), shapes)
        return partitions(weights, single_operator_edges(weights))
    weights = EstimatedWeights(graph, context, shapes)
    if not (before and balanced):
        return partitions(weights, estimated_edges(weights))
    fewest = min(candidate.instructions for candidate in before)
    if _is_too_slow(weights, fewest):
        return []
    if context.optimize != "ram":
        return partitions(weights, estimated_edges(weights))
    # these kernels are slow, so their partitions must take less RAM than all candidates that are fast enough
    least = min(candidate.ram for candidate in before if candidate.instructions <= (1 + SLOWDOWN_FOR_ANY_RAM) * fewest)
    return partitions(weights, estimated_edges(weights, least))


def _is_too_slow(weights: EstimatedWeights, fewest: float) -> bool:
    """Tells whether `balanced` would reject all partitions of these operators, given another with `fewest`
    instructions. Single operators take about the fewest."""
    alone = single_operator_edges(weights)
    least = sum(weight.instructions for groups in alone for _, weight in groups)
    return all(alone) and least > (1 + max_slowdown(weights.context)) * fewest
