"""Strategy: groups are searched for, but only near the peak (peaks.py), in the order of the file, and few partitions
are built. For figures, not for code: what is found is near the best, seldom the best."""

from __future__ import annotations

from tinyfuse.plan import Plan
from tinyfuse.plan.places import is_alias
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.choose import Choices, Plans
from tinyfuse.schedule.partition import partition_each
from tinyfuse.schedule.peaks import weigh_at_peaks
from tinyfuse.schedule.search import Candidate, Weigher, partitions
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
    for (graph, context), _ in partition_each(every, "rows"):
        ops = tuple(op for op in graph.ops if not is_alias(op))
        weigher = Weigher(graph, ops, context, builder.memo)
        found += partitions(weigher, weigh_at_peaks(weigher))
    return Choices(found, Plans(builder.candidate), placed=_PLACED).choose(options.optimize, options.max_ram)
