"""Strategy: the kernels that speed alone would take, where a plan that spares RAM has room for them."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.cost.predict import plan_instructions, ring_modes
from tinyfuse.plan import Plan
from tinyfuse.schedule.plans.build import Builder


def use_fast_kernels(plan: Plan, builder: Builder) -> Plan:
    """The plan, or a faster one of no more RAM: the same groups, all with the kernels that are preferred where speed is
    all."""
    if plan.context.min_scratch or plan.context.speed_alone:
        return plan
    fastest = replace(plan.context, optimize="speed", limit_ram=False)
    found = builder.instead(plan, fastest, ring_modes(plan))
    return plan if found is None or plan_instructions(found) >= plan_instructions(plan) else found
