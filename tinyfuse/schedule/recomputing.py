"""Strategy: cheap operators run again for later readers, where that takes less RAM (rewrite/recompute.py)."""

from __future__ import annotations

from tinyfuse.plan import Plan
from tinyfuse.rewrite.recompute import recomputable, recompute
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.progress import Progress, silent
from tinyfuse.schedule.searched import Search
from tinyfuse.schedule.variants import Variant

#: operators that are tried; each takes a search
MOST_RECOMPUTED = 3


def recomputing(plan: Plan, builder: Builder, progress: Progress = silent) -> Plan:
    """The plan, or one of less RAM in which operators run again."""
    for op in recomputable(plan.graph)[:MOST_RECOMPUTED]:
        if op in plan.graph.ops:  # none of its inputs was recomputed meanwhile
            variant = Variant(recompute(plan.graph, op), plan.context)
            found = Search([variant], builder, progress).choices_in_file_order().choose("ram", None)
            plan = min(plan, found, key=lambda plan: plan.arena_bytes)
    return plan
