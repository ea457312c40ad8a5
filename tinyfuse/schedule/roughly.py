"""Strategy: groups are searched for, roughly weighed and only near the peak (rough_edges.py), in the order of the file,
and few partitions are built. For figures, not for code: what is found is near the best, seldom the best."""

from __future__ import annotations

from tinyfuse.ops import FAMILIES
from tinyfuse.plan import Plan
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.choose import Choices, Plans
from tinyfuse.schedule.partition import partition_each
from tinyfuse.schedule.rough_edges import rough_edges
from tinyfuse.schedule.rough_groups import RoughWeights
from tinyfuse.schedule.search import Candidate, partitions
from tinyfuse.schedule.variants import Variants, with_least_scratch

#: partitions placed of those that are estimated to be best
_PLACED = 1


def roughly(variants: Variants, builder: Builder) -> Plan:
    """The plan that the options ask for, of what is found. CompileError where no variant can be computed."""
    options = builder.options
    found: list[Candidate] = []
    every = variants.of_every_objective()
    if options.optimize == "ram":
        every += with_least_scratch(every)
    if any(FAMILIES[op.kind].source for graph, _ in every for op in graph.ops):
        every = [variant for variant, _ in partition_each(every, "rows")]
    for variant in every:
        weights = RoughWeights(*variant)
        found += partitions(weights, rough_edges(weights))
    return Choices(found, Plans(builder.candidate), placed=_PLACED).choose(options.optimize, options.max_ram)
