"""What `report --pareto` says: the plans that no other one beats in both arena and instructions."""

from __future__ import annotations

from tinyfuse.cost.predict import predicted_total
from tinyfuse.options import OPTIMIZE
from tinyfuse.schedule.choose import Choices
from tinyfuse.verify_plan import verify_plan

_BAR = 40


def pareto_facts(choices: Choices) -> list[dict]:
    """The front, by least arena; docs/json.md documents the keys."""
    front = choices.front()
    for _, plan in front:
        verify_plan(plan)
    fewest = front[-1][0].instructions
    chosen = {optimize: choices.choose(optimize, None).arena_bytes for optimize in OPTIMIZE}
    return [
        {
            "arena_bytes": plan.arena_bytes,
            "predicted_instructions": predicted_total(plan),
            "slower": round(candidate.instructions / fewest - 1, 4),
            "groups": len(plan.groups),
            "optimize": [name for name, arena in chosen.items() if arena == plan.arena_bytes],
        }
        for candidate, plan in front
    ]


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
