"""Strategy: layers run again for late readers, where that takes less RAM (rewrite/rematerialize.py), within the
multiply-accumulates of --recompute, which tiles have a share of."""

from __future__ import annotations

from tinyfuse import limits
from tinyfuse.ops import graph_macs
from tinyfuse.plan import Plan
from tinyfuse.rewrite.rematerialize import rematerializations, rematerialize
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.progress import Progress, silent
from tinyfuse.schedule.searched import Search
from tinyfuse.schedule.variants import Variant


def rematerializing(plan: Plan, builder: Builder, progress: Progress = silent) -> Plan:
    """The plan, or one of less RAM in which layers run again: one tensor after the other, as long as that helps."""
    recompute, tried = builder.options.recompute_limit, 0
    if recompute <= 1:
        return plan
    while True:
        most = builder.macs_within(recompute) - graph_macs(plan.graph)
        candidates = rematerializations(plan.graph, most, builder.reached)
        better = None
        for candidate in candidates:
            if tried == limits.REMATERIALIZED.most:
                builder.reached.note(limits.REMATERIALIZED)
                return plan
            tried += 1
            progress("trying what may run again")
            variant = Variant(rematerialize(plan.graph, candidate), plan.context)
            found = Search([variant], builder, progress).choices_in_file_order(recompute).choose("ram", None)
            if found.arena_bytes < plan.arena_bytes:
                better = found
                break
        if better is None:
            return plan
        plan = better
