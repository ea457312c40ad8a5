"""Strategy: replaces kernels whose functions few operators call by kernels that the module has anyway, if the code
saved is worth the instructions added.

A flash byte has a price (flash_price.py), close to none for speed; if --max-flash is exceeded, more kernels go. Kernels
are chosen per operator (kernel_choice/select.py), as if shared functions cost nothing. So code is considered once there
is a plan, kernel by kernel, with unchanged groups.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tinyfuse.cost.code import CALL, code_table, estimated_code_bytes, plan_code
from tinyfuse.cost.predict import (
    kernel_instructions,
    plan_instructions,
    plan_stages,
    plan_total,
    ring_modes,
)
from tinyfuse.cost.table import counted_table
from tinyfuse.plan import Plan, Stage
from tinyfuse.schedule.improve.fit_flash import fits_flash
from tinyfuse.schedule.kernel_choice.select import kernel_for
from tinyfuse.schedule.kernel_choice.stages import rings_read, stage_of
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.variants.flash_price import RISING_PRICES

#: minimum predicted bytes that a kernel must save: predictions of a call's size err by some tens of bytes
_MIN_BYTES_SAVED = 100

#: largest share of instructions that all replacements together may add if only the price of flash asks for them
_MAX_SLOWDOWN = 0.01

#: with --optimize speed, where flash has no price: minimum instructions saved per byte, and the largest share that may
#: be added
_MIN_INSTRUCTIONS_PER_BYTE, _MAX_SLOWDOWN_FOR_SPEED = 0.5, 0.001


def drop_rare_kernels(plan: Plan, builder: Builder) -> Plan:
    """Plan of no more RAM without the kernels that are not worth their code; the same plan if all are.

    They are dropped at the price of a flash byte and, while --max-flash is exceeded, at higher prices.
    """
    if code_table(plan.context.target.cost_table) is None:
        return plan
    price, slower = plan.context.flash_price, _MAX_SLOWDOWN
    if plan.options.optimize == "speed" and price is not None:
        price, slower = max(price, _MIN_INSTRUCTIONS_PER_BYTE), _MAX_SLOWDOWN_FOR_SPEED
    if price:
        plan = _drop_worthwhile(plan, builder, price, slower * _instructions(plan), lambda _: False)
    return _drop_worthwhile(plan, builder, RISING_PRICES[-1], math.inf, fits_flash)


def _drop_worthwhile(plan: Plan, builder: Builder, price: float, most: float, enough: Callable[[Plan], bool]) -> Plan:
    """Drops kernels until `enough`, those first that save the most flash per added instruction; at most `most`
    instructions may be added."""
    names = {stage.kernel.name for group in plan.groups for stage in group.stages if stage.kernel.library == "tinyfuse"}
    while names and not enough(plan):
        worth, name = max((_gain_of_dropping(plan, name, price, most), name) for name in sorted(names))
        if worth <= 0:
            break
        names.remove(name)
        if (found := _drop_kernel(plan, name, builder)) is not None:
            added = _instructions(found) - _instructions(plan)
            # a faster plan would lie outside the front that --pareto lists
            faster = plan_instructions(found) < plan_instructions(plan)
            if not faster and added <= min(most, price * (_flash_bytes(plan) - _flash_bytes(found))):
                plan, most = found, most - added
    return plan


def _gain_of_dropping(plan: Plan, name: str, price: float, most: float) -> float:
    """Estimated gain of dropping a kernel, in instructions: the price of its flash bytes, less the additional
    instructions of its operators. It is 0 or less if the kernel should stay."""
    context, once = replace(plan.context, lacks=plan.context.lacks | {name}), _kernels_called_once(plan)
    added = 0.0
    for group in plan.groups:
        for stage, rings in zip(group.stages, rings_read(group.ops), strict=True):
            if stage.kernel.name == name:
                other = kernel_for(stage.op, context, rings)
                if other is None or other[0].library != "tinyfuse":
                    return 0.0
                # with a second call the compiler no longer specializes the first
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
    callers, then = _count_callers(plan), _count_callers(other_plan)
    if any(count == 1 and then[function] > 1 for function, count in callers.items()):
        return 0.0  # likewise, a function with a single caller is specialized
    saved = _flash_bytes(plan) - _flash_bytes(other_plan)
    return price * saved - added if saved >= _MIN_BYTES_SAVED else 0.0


def _kernels_called_once(plan: Plan) -> frozenset[str]:
    """Names of the kernels that compute only one operator, by rows or whole; kernels with code of their own per
    operator are left out."""
    stages = (stage for group in plan.groups for stage in group.stages if not stage.kernel.own_code(stage.op))
    return frozenset(name for name, count in Counter(stage.kernel.name for stage in stages).items() if count == 1)


def _count_callers(plan: Plan) -> Counter[str]:
    """Counts the operators that call each C function that kernels share."""
    return Counter(name for group in plan_code(plan).stages for stage in group for name in stage if name != CALL)


def _flash_bytes(plan: Plan) -> int:
    return plan.weight_bytes + estimated_code_bytes(plan)


def _instructions(plan: Plan) -> float:
    """Instructions as reported, where kernels called once take fewer; or as the search counts them if those are not
    known."""
    known = plan_total(plan_stages(plan, counted_table(plan.context)))
    return plan_instructions(plan) if known is None else known


def _drop_kernel(plan: Plan, name: str, builder: Builder) -> Plan | None:
    """Plan with other kernels in place of `name`; None if they take more RAM."""
    return builder.instead(plan, replace(plan.context, lacks=plan.context.lacks | {name}), ring_modes(plan))
