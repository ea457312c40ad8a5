"""Keeps steps below `--max-step`, by dividing calls where needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyfuse.cost.steps import divide_calls, fits_step
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan


def plan_within_step(plan_of: Callable[[Options], Plan], options: Options) -> Plan:
    """Makes a plan; if its steps exceed `--max-step`, another one from kernels whose calls can be divided into
    pieces."""
    if options.max_step is None:
        return plan_of(options)
    whole = plan_of(replace(options, max_step=None))
    if fits_step(whole, options.max_step):
        return replace(whole, options=options)
    divided = divide_calls(plan_of(options), options.max_step)
    verify_plan(divided)
    return divided
