"""Chooses, with `--count cycles`, between the plans found by counting cycles and by counting instructions.

In either count, kernels and loops change only for what is surely better (kernel_choice/select.py,
variants/fuse_elementwise.py). So the plan found by instructions may have fewer cycles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyfuse.cost.predict import plan_instructions
from tinyfuse.limits import merge_limits
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress, silent


def plan_by_both_counts(plan_of: Callable[[Options], Plan], options: Options, progress: Progress = silent) -> Plan:
    """Makes a plan; if cycles are counted, the better of the plans of both counts."""
    plan = plan_of(options)
    if options.count == "instructions":
        return plan
    progress("planning for the fewest instructions too")
    by_instructions = plan_of(replace(options, count="instructions"))
    found = pick_fewer_cycles(plan, by_instructions)
    return replace(found, limits=merge_limits(plan.limits, by_instructions.limits))


def pick_fewer_cycles(plan: Plan, by_instructions: Plan) -> Plan:
    """Picks the plan with fewer cycles that keeps what --optimize asks for: with `speed`, --max-ram; else the RAM of
    `plan`."""
    options, context = plan.options, plan.context
    other = replace(by_instructions, options=options, context=replace(by_instructions.context, cycles=context.cycles))
    most = plan.ram_bytes
    if options.optimize == "speed":
        most = max(most, other.ram_bytes if options.max_ram is None else options.max_ram)
    faster = plan_instructions(other) < plan_instructions(plan)
    return other if faster and other.ram_bytes <= most else plan
