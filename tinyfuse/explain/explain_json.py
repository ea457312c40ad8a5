"""An explanation as JSON-able data; docs/json.md documents every key."""

from __future__ import annotations

from dataclasses import asdict

from tinyfuse.cost.predict import predicted_total
from tinyfuse.explain.advice import advice
from tinyfuse.explain.fusions import fusions
from tinyfuse.explain.sliding import sliding_json
from tinyfuse.ir import Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.elementwise.merged import Merged
from tinyfuse.ops.elementwise.table import Table
from tinyfuse.ops.layers.looked_up import LookedUp
from tinyfuse.ops.layers.tiled import Tiled
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.limits import limits_json, reached_limits
from tinyfuse.report.predicted import known_json
from tinyfuse.report.report_json import cycles_json, reordering_json
from tinyfuse.schedule.groups.tiling import macs_again


def explain_json(plan: Plan) -> JsonObject:
    """JSON of the explanation, for scripts."""
    sliding = sliding_json(plan)
    return {
        "arena_bytes": plan.arena_bytes,
        "macs": plan.macs,
        "predicted_instructions": predicted_total(plan),
        **known_json(plan),
        **cycles_json(plan),
        "reordering": reordering_json(plan),
        "limits": limits_json(reached_limits(plan)),
        "fusions": _fusions(plan),
        "tables": _tables(plan),
        "merged": [
            {"operator": _operator(op), "kinds": list(op.attributes.kinds)}
            for op in plan.graph.ops
            if isinstance(op.attributes, Merged)
        ],
        "tiled": _tiled(plan),
        "again": _computed_again(plan),
        "sliding": sliding,
        "advice": [
            *(
                {"topic": found.topic, "operator": str(found.op), "message": found.message, "hint": found.hint}
                for found in advice(plan)
            ),
            *(sliding.pop("advice") if sliding else []),
        ],
    }


def _fusions(plan: Plan) -> list[JsonObject]:
    """Fusions that were weighed, taken or not."""
    return [
        {
            "taken": fusion.taken,
            "groups": list(fusion.groups),
            "operators": [_operator(op) for op in fusion.ops],
            "fused": asdict(fusion.fused) if fusion.fused else None,
            "apart": asdict(fusion.apart),
            "reason": fusion.reason,
        }
        for fusion in fusions(plan)
    ]


def _tables(plan: Plan) -> list[JsonObject]:
    """JSON of lookup tables, those that run alone and those fused into a layer."""
    tables = [(op, op.attributes.table if isinstance(op.attributes, LookedUp) else op) for op in plan.graph.ops]
    return [
        {
            "operator": _operator(op),
            "kinds": list(table.attributes_as(Table).kinds),
            "channels": len(table.operand(1).values) if table.operand(1).values.ndim > 1 else 1,
            "bytes": table.operand(1).bytes,
            "in_layer": table is not op,
        }
        for op, table in tables
        if isinstance(table.attributes, Table)
    ]


def _tiled(plan: Plan) -> list[JsonObject]:
    """Layers that are computed in tiles."""
    return [
        {
            "operator": _operator(op),
            "kinds": list(op.attributes.kinds),
            "rows": op.attributes.rows,
            "columns": op.attributes.columns,
            "macs": FAMILIES[op.kind].macs(op),
            "macs_again": macs_again(op),
        }
        for op in plan.graph.ops
        if isinstance(op.attributes, Tiled)
    ]


def _computed_again(plan: Plan) -> list[JsonObject]:
    """Operators that are computed a second time to save RAM."""
    return [
        {
            "operator": _operator(saving.operators[-1]),
            "kinds": [op.kind for op in saving.operators],
            "macs": -saving.macs,
        }
        for saving in plan.graph.savings
        if saving.rewrite in ("recompute", "rematerialize")
    ]


def _operator(op: Op) -> JsonObject:
    return {"kind": op.kind, "index": op.index, "name": op.output.name if op.outputs else ""}
