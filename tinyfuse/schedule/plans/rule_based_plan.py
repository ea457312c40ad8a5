"""Strategy: uses the groups of the fusion level's rule (partition.py)."""

from __future__ import annotations

from tinyfuse.plan import Plan
from tinyfuse.schedule.groups.partition import partition
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.variants.variants import Variants


def rule_based_plan(variants: Variants, builder: Builder) -> Plan:
    """Plan with the rule's groups; with views, unless it takes fewer bytes without."""
    options = builder.options
    plans = [
        builder.plan(variant, partition(*variant, options.fusion))
        for variant in variants.with_and_without_views(options.optimize)
    ]
    return plans[0] if options.optimize == "speed" else min(plans, key=lambda plan: plan.arena_bytes)
