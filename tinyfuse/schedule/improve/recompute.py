"""Strategy: runs cheap operators again for later readers if that takes less RAM (rewrite/recompute.py)."""

from __future__ import annotations

from tinyfuse import limits
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress, silent
from tinyfuse.rewrite.recompute import recomputable, recompute
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.pick_plan import is_worth_more_instructions
from tinyfuse.schedule.plans.search_variants import least_ram
from tinyfuse.schedule.variants.variants import Variant


def recompute_operators(plan: Plan, builder: Builder, progress: Progress = silent) -> Plan:
    """Return a plan of less RAM in which operators run again; `plan` itself if no such plan exists."""
    every = recomputable(plan.graph, builder.reached)
    if len(every) > limits.RECOMPUTED.most:
        builder.reached.note(limits.RECOMPUTED)
    for op in every[: limits.RECOMPUTED.most]:
        if op in plan.graph.ops:  # none of its inputs was recomputed meanwhile
            variant = Variant(recompute(plan.graph, op), plan.context)
            found = least_ram(variant, builder, progress)
            if found is not None and is_worth_more_instructions(found, plan):
                plan = found
    return plan
