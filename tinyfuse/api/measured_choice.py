"""`--measure`: chooses among a few plans by what an inference of each takes on the emulated core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyfuse.report.answer import JsonObject
from tinyfuse.report.pareto import FrontPlan, typed
from tinyfuse.report.wrapping import WIDTH, wrap_text

#: plans that are measured
PLANS = 3


@dataclass(frozen=True)
class MeasuredPlan:
    """A plan's figures, measured at -O2.

    settings   options that make it, besides those of the command; empty for the plan that the command asks for
    predicted  instructions by the target's cost table; None if a kernel is not in it
    cycles     by the model of the core's pipeline; None if single instructions were not counted
    """

    settings: Mapping[str, str]
    arena_bytes: int
    state_bytes: int
    stack_bytes: int
    code_bytes: int
    predicted: int | None
    instructions: int
    cycles: int | None

    @property
    def ram_bytes(self) -> int:
        """Bytes of arena, state and stack."""
        return self.arena_bytes + self.state_bytes + self.stack_bytes

    def cost(self, count: str) -> int:
        """Cycles with --count cycles, otherwise instructions."""
        if count == "instructions":
            return self.instructions
        assert self.cycles is not None, "refused without a counter"
        return self.cycles


def plans_to_measure(front: Sequence[FrontPlan], optimize: str, ram_bytes: int, slowdown: float) -> list[FrontPlan]:
    """Plans of a front that may be better than the plan that was asked for, at most PLANS - 1.

    With `balanced`, these are the fastest one and one of medium RAM within `slowdown` of it; with `speed` the next
    fastest; with `ram` the next smallest. `ram_bytes`: RAM of the plan that was asked for.
    """
    others = [each for each in front if each.ram_bytes != ram_bytes]
    if optimize == "balanced":
        others = [each for each in others if each.ram_bytes > ram_bytes and each.slower <= slowdown]
        middle = (len(others) - 1) // 2
        return [others[middle], others[-1]] if len(others) >= PLANS - 1 else others
    if optimize == "speed":
        return sorted(others, key=lambda each: each.slower)[: PLANS - 1]
    return others[: PLANS - 1]


def pick_measured(found: Sequence[MeasuredPlan], optimize: str, count: str, slowdown: float) -> MeasuredPlan:
    """Picks the plan that --optimize asks for. With `balanced`, that is the least RAM of the plans that take at most
    `slowdown` (0.08: 8 %) more than the fewest instructions or cycles."""
    if optimize == "speed":
        return min(found, key=lambda each: (each.cost(count), each.ram_bytes))
    fewest = min(each.cost(count) for each in found)
    near = [each for each in found if optimize == "ram" or each.cost(count) <= (1 + slowdown) * fewest]
    return min(near, key=lambda each: (each.ram_bytes, each.cost(count)))


def measured_json(found: Sequence[MeasuredPlan], chosen: MeasuredPlan) -> list[JsonObject]:
    """JSON of the measured plans (docs/json.md)."""
    return [
        {
            "options": typed(each.settings),
            "arena_bytes": each.arena_bytes,
            "state_bytes": each.state_bytes,
            "stack_bytes": each.stack_bytes,
            "code_bytes": each.code_bytes,
            "predicted_instructions": each.predicted,
            "instructions": each.instructions,
            "estimated_cycles": each.cycles,
            "chosen": each is chosen,
        }
        for each in found
    ]


def measured_lines(found: Sequence[JsonObject], count: str) -> list[str]:
    """Table of the measured plans, the chosen one marked with an arrow."""
    key, unit = ("instructions", "instr.") if count == "instructions" else ("estimated_cycles", "est. cycles")
    lines = [f"   {'RAM+stack':>9}  {'code':>7}  {unit:>12}  made by"]
    for each in found:
        ram = each["arena_bytes"] + each["state_bytes"] + each["stack_bytes"]
        row = f"{'->' if each['chosen'] else '':2} {ram:>9,}  {each['code_bytes']:>7,}  {each[key]:>12,}"
        asked = each["options"] or "the options as given"
        fits = len(row) + 2 + len(asked) <= WIDTH
        lines += [f"{row}  {asked}"] if fits else [row, *wrap_text(asked, " " * 13, " " * 11)]
    return lines
