"""What a step of a sliding window does, operator by operator, and what a model's author could change about it."""

from __future__ import annotations

from collections.abc import Iterator

from tinyfuse.ir import Op, Window
from tinyfuse.plan import Plan
from tinyfuse.report.report_json import JsonObject, op_name
from tinyfuse.slide import OperatorStep, account

#: what is told of as a loss: a share of a step's multiply-accumulates
_LOSS = 0.02


def sliding_json(plan: Plan) -> JsonObject | None:
    """The keys of docs/json.md, None without a sliding window."""
    window = plan.source.window
    if window is None:
        return None
    steps = account(window)
    return {
        "operators": [
            {
                "kind": step.op.kind,
                "index": step.op.index,
                "name": op_name(step.op),
                "rows": step.height or None,
                "made_rows": step.made if step.height else None,
                "new_rows": step.new if step.height else None,
                "kept_rows": step.kept,
                "kept_bytes": step.state,
                "macs": step.macs,
                "whole_macs": step.whole_macs,
                "reason": step.reason,
            }
            for step in steps
        ],
        "advice": [
            {"topic": "sliding window", "operator": str(op), "message": message, "hint": hint}
            for op, message, hint in _advice(window, steps)
        ],
    }


def _advice(window: Window, steps: tuple[OperatorStep, ...]) -> Iterator[tuple[Op, str, str]]:
    total = sum(step.macs for step in steps)
    for step in steps:
        again = step.made - step.new
        if step.reason is None and again > 0 and step.macs * again >= _LOSS * total * step.made:
            macs = step.macs * again // step.made
            yield (
                step.op,
                f"makes {again} rows again in every step, {macs:,} MACs: they see the padding at the window's ends",
                "let it and the layers before it pad nothing along time (padding 'valid'): then only new rows are made",
            )
        elif step.reason is not None and step.macs >= _LOSS * total and step.macs:
            yield (
                step.op,
                f"runs over the whole window in every step, {step.macs:,} MACs: {step.reason}",
                f"a step that is a multiple of the strides along time (now {window.step}), windows along time, and "
                "a mean over time in front of what needs all of it",
            )


def sliding_lines(data: JsonObject) -> list[str]:
    """A table for a terminal."""
    sliding = data["sliding"]
    if sliding is None:
        return []
    lines = ["", f"{'rows made':>14}  {'kept':>5}  {'bytes':>7}  {'MACs':>10}  {'of':>10}  operator"]
    for op in sliding["operators"]:
        made = "whole" if op["rows"] is None else f"{op['made_rows']} of {op['rows']}"
        lines.append(
            f"{made:>14}  {op['kept_rows']:>5}  {op['kept_bytes']:>7,}  {op['macs']:>10,}  {op['whole_macs']:>10,}  "
            f"{op['index']} {op['kind']}{'' if op['reason'] is None else ': ' + op['reason']}"
        )
    return [*lines, ""]
