"""What `report --pareto` says: the plans that no other one beats in both arena and instructions, and those
that --optimize takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tinyfuse.compiler import Compilation, steps_of
from tinyfuse.cost.cycles import predicted_cycles
from tinyfuse.cost.predict import plan_instructions, predicted_total
from tinyfuse.ir import Graph
from tinyfuse.limits import Reached
from tinyfuse.options import OPTIMIZE, Options
from tinyfuse.plan import Plan
from tinyfuse.plan.checker import verify_plan
from tinyfuse.report.limits import reached_limits
from tinyfuse.report.report_json import JsonObject
from tinyfuse.schedule.choose_step import choose_step, hopeful_steps
from tinyfuse.schedule.progress import Progress, silent

_BAR = 40


def pareto_json(plan: Plan, progress: Progress = silent, reached: Reached | None = None) -> list[JsonObject]:
    """The front of a plan's model and what every --optimize takes, by least RAM; docs/json.md documents
    the keys. What --optimize takes is improved after the search, so it is planned as `gen` plans it. Limits of the
    searches for it are noted in `reached`."""
    options = replace(plan.options, max_ram=None)
    window, reached = plan.source.window, Reached() if reached is None else reached
    searched = (
        _searched(plan, options, progress, reached)
        if window is None
        else _of_steps(window.whole, plan, options, progress, reached)
    )
    taken: dict[_Point, list[str]] = {}
    plans: dict[_Point, Plan] = {}
    for optimize, found in searched:
        reached.note(*reached_limits(found))
        plans.setdefault(_point(found), found)
        if optimize is not None:
            taken.setdefault(_point(found), []).append(optimize)
    fewest = min(instructions for _, instructions in plans)
    return [
        {
            "arena_bytes": _arena_bytes(plans[point]),
            "state_bytes": plans[point].state_bytes,
            "macs": plans[point].macs,
            "predicted_instructions": predicted_total(plans[point]),
            "predicted_cycles": predicted_cycles(plans[point]),
            "slower": round(point[1] / fewest - 1, 4),
            "groups": len(plans[point].groups),
            "optimize": taken.get(point, []),
        }
        for point in sorted(plans)
        if point in taken or not _beaten(point, plans)
    ]


def _searched(plan: Plan, options: Options, progress: Progress, reached: Reached) -> Iterator[tuple[str | None, Plan]]:
    """What each --optimize takes, and without a name the search's front."""
    compilations = _Compilations(plan, progress)
    for optimize in OPTIMIZE:
        wanted = replace(options, optimize=optimize)
        yield optimize, plan if plan.options == wanted else compilations.of(plan.source, wanted).plan(wanted)
    choices = compilations.of(plan.source, options).search.choices(options.optimize, options.recompute_limit)
    for _, found in choices.front(reached):
        verify_plan(found)
        yield None, found


def _of_steps(
    whole: Graph, plan: Plan, options: Options, progress: Progress, reached: Reached
) -> Iterator[tuple[str | None, Plan]]:
    """The same of the step graphs of a window over `whole`."""
    steps = steps_of(whole, options)
    compilations = _Compilations(plan, progress)
    fastest: Plan | None = None
    for optimize in OPTIMIZE:  # speed is the first
        wanted = replace(options, optimize=optimize)
        plans = [compilations.of(step, wanted).plan(wanted) for step in hopeful_steps(steps, wanted, reached)]
        fastest = fastest or plans[-1]
        yield optimize, choose_step(plans, wanted, fastest)
        yield from ((None, found) for found in plans)


class _Compilations:
    """Of a plan's target, each made once. --optimize speed has its own: other kernels buy speed with RAM there
    (Context.spares_ram)."""

    def __init__(self, plan: Plan, progress: Progress):
        self._target, self._progress = plan.context.target, progress
        self._made: dict[tuple[Graph, bool], Compilation] = {}

    def of(self, graph: Graph, options: Options) -> Compilation:
        """One that plans for these options."""
        key = graph, options.optimize == "speed"
        if key not in self._made:
            self._made[key] = Compilation(graph, self._target, options, self._progress)
        return self._made[key]


#: bytes of arena and state, and instructions: the search's number, which is known of every plan
_Point = tuple[int, int]


def _point(plan: Plan) -> _Point:
    return _arena_bytes(plan) + plan.state_bytes, round(plan_instructions(plan))


def _arena_bytes(plan: Plan) -> int:
    """The arena, without the weights that only the plan which is made has copied ahead into it."""
    without = plan.memory.uncopied_arena_bytes if plan.memory else None
    return plan.arena_bytes if without is None else without


def _beaten(point: _Point, others: Iterable[_Point]) -> bool:
    return any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in others)


def pareto_lines(front: list[JsonObject], count: str = "instructions") -> list[str]:
    """A table with a bar for arena and state, and what --count counts."""
    key = f"predicted_{count}"
    largest = max(map(_ram, front))
    keeps = any(point["state_bytes"] for point in front)
    counted = "est. cycles" if count == "cycles" else "predicted"
    again = len({point["macs"] for point in front}) > 1
    macs = f"  {'MACs':>11}" if again else ""
    lines = [f"{'arena':>9}{'    state' * keeps}  {counted:>12}  {'slower':>7}{macs}  {'groups':>6}"]
    for point in front:
        predicted = "?" if point[key] is None else f"{point[key]:,}"
        bar = "#" * max(1, round(_BAR * _ram(point) / largest))
        chosen = f"  --optimize {', '.join(point['optimize'])}" if point["optimize"] else ""
        state = f"{point['state_bytes']:>9,}" if keeps else ""
        ram, slower = f"{point['arena_bytes']:>9,}{state}", f"{100 * point['slower']:>5.1f} %"
        macs = f"  {point['macs']:>11,}" if again else ""
        lines.append(f"{ram}  {predicted:>12}  {slower}{macs}  {point['groups']:>6}  {bar}{chosen}")
    return lines


def _ram(point: JsonObject) -> int:
    return int(point["arena_bytes"]) + int(point["state_bytes"])
