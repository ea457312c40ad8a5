"""Strategy: what takes the least flash as far as --max-flash needs it. The price of a byte rises (flash_price.py), so
that tables of channels and larger weights go which save too little, until all fits; then those weights are compressed
that add the fewest instructions for each byte that they spare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from tinyfuse import limits
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.limits import Reached, union
from tinyfuse.options import FLASH_PRICES
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.schedule.flash_price import RISING
from tinyfuse.schedule.kernel_choice.select import compressible
from tinyfuse.thinning import evenly

#: what code may take of its estimate, so that a plan that could do with fewer weights isn't refused once it is measured
_MEASURED = 1.25


def fits_flash(plan: Plan) -> bool:
    """Whether weights and code, as estimated and some more, take no more than --max-flash."""
    limit = plan.options.max_flash
    return limit is None or _flash_bytes(plan) <= limit


def _flash_bytes(plan: Plan) -> float:
    return plan.weight_bytes + _MEASURED * estimated_code_bytes(plan)


def within_flash(first: Plan, plan_at: Callable[[str, float | None], Plan], progress: Progress) -> Plan:
    """Return the plan at the least price at which --max-flash is enough, of those that `plan_at(weights, price)` makes;
    where none is, the one that takes the least flash. `first`: the plan at the usual price, for which it is too little.
    """
    reached = Reached()
    reached.note(limits.FLASH_PRICES)  # at one between two of them more may fit
    least = first
    for plan in _at_rising_prices(first, plan_at, progress, reached):
        least = min(least, plan, key=_flash_bytes)
        if fits_flash(plan):
            least = plan
            break
    return replace(least, limits=union(least.limits, reached.found))


def _at_rising_prices(
    first: Plan, plan_at: Callable[[str, float | None], Plan], progress: Progress, reached: Reached
) -> Iterator[Plan]:
    """Yield plans that take less and less flash: larger weights at rising prices, packed ones without tables of
    channels, and of --weights auto compressed ones at rising prices of a byte spared."""
    weights, usual = first.options.weights, FLASH_PRICES[first.options.optimize]
    for price in RISING[: limits.FLASH_PRICES.most]:
        if price > usual:
            progress("fitting weights into the flash")
            yield plan_at(weights, price)
    packed = plan_at("packed", math.inf)
    yield packed
    if weights == "auto":
        for spared_price in _prices_of_compressed(packed, reached):
            progress("compressing weights to fit into the flash")
            yield plan_at("compressed", spared_price)


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
