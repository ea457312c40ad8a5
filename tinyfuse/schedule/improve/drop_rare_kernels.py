"""Strategy: a kernel whose functions few operators call gives way to one that is there anyway, if the code that goes is
worth the instructions that come, for a byte of flash has a price, next to none for speed; and where --max-flash is too
little, others.

Kernels are chosen operator by operator (schedule/kernel_choice/select.py), where what they share costs nothing. So code
is looked at once there is a plan, kernel by kernel, and groups stay as they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tinyfuse.cost.code import code_table, estimated_code_bytes, plan_code
from tinyfuse.cost.predict import (
    kernel_instructions,
    plan_instructions,
    plan_stages,
    plan_total,
    ring_modes,
)
from tinyfuse.cost.table import counted_table
from tinyfuse.plan import Plan, Stage
from tinyfuse.schedule.flash_price import RISING
from tinyfuse.schedule.improve.fit_flash import fits_flash
from tinyfuse.schedule.kernel_choice.select import kernel_for
from tinyfuse.schedule.kernel_choice.stages import rings_read, stage_of
from tinyfuse.schedule.plans.build import Builder

#: predicted bytes that a kernel must save: predictions of a call's err by some tens
_SURELY = 100

#: the share of the instructions that all of them may add, for their price alone
_SLOWER = 0.01

#: what a byte must bring all the same where speed alone is asked for, and flash has no price: so many instructions; and
#: the share of all that may come
_FOR_SPEED, _SLOWER_FOR_SPEED = 0.5, 0.001


def drop_rare_kernels(plan: Plan, builder: Builder) -> Plan:
    """The plan, or one of no more RAM in which others compute what some kernels of ours do: those that are worth it at
    the price of a byte of flash and, as long as --max-flash isn't enough, at most prices."""
    if code_table(plan.context.target.cost_table) is None:
        return plan
    price, slower = plan.context.flash_price, _SLOWER
    if plan.options.optimize == "speed" and price is not None:
        price, slower = max(price, _FOR_SPEED), _SLOWER_FOR_SPEED
    if price:
        plan = _spared(plan, builder, price, slower * _instructions(plan), lambda _: False)
    return _spared(plan, builder, RISING[-1], math.inf, fits_flash)


def _spared(plan: Plan, builder: Builder, price: float, most: float, enough: Callable[[Plan], bool]) -> Plan:
    """Without the kernels that are worth most, one after the other, until it is enough; `most` instructions more."""
    names = {stage.kernel.name for group in plan.groups for stage in group.stages if stage.kernel.library == "tinyfuse"}
    while names and not enough(plan):
        worth, name = max((_worth(plan, name, price, most), name) for name in sorted(names))
        if worth <= 0:
            break
        names.remove(name)
        if (found := _without(plan, name, builder)) is not None:
            added = _instructions(found) - _instructions(plan)
            faster = plan_instructions(found) < plan_instructions(plan)  # which --pareto would have to know
            if not faster and added <= min(most, price * (_flash_bytes(plan) - _flash_bytes(found))):
                plan, most = found, most - added
    return plan


def _worth(plan: Plan, name: str, price: float, most: float) -> float:
    """Instructions that the bytes are worth which the kernel takes, at their price, less those that come where others
    compute its operators, about; 0 or less where it stays."""
    context, once = replace(plan.context, lacks=plan.context.lacks | {name}), _single(plan)
    added = 0.0
    for group in plan.groups:
        for stage, rings in zip(group.stages, rings_read(group.ops), strict=True):
            if stage.kernel.name == name:
                other = kernel_for(stage.op, context, rings)
                if other is None or other[0].library != "tinyfuse":
                    return 0.0
                # with a second call the compiler makes no copy for the first
                if other[0].name in once:
                    return 0.0
                after = replace(stage, kernel=other[0], by_row=other[1])
                more = kernel_instructions(after, context) - kernel_instructions(stage, plan.context)
                added += plan.runs(group) * more
    if added > min(most, price * estimated_code_bytes(plan)):
        return 0.0

    def with_others(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        each = zip(stages, rings_read([stage.op for stage in stages]), strict=True)
        return tuple(stage_of(s.op, rings, context) if s.kernel.name == name else s for s, rings in each)

    other_plan = replace(plan, groups=tuple(replace(group, stages=with_others(group.stages)) for group in plan.groups))
    callers, then = _callers(plan), _callers(other_plan)
    if any(count == 1 and then[function] > 1 for function, count in callers.items()):
        return 0.0  # nor one of a function for its first caller
    saved = _flash_bytes(plan) - _flash_bytes(other_plan)
    return price * saved - added if saved >= _SURELY else 0.0


def _single(plan: Plan) -> frozenset[str]:
    """Names of the kernels that compute one operator alone, in whatever form, but for those with code of their own."""
    stages = (stage for group in plan.groups for stage in group.stages if not stage.kernel.own_code(stage.op))
    return frozenset(name for name, count in Counter(stage.kernel.name for stage in stages).items() if count == 1)


def _callers(plan: Plan) -> Counter[str]:
    """How many operators call each C function that kernels share."""
    return Counter(name for group in plan_code(plan).stages for stage in group for name in stage.shared)


def _flash_bytes(plan: Plan) -> int:
    return plan.weight_bytes + estimated_code_bytes(plan)


def _instructions(plan: Plan) -> float:
    """As predicted for people, who are told what being called once saves; or as the search has it."""
    known = plan_total(plan_stages(plan, counted_table(plan.context)))
    return plan_instructions(plan) if known is None else known


def _without(plan: Plan, name: str, builder: Builder) -> Plan | None:
    """The plan with other kernels in the place of that one; None where they take more RAM."""
    return builder.instead(plan, replace(plan.context, lacks=plan.context.lacks | {name}), ring_modes(plan))
