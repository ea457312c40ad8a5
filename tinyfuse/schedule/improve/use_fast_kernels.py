"""Strategy: uses the kernels of --optimize speed if a plan that saves RAM has room for them."""

from __future__ import annotations

from tinyfuse.cost.predict import plan_instructions, ring_modes
from tinyfuse.kernels.core.context import with_objective
from tinyfuse.plan import Plan
from tinyfuse.schedule.plans.build import Builder


def use_fast_kernels(plan: Plan, builder: Builder) -> Plan:
    """Faster plan of no more RAM with the same groups, all with the kernels of --optimize speed; the same plan if there
    is none."""
    if plan.context.min_scratch or plan.context.speed_alone:
        return plan
    fastest = with_objective(plan.context, optimize="speed", limit_ram=False)
    found = builder.instead(plan, fastest, ring_modes(plan))
    return plan if found is None or plan_instructions(found) >= plan_instructions(plan) else found
