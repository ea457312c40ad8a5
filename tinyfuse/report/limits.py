"""Which limits the searches for a plan reached (tinyfuse/limits.py): `explain` and JSON answers say them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinyfuse import limits
from tinyfuse.limits import Limit, merge_limits
from tinyfuse.plan import Plan
from tinyfuse.report.wrapping import wrap_text


def reached_limits(plan: Plan) -> tuple[Limit, ...]:
    """Those of the plan, of its graph and placement, and of the plans of the graphs that it runs; none where
    nothing was left out that might be better."""
    placed = [limits.PLACEMENT] if plan.arena_lower_bound < plan.arena_bytes else []
    inner = (reached_limits(called) for called in plan.subplans.values())
    return merge_limits(plan.graph.limits, plan.limits, placed, *inner)


def limits_json(found: Iterable[Limit]) -> list[dict[str, Any]]:
    """The limits as docs/json.md has them."""
    return [{"search": limit.search, "most": limit.most, "of": limit.of} for limit in found]


def limits_lines(data: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each limit, with a heading; none where there are none."""
    lines = [
        line
        for each in data
        for line in wrap_text(f"{each['search']:<7} {each['most']:>9,} {each['of']}", " " * 21, " " * 2)
    ]
    return ["searches that ended early, so that something better may be left out", *lines] if lines else []
