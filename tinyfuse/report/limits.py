"""Limits that the searches for a plan reached (tinyfuse/limits.py), for `explain` and JSON answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinyfuse import limits
from tinyfuse.limits import Limit, merge_limits
from tinyfuse.plan import Plan
from tinyfuse.report.wrapping import wrap_text


def reached_limits(plan: Plan) -> tuple[Limit, ...]:
    """Limits reached by the searches for the plan, for its placement, and for the plans of graphs that its operators
    run. Empty if nothing better can have been missed."""
    placed = [limits.PLACEMENT] if plan.arena_lower_bound < plan.arena_bytes else []
    inner = (reached_limits(called) for called in plan.subplans.values())
    return merge_limits(plan.graph.limits, plan.limits, placed, *inner)


def limits_json(found: Iterable[Limit]) -> list[dict[str, Any]]:
    """JSON of the limits (docs/json.md)."""
    return [{"search": limit.search, "most": limit.most, "of": limit.of} for limit in found]


def limits_lines(data: Iterable[dict[str, Any]]) -> list[str]:
    """Heading and one line per limit; empty if none was reached."""
    lines = [
        line
        for each in data
        for line in wrap_text(f"{each['search']:<7} {each['most']:>9,} {each['of']}", " " * 21, " " * 2)
    ]
    return ["searches that stopped at a limit; a better plan may exist", *lines] if lines else []
