"""Report of a sliding window: one step beside the whole model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyfuse.cost.predict import predicted_total
from tinyfuse.emit.identifiers import comment
from tinyfuse.ops import graph_macs
from tinyfuse.plan import Plan

if TYPE_CHECKING:  # report/answer.py is not needed at run time
    from tinyfuse.report.answer import JsonObject


def window_json(plan: Plan, whole: Plan | None) -> JsonObject | None:
    """JSON of the window (docs/json.md); None without --slide. `whole` is the plan of the whole model."""
    window = plan.source.window
    if window is None:
        return None
    return {
        "input": plan.source.inputs[window.input].name,
        "axis": window.axis,
        "frames": window.frames,
        "step": window.step,
        "steps_to_fill": window.steps_to_fill,
        "rows": window.rows,
        "whole_macs": graph_macs(window.whole),
        "whole_arena_bytes": None if whole is None else whole.arena_bytes,
        "whole_state_bytes": None if whole is None else whole.state_bytes,
        "whole_predicted_instructions": None if whole is None else predicted_total(whole),
    }


def window_lines(data: JsonObject) -> list[str]:
    """Lines about the window and the whole model, shown below the figures of a step."""
    window = data["window"]
    if window is None:
        return []
    times = f", {window['whole_macs'] / data['macs']:.1f} times as many" if data["macs"] else ""
    parts = [f"{window['whole_macs']:,} MACs{times}"]
    if window["whole_arena_bytes"] is not None:
        state = f" and a state of {window['whole_state_bytes']:,}" if window["whole_state_bytes"] else ""
        parts.append(f"an arena of {window['whole_arena_bytes']:,}{state} bytes")
    if window["whole_predicted_instructions"] is not None:
        parts.append(f"{window['whole_predicted_instructions']:,} instructions, predicted")
    frames = "frame" if window["step"] == 1 else "frames"
    if window["rows"]:
        frames += f" in {window['rows']} row{'s' if window['rows'] > 1 else ''}"
    return [
        f"window   {window['frames']:>11,} frames  of {comment(window['input'])}; each step brings {window['step']} "
        f"{frames}; the first {window['steps_to_fill'] - 1} steps have no result",
        f"whole    without --slide the model takes {', '.join(parts)}",
    ]
