"""`report --pareto`: plans that no other plan beats in both RAM and instructions, and the plans of each --optimize."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

from tinyfuse import limits
from tinyfuse.compiler import Compiler
from tinyfuse.cost.cycles import predicted_cycles
from tinyfuse.cost.predict import plan_instructions, predicted_total
from tinyfuse.limits import Reached
from tinyfuse.options import OPTIMIZE, Options, default_weights
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress, silent
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.limits import reached_limits
from tinyfuse.report.wrapping import WIDTH, wrap_text

_BAR = 12


@dataclass(frozen=True)
class FrontPlan:
    """A plan of the Pareto front.

    optimize   values of --optimize that take it
    settings   alternative sets of options to add to the command: values of --optimize, --max-ram, --weights
    slower     share of additional instructions (cycles with --count cycles) over the fastest plan: 0.05 is 5 %
    """

    plan: Plan
    optimize: tuple[str, ...]
    settings: tuple[dict[str, str], ...]
    slower: float

    @property
    def ram_bytes(self) -> int:
        """Bytes of the arena, without weights copied into it, and of the state."""
        return uncopied_ram_bytes(self.plan)


def pareto_json(plan: Plan, progress: Progress = silent, reached: Reached | None = None) -> list[JsonObject]:
    """JSON of `pareto_front` (docs/json.md has the keys)."""
    return [
        {
            "arena_bytes": _arena_bytes(each.plan),
            "state_bytes": each.plan.state_bytes,
            "macs": each.plan.macs,
            "predicted_instructions": predicted_total(each.plan),
            "predicted_cycles": predicted_cycles(each.plan),
            "slower": round(each.slower, 4),
            "groups": len(each.plan.groups),
            "optimize": list(each.optimize),
            "options": [typed(settings) for settings in each.settings],
        }
        for each in pareto_front(plan, progress, reached)
    ]


def pareto_front(plan: Plan, progress: Progress = silent, reached: Reached | None = None) -> list[FrontPlan]:
    """Plans of the Pareto front and of each --optimize, by RAM.

    `gen` makes each plan with its settings. Between the plans of --optimize, each is the fastest one with less RAM than
    its successor, so the plan of every --max-ram is included. `reached` collects the limits that searches hit.
    """
    reached = Reached() if reached is None else reached
    options, window = replace(plan.options, max_ram=None, memory=()), plan.source.window
    compiler = Compiler(plan.source if window is None else window.whole, plan.context.target, progress)
    taken: dict[_Point, list[str]] = {}
    plans: dict[_Point, Plan] = {}

    def found(wanted: Options) -> Plan | None:
        made = plan if plan.options == wanted else compiler.plan(wanted)
        reached.note(*reached_limits(made))
        if wanted.max_ram is not None and made.ram_bytes > wanted.max_ram:
            return None
        return plans.setdefault(_point(made), made)

    for optimize in OPTIMIZE:
        made = found(replace(options, optimize=optimize))
        assert made is not None, "a plan within no limit"
        taken.setdefault(_point(made), []).append(optimize)
    for least, below in pairwise([0, *sorted({ram for ram, _ in taken})]):
        for number in count():
            if number == limits.FRONT.most:
                reached.note(limits.FRONT)
                break
            made = found(replace(options, optimize="speed", max_ram=below - 1))
            if made is None or made.ram_bytes <= least:
                break
            below = made.ram_bytes
    fewest = min(instructions for _, instructions in plans)
    return [
        FrontPlan(plans[point], tuple(taken.get(point, ())), _settings(point, taken, options), point[1] / fewest - 1)
        for point in sorted(plans)
        if point in taken or not _beaten(point, plans)
    ]


def _settings(point: _Point, taken: Mapping[_Point, Sequence[str]], options: Options) -> tuple[dict[str, str], ...]:
    """Settings of a point's FrontPlan. Those with --weights come last."""
    found = []
    for optimize in taken.get(point, ["speed"]):
        limit = {} if point in taken else {"max_ram": str(point[0])}
        weights = {} if options.weights == default_weights(optimize) else {"weights": options.weights}
        found.append({"optimize": optimize, **limit, **weights})
    return tuple(sorted(found, key=lambda settings: "weights" in settings))


def typed(settings: Mapping[str, str]) -> str:
    """Settings of a FrontPlan as command-line options."""
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings.items())


#: (RAM bytes of arena and state, instructions): predicted, or estimated by the search if some kernel was not measured
_Point = tuple[int, int]


def _point(plan: Plan) -> _Point:
    predicted = predicted_total(plan)
    instructions = round(plan_instructions(plan)) if predicted is None else predicted
    return uncopied_ram_bytes(plan), instructions


def uncopied_ram_bytes(plan: Plan) -> int:
    """Bytes of the arena, without weights copied into it, and of the state."""
    return _arena_bytes(plan) + plan.state_bytes


def _arena_bytes(plan: Plan) -> int:
    """Arena bytes without weights that are copied into it, because only the final plan copies them."""
    without = plan.memory.uncopied_arena_bytes if plan.memory else None
    return plan.arena_bytes if without is None else without


def _beaten(point: _Point, others: Iterable[_Point]) -> bool:
    return any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in others)


def pareto_lines(front: list[JsonObject], counts: str = "instructions") -> list[str]:
    """Table with a bar for arena and state, and the unit of --count."""
    key = f"predicted_{counts}"
    largest = max(map(_ram, front))
    keeps = any(point["state_bytes"] for point in front)
    counted = "est. cycles" if counts == "cycles" else "predicted"
    again = len({point["macs"] for point in front}) > 1
    macs = f"  {'MACs':>11}" if again else ""
    lines = [f"{'arena':>9}{'    state' * keeps}  {counted:>12}  {'slower':>7}{macs}  {'groups':>6}"]
    for point in front:
        predicted = "?" if point[key] is None else f"{point[key]:,}"
        bar = "#" * max(1, round(_BAR * _ram(point) / largest))
        asked = " or ".join(point["options"])
        state = f"{point['state_bytes']:>9,}" if keeps else ""
        ram, slower = f"{point['arena_bytes']:>9,}{state}", f"{100 * point['slower']:>5.1f} %"
        macs = f"  {point['macs']:>11,}" if again else ""
        row = f"{ram}  {predicted:>12}  {slower}{macs}  {point['groups']:>6}  {bar}"
        lines += row_with_options(row, asked)
    return lines


def row_with_options(row: str, asked: str) -> list[str]:
    """A row of a table with its options, which are wrapped below the row if they do not fit beside it."""
    fits = len(row) + 2 + len(asked) <= WIDTH
    return [f"{row}  {asked}"] if fits else [row, *wrap_text(asked, " " * 13, " " * 11)]


def _ram(point: JsonObject) -> int:
    return int(point["arena_bytes"]) + int(point["state_bytes"])
