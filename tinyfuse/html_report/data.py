"""Data of the page of `report --html`. Only the page's own script reads it, so keys may change with the script."""

from __future__ import annotations

from typing import Any

from tinyfuse.cost.predict import known_total, plan_stages, plan_total
from tinyfuse.emit.header import stack_bound
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.html_report.arena import arena_data
from tinyfuse.html_report.graph import graph_steps
from tinyfuse.html_report.loops import loops_data
from tinyfuse.html_report.names import make_visible
from tinyfuse.ir import type_text
from tinyfuse.plan import Group, Plan, Stage
from tinyfuse.plan.plan import operator_traffic
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import op_name


def page_data(
    plan: Plan, unfused: Plan, figures: JsonObject, pareto: list[JsonObject] | None, command: str
) -> JsonObject:
    """Data of the page for a plan.

    unfused  plan of the same model with --fusion none, for comparison
    figures  JSON of `report` with its envelope
    pareto   JSON of `report --pareto`; None if no plans were searched for
    command  command that generates the module, without --optimize and --max-ram
    """
    why = explain_json(plan)
    steps, left_out = graph_steps(plan)
    shown: JsonObject = {"options": _given_options(figures["options"]), "warnings": list(plan.warnings)}
    data = {
        "figures": {key: figures[key] for key in _FIGURES} | shown,
        "stack_bytes": stack_bound(plan, optimized=True),
        "unfused": {"instructions": plan_total(plan_stages(unfused))},
        "layers": _layers(plan, unfused),
        "steps": steps,
        "steps_left_out": left_out,
        "arena": arena_data(plan),
        "loops": loops_data(plan),
        "pareto": pareto,
        "command": command,
        "fusions": why["fusions"],
        "advice": why["advice"],
    }
    found: JsonObject = _readable(data)
    return found


_FIGURES = (
    "schema_version", "tinyfuse_version", "model", "model_sha256", "target", "warnings", "macs", "model_macs",
    "predicted_instructions", "predicted_cycles", "known_instructions", "not_predicted", "timing",
    "arena_bytes", "arena_lower_bound", "placement_optimal",
    "unfused_arena_bytes",
    "state_bytes", "weight_bytes", "code_bytes", "code_bytes_measured",
    "estimated_code_bytes", "inputs", "outputs", "rewrites", "reordering",
    "fed_input", "window", "memory", "longest_step",
)  # fmt: skip


def _given_options(options: JsonObject) -> JsonObject:
    given = {name: value for name, value in options.items() if value not in (None, False, [], ())}
    return given | {"labels": sum(map(len, given["labels"]))} if "labels" in given else given


def _layers(plan: Plan, unfused: Plan) -> list[JsonObject]:
    """Groups with their operators, in the order in which they run."""
    alone = _of_operators(unfused)
    return [
        {
            "group": group.index,
            "by_row": group.stages[0].by_row,
            "instructions": known_total(costs),
            "traffic_bytes": group.traffic_bytes,
            "unfused_traffic_bytes": group.unfused_traffic_bytes,
            "scratch_bytes": group.scratch_bytes,
            "operators": [
                _operator(stage, plan.runs(group), instructions, alone.pop(stage.op.index, None))
                for stage, instructions in zip(group.stages, costs, strict=True)
            ],
        }
        for group, costs in _costed(plan)
    ]


def _operator(stage: Stage, runs: int, instructions: float | None, unfused: JsonObject | None) -> JsonObject:
    """Data of an operator.

    runs     runs of its group per inference
    unfused  figures of the same operator without fusion; None if it does not exist there, or if a rewrite split it and
             this is not its first part
    """
    op = stage.op
    return {
        "kind": op.kind,
        "index": op.index,
        "name": op_name(op),
        "makes": ", ".join(type_text(tensor) for tensor in op.outputs or op.states),
        "kernel": stage.kernel.name,
        "macs": stage.macs * runs,
        "weight_bytes": sum(constant.data.nbytes for constant in stage.constants),
        "instructions": known_total([instructions]),
        "traffic_bytes": operator_traffic(op),
        "unfused": unfused,
    }


def _of_operators(plan: Plan) -> dict[int, JsonObject]:
    """Predicted instructions by the operator's place in the file; operators made by rewrites are left out."""
    found: dict[int, JsonObject] = {}
    for group, costs in _costed(plan):
        for stage, cost in zip(group.stages, costs, strict=True):
            if stage.op.index >= 0:
                found[stage.op.index] = {"instructions": known_total([cost])}
    return found


def _costed(plan: Plan) -> list[tuple[Group, list[float | None]]]:
    return list(zip(plan.groups, plan_stages(plan), strict=True))


def _readable(value: Any) -> Any:
    """The data with all texts made visible, and tuples as lists."""
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, dict):
        return {key: _readable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(each) for each in value]
    return value
