"""Explains a step of a sliding window operator by operator, and finds changes to the model that would help."""

from __future__ import annotations

from collections.abc import Iterator

from tinyfuse.ir import Op
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import op_name
from tinyfuse.report.wrapping import wrap_text
from tinyfuse.slide import OperatorStep, account

#: smallest share of a step's multiply-accumulates that is reported as a loss
_LOSS = 0.02

_VALID = "let it and the layers before it pad nothing along time (padding 'valid'): then only new rows are made"
_KEPT = "give --optimize speed, or more with --max-ram, to keep them"


def sliding_json(plan: Plan) -> JsonObject | None:
    """JSON of the step's operators (docs/json.md); None without a sliding window."""
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
                "reason": None if step.end is None else step.end.reason,
                "running_sum": step.running_sum,
            }
            for step in steps
        ],
        "advice": [
            {"topic": "sliding window", "operator": str(op), "message": message, "hint": hint}
            for op, message, hint in _advice(steps)
        ],
    }


def _advice(steps: tuple[OperatorStep, ...]) -> Iterator[tuple[Op, str, str]]:
    total = sum(step.macs for step in steps)
    for step in steps:
        if step.end is not None:
            if step.end.hint and step.macs >= _LOSS * total:
                all_rows = f"runs over the whole window in every step, {step.macs:,} MACs: {step.end.reason}"
                yield step.op, all_rows, step.end.hint
            continue
        for rows, why, hint in (
            (step.padded, "they see the padding at the window's ends", _VALID),
            (step.made - step.new - step.padded, "they are not kept, to save state", _KEPT),
        ):
            if rows > 0 and step.macs * rows >= _LOSS * total * step.made:
                yield (
                    step.op,
                    f"makes {rows} rows again in every step, {step.macs * rows // step.made:,} MACs: {why}",
                    hint,
                )


def sliding_lines(data: JsonObject) -> list[str]:
    """Table of the step's operators for a terminal."""
    sliding = data["sliding"]
    if sliding is None:
        return []
    lines = ["", f"{'rows made':>14}  {'kept':>5}  {'bytes':>7}  {'MACs':>10}  {'of':>10}  operator"]
    for op in sliding["operators"]:
        made = f"{op['made_rows']} of {op['rows']}" if op["rows"] else "sums" if op["running_sum"] else "whole"
        lines.append(
            f"{made:>14}  {op['kept_rows']:>5}  {op['kept_bytes']:>7,}  {op['macs']:>10,}  {op['whole_macs']:>10,}  "
            f"{op['index']} {op['kind']}"
        )
        if op["reason"] is not None:
            lines += wrap_text(op["reason"], " " * 18, " " * 16)
    return [*lines, ""]
