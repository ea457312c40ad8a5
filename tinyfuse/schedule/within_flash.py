"""Strategy: under `--weights auto`, which layers' weights --max-flash has room for. Kernels that take more flash are
those that save enough instructions for it, at a price of a byte: the least price at which all fits. Where packed
weights are too many, those layers' are compressed that add the fewest instructions for each byte that they spare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from tinyfuse import limits
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.limits import Reached, union
from tinyfuse.plan import Plan
from tinyfuse.schedule.progress import Progress
from tinyfuse.schedule.select import compressible
from tinyfuse.thinning import evenly

#: predicted instructions that a byte of flash must save, where --max-flash allows not all that would save some: this at
#: first, then so many times as many
_LEAST_PRICE, _TIMES = 2.0, 4.0

#: what code may take of its estimate, so that a plan that could do with fewer weights isn't refused once it is measured
_MEASURED = 1.25


def fits_flash(plan: Plan) -> bool:
    """Whether weights and code, as estimated and some more, take no more than --max-flash."""
    limit = plan.options.max_flash
    return limit is None or _flash_bytes(plan) <= limit


def _flash_bytes(plan: Plan) -> float:
    return plan.weight_bytes + _MEASURED * estimated_code_bytes(plan)


def within_flash(plan_at: Callable[[str, float | None], Plan], progress: Progress) -> Plan:
    """The plan at the least price at which --max-flash is enough, `plan_at("auto", price)`; else that of packed
    weights, `plan_at("packed", None)`; else the first of those at the prices of compressed weights, or the last."""
    reached = Reached()
    reached.note(limits.FLASH_PRICES)  # at one between two of them more may fit
    plan = _first_that_fits(plan_at, progress, reached)
    return replace(plan, limits=union(plan.limits, reached.found))


def _first_that_fits(plan_at: Callable[[str, float | None], Plan], progress: Progress, reached: Reached) -> Plan:
    for number in range(limits.FLASH_PRICES.most):
        progress("fitting weights into the flash")
        plan = plan_at("auto", _LEAST_PRICE * _TIMES**number)
        if fits_flash(plan):
            return plan
    plan = plan_at("packed", None)
    if fits_flash(plan):
        return plan
    for spared_price in _prices_of_compressed(plan, reached):
        progress("compressing weights to fit into the flash")
        plan = plan_at("compressed", spared_price)
        if fits_flash(plan):
            break
    return plan


def _prices_of_compressed(packed: Plan, reached: Reached) -> Iterator[float | None]:
    """What a byte spared may cost, the least first: from where enough are spared that the plan of packed weights would
    fit. The last, None, compresses all that can be; there is none where nothing can."""
    found = [compressible(stage.op, packed.context) for group in packed.groups for stage in group.stages]
    spared = sorted((change.price, change.bytes_spared) for _, change in filter(None, found))
    left, prices = _flash_bytes(packed) - (packed.options.max_flash or 0), []
    for price, count in spared:
        left -= count
        if left <= 0 and price not in prices and not math.isinf(price):
            prices.append(price)
    if len(prices) > limits.COMPRESSED_PRICES.most:
        reached.note(limits.COMPRESSED_PRICES)
    yield from evenly(prices, limits.COMPRESSED_PRICES.most)
    if spared:
        yield None
