"""Strategy: trades instructions for flash until --max-flash is kept.

The price of a flash byte rises (flash_price.py), and per-channel tables and larger weights that save too few
instructions for their bytes are dropped, until everything fits. If that is not enough, weights are compressed, fewest
added instructions per byte saved first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from tinyfuse import limits
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.limits import Reached, merge_limits
from tinyfuse.options import FLASH_PRICES
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.schedule.kernel_choice.select import compressible
from tinyfuse.schedule.variants.flash_price import RISING_PRICES
from tinyfuse.thinning import pick_evenly

#: safety factor on estimated code size: without it, a plan may exceed --max-flash when its code is measured, although
#: smaller weights would have made it fit
_MEASURED = 1.25


def fits_flash(plan: Plan) -> bool:
    """Tells whether weights and code, estimated with a margin, keep --max-flash."""
    limit = plan.options.max_flash
    return limit is None or _flash_bytes(plan) <= limit


def _flash_bytes(plan: Plan) -> float:
    return plan.weight_bytes + _MEASURED * estimated_code_bytes(plan)


def plan_within_flash(first: Plan, plan_at: Callable[[str, float | None], Plan], progress: Progress) -> Plan:
    """Finds the plan at the lowest price at which --max-flash is kept, among those of `plan_at(weights, price)`; else
    the one with the least flash. `first` is the plan at the usual price, which exceeds it."""
    reached = Reached()
    reached.note(limits.FLASH_PRICES)  # a price between two of these might give a better plan
    least = first
    for plan in _at_rising_prices(first, plan_at, progress, reached):
        least = min(least, plan, key=_flash_bytes)
        if fits_flash(plan):
            least = plan
            break
    return replace(least, limits=merge_limits(least.limits, reached.found))


def _at_rising_prices(
    first: Plan, plan_at: Callable[[str, float | None], Plan], progress: Progress, reached: Reached
) -> Iterator[Plan]:
    """Yields plans with less and less flash: larger weights at rising prices, packed weights without tables of channels
    and, for --weights auto, compressed weights at rising prices per byte saved."""
    weights, usual = first.options.weights, FLASH_PRICES[first.options.optimize]
    for price in RISING_PRICES[: limits.FLASH_PRICES.most]:
        if price > usual:
            progress("choosing forms of weights that fit into --max-flash")
            yield plan_at(weights, price)
    packed = plan_at("packed", math.inf)
    yield packed
    if weights == "auto":
        for spared_price in _prices_of_compressed(packed, reached):
            progress("compressing weights to fit into --max-flash")
            yield plan_at("compressed", spared_price)


def _prices_of_compressed(packed: Plan, reached: Reached) -> Iterator[float | None]:
    """Yields limits on the instructions added per byte that compression saves, lowest first. The first is the lowest at
    which the plan is estimated to fit; the last is None, which compresses everything. Yields nothing if nothing can be
    compressed."""
    found = [compressible(stage.op, packed.context) for group in packed.groups for stage in group.stages]
    spared = sorted((change.price, change.bytes_spared) for _, change in filter(None, found))
    left, prices = _flash_bytes(packed) - (packed.options.max_flash or 0), []
    for price, count in spared:
        left -= count
        if left <= 0 and price not in prices and not math.isinf(price):
            prices.append(price)
    if len(prices) > limits.COMPRESSED_PRICES.most:
        reached.note(limits.COMPRESSED_PRICES)
    yield from pick_evenly(prices, limits.COMPRESSED_PRICES.most)
    if spared:
        yield None
