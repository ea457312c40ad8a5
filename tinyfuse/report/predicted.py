"""Prediction of an inference without operators that cannot be predicted, and the reasons for these."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from tinyfuse.cost.cycles import plan_cycles
from tinyfuse.cost.predict import plan_stages, predicted_total
from tinyfuse.cost.table import instructions_table
from tinyfuse.plan import Plan, Stage, subplans
from tinyfuse.report.answer import JsonObject


def known_json(plan: Plan) -> JsonObject:
    """JSON of an inference's predicted instructions and cycles, without operators that cannot be predicted, and a list
    of those.

    On a target without tables, both figures are None and the list is empty.
    """
    instructions, table = plan_stages(plan), instructions_table(plan.context.target)
    unknown = [
        (group.index, stage)
        for group, values in zip(plan.groups, instructions, strict=True)
        for stage, value in zip(group.stages, values, strict=True)
        if value is None
    ]
    return {
        "known_instructions": _known(instructions),
        "known_cycles": _known(plan_cycles(plan)),
        "not_predicted": [
            {"group": index, "operator": str(stage.op), "kernel": stage.kernel.name, "reason": _reason(stage, plan)}
            for index, stage in (unknown if table else ())
        ],
    }


def _known(values: Iterable[Iterable[float | None]]) -> int | None:
    known = [value for value in chain.from_iterable(values) if value is not None]
    return round(sum(known)) if known else None


def _reason(stage: Stage, plan: Plan) -> str:
    """Reason why a stage cannot be predicted, such as "a run decides which of its graphs runs: graph 1 takes 1,234
    instructions, graph 2 takes 567"."""
    if not stage.kernel.unpredictable:
        return f"its kernel was not measured for {plan.context.target.name}"
    figures = [(number, predicted_total(inner)) for number, inner in subplans(stage.op).items()]
    each = [f"graph {number} takes {value:,} instructions" for number, value in figures if value is not None]
    return stage.kernel.unpredictable + (f": {', '.join(each)}" if each else "")


def not_predicted_lines(data: JsonObject) -> list[str]:
    """One line for each operator that cannot be predicted."""
    return [f"{unknown['operator']} is not predicted: {unknown['reason']}" for unknown in data["not_predicted"]]
