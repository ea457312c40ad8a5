"""Strategy: runs operators in another order than the file's if that saves RAM or time."""

from __future__ import annotations

from tinyfuse.cost.predict import plan_instructions, predicted_total
from tinyfuse.options import Options
from tinyfuse.plan import Plan, Reordering
from tinyfuse.schedule.plans.pick_plan import Choices


def pick_order(choices: Choices[Plan], options: Options) -> tuple[Plan, Reordering | None]:
    """Picks the plan that the options ask for, in the file's order unless another order saves RAM or time. In that
    case, also returns the figures of the file's order for comparison."""
    plan, usual = (some.choose(options.optimize, options.max_ram) for some in (choices, choices.in_file_order()))
    slower = plan_instructions(usual) > plan_instructions(plan) + 0.5
    if plan is usual or (usual.arena_bytes <= plan.arena_bytes and not slower):
        return usual, None
    return plan, Reordering(usual.arena_bytes, predicted_total(usual))
