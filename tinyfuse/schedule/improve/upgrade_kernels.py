"""Strategy: where a plan has kernels with the least scratch, gives operators their usual ones if there is room."""

from __future__ import annotations

from tinyfuse import limits
from tinyfuse.cost.predict import kernel_instructions, plan_instructions, ring_modes
from tinyfuse.kernels.core.context import with_objective
from tinyfuse.plan import Plan, Stage
from tinyfuse.schedule.kernel_choice.stages import make_stages
from tinyfuse.schedule.plans.build import Builder


def upgrade_kernels(plan: Plan, builder: Builder) -> Plan:
    """Faster plan that takes no more RAM, made with usual kernels in place of those with less scratch; the same plan if
    there is none.

    Operators whose scratch would be no larger than that of another one in their group are tried first, because a
    group's operators share scratch; then all other operators, most instructions saved first.
    """
    if not plan.context.min_scratch:
        return plan
    usual = with_objective(plan.context, min_scratch=False)
    spared: dict[int, list[Stage]] = {}  # by group: the former stages of operators that now have another kernel or form
    gains: dict[Stage, float] = {}
    for group in plan.groups:
        both = list(zip(make_stages(group.ops, usual, builder.memo), group.stages, strict=True))
        spared[group.index] = [other for other, stage in both if other.scratch_bytes != stage.scratch_bytes]
        gains |= {
            other: kernel_instructions(stage, plan.context) - kernel_instructions(other, usual) for other, stage in both
        }
    hidden: frozenset[str] = frozenset()
    for group in plan.groups:
        most = max(stage.scratch_bytes for stage in group.stages)
        hidden = hidden.union(*(_names(stage) for stage in spared[group.index] if stage.scratch_bytes <= most))
    plan = _with(plan, hidden, builder)
    every = sorted((stage for stages in spared.values() for stage in stages), key=lambda stage: -gains[stage])
    left = [stage for stage in every if not _names(stage) <= plan.context.allow_scratch_for]
    if len(left) > limits.UPGRADED.most:
        builder.reached.note(limits.UPGRADED)
    for stage in left[: limits.UPGRADED.most]:
        plan = _with(plan, plan.context.allow_scratch_for | _names(stage), builder)
    return plan


def _names(stage: Stage) -> frozenset[str]:
    return frozenset(tensor.name for tensor in stage.op.outputs)


def _with(plan: Plan, allow_scratch_for: frozenset[str], builder: Builder) -> Plan:
    """Plan with usual kernels for these operators if it takes no more RAM and is faster; else the same plan."""
    if allow_scratch_for == plan.context.allow_scratch_for:
        return plan
    found = builder.instead(plan, with_objective(plan.context, allow_scratch_for=allow_scratch_for), ring_modes(plan))
    return plan if found is None or plan_instructions(found) >= plan_instructions(plan) else found
