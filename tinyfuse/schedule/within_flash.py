"""Strategy: under `--weights auto`, which layers' weights --max-flash has room for. Kernels that take more flash are
those that save enough instructions for it, at a price of a byte: the least price at which all fits."""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.cost.predict import estimated_code_bytes
from tinyfuse.plan import Plan
from tinyfuse.schedule.progress import Progress

#: predicted instructions that a byte of flash must save, where --max-flash allows not all that would save some
_PRICES = (2.0, 8.0, 32.0, 128.0)

#: what code may take of its estimate, so that a plan that could do with fewer weights isn't refused once it is measured
_MEASURED = 1.25


def fits_flash(plan: Plan) -> bool:
    """Whether weights and code, as estimated and some more, take no more than --max-flash."""
    limit = plan.options.max_flash
    return limit is None or plan.weight_bytes + _MEASURED * estimated_code_bytes(plan) <= limit


def within_flash(plan_at: Callable[[float | None], Plan], progress: Progress) -> Plan:
    """The plan at the least price at which --max-flash is enough; else that of packed weights, `plan_at(None)`."""
    for price in _PRICES:
        progress("fitting weights into the flash")
        plan = plan_at(price)
        if fits_flash(plan):
            return plan
    return plan_at(None)
