"""The choice of `--measure`: the best of a few plans by measurements on the emulated core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyfuse.report.answer import JsonObject
from tinyfuse.report.pareto import FrontPlan, row_with_options, typed

#: most plans that are measured
PLANS = 3


@dataclass(frozen=True)
class MeasuredPlan:
    """Measurements of one inference of a plan, compiled with -O2.

    settings   options to add to the command to get this plan; empty for the plan of the command as given
    predicted  instructions by the target's cost table; None if the table lacks a kernel
    cycles     estimated by the pipeline model; None if QEMU's plugin did not run
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
    """Return the plans of the front, at most PLANS - 1, to measure beside the plan that the predictions choose.

    `balanced` takes the fastest plan, and one of medium RAM that is at most `slowdown` slower; `speed` takes the next
    fastest plans, `ram` the next smallest. `ram_bytes`: RAM of the predicted choice.
    """
    others = [each for each in front if each.ram_bytes != ram_bytes]
    if optimize == "balanced":
        # kernels are chosen one by one, so a plan may have less RAM and be faster
        asked = next((each.slower for each in front if each.ram_bytes == ram_bytes), 0.0)
        near = (each for each in others if each.slower <= slowdown)
        others = [each for each in near if each.ram_bytes > ram_bytes or each.slower < asked]
        middle = (len(others) - 1) // 2
        return [others[middle], others[-1]] if len(others) >= PLANS - 1 else others
    if optimize == "speed":
        return sorted(others, key=lambda each: each.slower)[: PLANS - 1]
    return others[: PLANS - 1]


def pick_measured(found: Sequence[MeasuredPlan], optimize: str, count: str, slowdown: float) -> MeasuredPlan:
    """Picks a plan by the rule of --optimize. `speed` takes the fewest instructions (or cycles, by `count`), `ram` the
    least RAM, `balanced` the least RAM of the plans at most `slowdown` (0.08: 8 %) slower than the fastest."""
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
        lines += row_with_options(row, each["options"] or "the options as given")
    return lines
