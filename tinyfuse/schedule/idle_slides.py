"""Strategy: rings stay where they are in groups where moving their rows saves nothing."""

from __future__ import annotations

from tinyfuse.cost.predict import group_slides
from tinyfuse.plan import Plan
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.variants import Variant

#: plans that are made to see whether a group's rings must slide; each takes up to a second
MOST_SLIDE_TRIALS = 8


def without_idle_slides(plan: Plan, builder: Builder) -> Plan:
    """The plan, or one of no more RAM in which fewer groups have rings that slide."""
    variant, groups = Variant(plan.graph, plan.context), [group.ops for group in plan.groups]
    fixed = frozenset(group.index for group in plan.groups if not group_slides(plan, group))
    for group in plan.groups[:MOST_SLIDE_TRIALS]:
        if group.index not in fixed:
            tried = fixed | {group.index}
            found = builder.plan_within(plan.arena_bytes, variant, groups, tried)
            if found is not None:
                plan, fixed = found, tried
    return plan
