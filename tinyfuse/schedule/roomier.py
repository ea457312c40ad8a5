"""Strategy: where kernels of the least scratch are taken, those that have room for more get the usual ones again."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.cost.predict import group_slides, plan_instructions
from tinyfuse.plan import Plan
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.lower import make_stages
from tinyfuse.schedule.variants import Variant

#: plans that are made to see whether an operator may have the usual kernel; each takes up to a second
MOST_TRIALS = 12


def roomier(plan: Plan, builder: Builder) -> Plan:
    """The plan, or a faster one of no more RAM: with the usual kernels for operators whose scratch is then no more than
    that of another one of their group, as one of them runs after the other; then for others, those with the most
    multiply-accumulates first."""
    if not plan.context.lean:
        return plan
    usual = replace(plan.context, lean=False)
    stages = {group.index: make_stages(group.ops, usual, builder.memo) for group in plan.groups}
    hidden: set[str] = set()
    for group in plan.groups:
        most = max(stage.scratch_bytes for stage in group.stages)
        small = [stage.op for stage in stages[group.index] if stage.scratch_bytes <= most]
        hidden |= {tensor.name for op in small for tensor in op.outputs}
    plan = _with(plan, frozenset(hidden), builder)
    every = [stage for group in plan.groups for stage in group.stages]
    for stage in sorted(every, key=lambda stage: -stage.macs)[:MOST_TRIALS]:
        plan = _with(plan, plan.context.roomy | {tensor.name for tensor in stage.op.outputs}, builder)
    return plan


def _with(plan: Plan, roomy: frozenset[str], builder: Builder) -> Plan:
    """The plan with the usual kernels for these operators, if it takes no more RAM and is faster."""
    if roomy == plan.context.roomy:
        return plan
    variant, groups = Variant(plan.graph, replace(plan.context, roomy=roomy)), [group.ops for group in plan.groups]
    fixed = frozenset(group.index for group in plan.groups if not group_slides(plan, group))
    found = builder.plan_within(plan.arena_bytes, variant, groups, fixed)
    return plan if found is None or plan_instructions(found) >= plan_instructions(plan) else found
