"""What `report --pareto` says: the plans that no other one beats in both arena and instructions, and those
that --optimize takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tinyfuse.compiler import Compilation
from tinyfuse.cost.predict import plan_instructions, predicted_total
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import Plan
from tinyfuse.plan.checker import verify_plan
from tinyfuse.schedule.progress import Progress, silent

_BAR = 40


def pareto_json(plan: Plan, progress: Progress = silent) -> list[dict]:
    """The front of a plan's model and what every --optimize takes, by least arena; docs/json.md documents
    the keys. What --optimize takes is improved after the search, so it is planned as `gen` plans it."""
    options = replace(plan.options, max_ram=None)
    compilation = Compilation(plan.source, plan.context.target, options, progress)
    taken: dict[tuple[int, int], list[str]] = {}
    plans: dict[tuple[int, int], Plan] = {}
    for optimize in OPTIMIZE:
        wanted = replace(options, optimize=optimize)
        found = plan if plan.options == wanted else compilation.plan(wanted)
        plans[_point(found)] = found
        taken.setdefault(_point(found), []).append(optimize)
    for _, found in compilation.search.choices(options.optimize).front():
        verify_plan(found)
        plans.setdefault(_point(found), found)
    fewest = min(instructions for _, instructions in plans)
    return [
        {
            "arena_bytes": arena,
            "predicted_instructions": predicted_total(plans[arena, instructions]),
            "slower": round(instructions / fewest - 1, 4),
            "groups": len(plans[arena, instructions].groups),
            "optimize": taken.get((arena, instructions), []),
        }
        for arena, instructions in sorted(plans)
        if (arena, instructions) in taken or not _beaten((arena, instructions), plans)
    ]


def _point(plan: Plan) -> tuple[int, int]:
    """Bytes and instructions; these are the search's number, which is known of every plan."""
    return plan.arena_bytes, round(plan_instructions(plan))


def _beaten(point: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in others)


def pareto_lines(front: list[dict]) -> list[str]:
    """A table with a bar for the arena."""
    largest = max(point["arena_bytes"] for point in front)
    lines = [f"{'arena':>9}  {'predicted':>12}  {'slower':>7}  {'groups':>6}"]
    for point in front:
        predicted = "?" if point["predicted_instructions"] is None else f"{point['predicted_instructions']:,}"
        bar = "#" * max(1, round(_BAR * point["arena_bytes"] / largest))
        chosen = f"  --optimize {', '.join(point['optimize'])}" if point["optimize"] else ""
        lines.append(
            f"{point['arena_bytes']:>9,}  {predicted:>12}  {100 * point['slower']:>5.1f} %  {point['groups']:>6}  "
            f"{bar}{chosen}"
        )
    return lines
