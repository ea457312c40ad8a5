"""The report as JSON-able data; docs/json.md documents every key."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import asdict

from tinyfuse.board_timing import BoardTiming
from tinyfuse.cost.code import CodeBytes, estimated_code_bytes
from tinyfuse.cost.cycles import predicted_cycles, predicted_ms, timing_of
from tinyfuse.cost.predict import predicted_total
from tinyfuse.cost.steps import longest_step
from tinyfuse.emit.header import tensor_symbols
from tinyfuse.ir import ARITHMETIC, FORMATS, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import Plan, Stage, Storage, constant_key
from tinyfuse.report.answer import JsonObject, envelope
from tinyfuse.report.compressed import compressed_json
from tinyfuse.report.limits import limits_json, reached_limits
from tinyfuse.report.memory import memory_json
from tinyfuse.report.predicted import known_json
from tinyfuse.report.window import window_json
from tinyfuse.rewrite.fold_constants import model_macs


def plan_envelope(plan: Plan) -> JsonObject:
    """Keys that begin every JSON answer about a plan."""
    return envelope(
        plan.graph.path,
        plan.graph.sha256,
        plan.context.target.name,
        asdict(plan.options),
        [*plan.warnings, *plan.source.notes],
    )


def report_json(plan: Plan, unfused_arena_bytes: int, code: CodeBytes | None, whole: Plan | None = None) -> JsonObject:
    """Report of a plan as JSON data (docs/json.md).

    `code` is None if no compiler measured it. With --slide, `plan` is that of a step and `whole` that of the model.
    """
    estimated = estimated_code_bytes(plan)
    return {
        "model_format": FORMATS[plan.source.runtime],
        "runtime": plan.source.runtime,
        "arithmetic": ARITHMETIC[plan.source.runtime],
        "macs": plan.macs,
        "model_macs": model_macs(plan.source),
        "predicted_instructions": predicted_total(plan),
        **known_json(plan),
        **cycles_json(plan),
        "arena_bytes": plan.arena_bytes,
        "arena_lower_bound": plan.arena_lower_bound,
        "placement_optimal": plan.arena_lower_bound == plan.arena_bytes,
        "unfused_arena_bytes": unfused_arena_bytes,
        "state_bytes": plan.state_bytes,
        "states": _states(plan),
        "weight_bytes": plan.weight_bytes,
        "memory": memory_json(plan),
        "compressed": compressed_json(plan),
        "code_bytes": estimated if code is None else code.module,
        "code_bytes_measured": code is not None,
        "helper_bytes": None if code is None else code.helpers,
        "estimated_code_bytes": estimated,
        "rewrites": _rewrites(plan),
        "reordering": reordering_json(plan),
        "limits": limits_json(reached_limits(plan)),
        "inputs": _ports(plan.source.inputs),
        "outputs": _ports(plan.source.outputs),
        "longest_step": _longest_step(plan),
        "fed_input": _fed_input(plan),
        "window": window_json(plan, whole),
        "groups": _groups(plan),
        "buffers": [
            {
                "name": buffer.name,
                "offset": plan.placement.offsets[buffer.name],
                "bytes": buffer.bytes,
                "first_step": buffer.first_step,
                "last_step": buffer.last_step,
                "owner": buffer.owner,
            }
            for buffer in plan.buffers
        ],
        "views": [
            {"tensor": tensor.name, "buffer": storage.buffer, "offset": storage.offset, "bytes": tensor.bytes}
            for tensor, storage in _parts(plan)
        ],
    }


def _states(plan: Plan) -> list[JsonObject]:
    return [
        {
            "name": tensor.name,
            "offset": offset,
            "bytes": tensor.bytes,
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "ring": tensor.cursor is not None,
            "updated_in_place": _is_updated_in_place(plan, tensor),
        }
        for tensor, offset in plan.states.items()
    ]


def _groups(plan: Plan) -> list[JsonObject]:
    return [
        {
            "name": f"{plan.options.name}_group_{group.index}",
            "operators": [{"kind": op.kind, "index": op.index, "name": op_name(op)} for op in group.ops],
            "kernels": [stage.kernel.name for stage in group.stages],
            "library": group.library,
            "macs": group.macs * plan.runs(group),
            "scratch_bytes": group.scratch_bytes,
            "traffic_bytes": group.traffic_bytes,
            "unfused_traffic_bytes": group.unfused_traffic_bytes,
        }
        for group in plan.groups
    ]


def cycles_json(plan: Plan) -> JsonObject:
    """Estimated cycles and milliseconds of an inference, and the board that they are estimated for."""
    timing = timing_of(plan.context.target, plan.options)
    return {
        "predicted_cycles": predicted_cycles(plan),
        "predicted_ms": predicted_ms(plan),
        "timing": None if plan.options.timing is None else timing_json(timing),
    }


def timing_json(timing: BoardTiming) -> JsonObject:
    """JSON of a board's timing, and the cycles that a byte loaded from its flash waits."""
    return asdict(timing) | {"cycles_per_flash_byte": round(timing.flash_byte, 4)}


def _longest_step(plan: Plan) -> JsonObject | None:
    """Longest step with its operator and predicted instructions; None for a module without NAME_step."""
    step = longest_step(plan) if plan.options.step else None
    if step is None:
        return None
    return {"predicted_instructions": step.instructions, "group": step.group, "operator": str(step.op)}


def _parts(plan: Plan) -> list[tuple[Tensor, Storage]]:
    """Tensors that are parts of others (made by views), with their storage."""
    views = [op for op in plan.graph.ops if op.view]
    parts = dict.fromkeys(part.part for op in views for part in FAMILIES[op.kind].parts(op))
    return [(tensor, plan.storage[tensor]) for tensor in parts]


def op_name(op: Op) -> str:
    """Name of an operator's first output, or of the state that it writes if it has no output."""
    return (op.outputs + op.states)[0].name


def stage_json(stage: Stage) -> JsonObject:
    """Kind, place in the file, name and kernel of a stage's operator."""
    return {
        "kind": stage.op.kind,
        "index": stage.op.index,
        "name": op_name(stage.op),
        "kernel": stage.kernel.name,
    }


def reordering_json(plan: Plan) -> JsonObject | None:
    """Effect of running the operators in another order than the file's; None if they run in the file's order."""
    if plan.reordering is None:
        return None
    return {
        "operators_moved": moved_operators([op.index for group in plan.groups for op in group.ops]),
        "file_order_arena_bytes": plan.reordering.arena_bytes,
        "file_order_predicted_instructions": plan.reordering.instructions,
    }


def moved_operators(indices: list[int]) -> int:
    """Fewest operators that must move to turn the file's order into the given one; `indices` are places in the file.

    It is the number of operators outside a longest increasing subsequence. Operators that are not in the file (-1) are
    not counted.
    """
    in_file = [index for index in indices if index >= 0]
    ends: list[int] = []  # per length, the smallest end of a subsequence; a rewrite may split an operator in two
    for index in in_file:
        ends[(at := bisect_right(ends, index)) : at + 1] = [index]
    return len(in_file) - len(ends)


def _rewrites(plan: Plan) -> list[JsonObject]:
    """Savings of each rewrite, and last those of storing equal constants once."""
    found = [
        {
            "pass": saving.rewrite,
            "what": _operators(saving.operators),
            "macs_saved": saving.macs,
            "weight_bytes_saved": saving.weight_bytes,
            "copied_bytes_saved": saving.copied_bytes,
        }
        for saving in plan.graph.savings
    ]
    constants = [constant for group in plan.groups for stage in group.stages for constant in stage.constants]
    shared = sum(constant.data.nbytes for constant in constants) - sum(
        data.nbytes for data in {constant_key(c): c.data for c in constants}.values()
    )
    if shared:
        what = f"{len(constants) - len(plan.unique_constants)} constants equal to others"
        found.append(
            {
                "pass": "share_constants",
                "what": what,
                "macs_saved": 0,
                "weight_bytes_saved": shared,
                "copied_bytes_saved": 0,
            }
        )
    return found


def _operators(ops: tuple[Op, ...]) -> str:
    """Kinds with their counts, "2 CONV_2D, PAD"."""
    counts = Counter(op.kind for op in ops)
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counts.items())


def _fed_input(plan: Plan) -> str | None:
    window = plan.source.window
    fed = plan.slid if window is not None and window.rows else plan.fed
    return fed.name if fed else None


def _ports(tensors: tuple[Tensor, ...]) -> list[JsonObject]:
    return [
        {
            "name": tensor.name,
            "symbol": symbol,
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
            "scale": tensor.quant.scale[0] if tensor.quant and not tensor.quant.per_channel else None,
            "zero_point": tensor.quant.zero_point[0] if tensor.quant and not tensor.quant.per_channel else None,
        }
        for tensor, symbol in zip(tensors, tensor_symbols(tensors), strict=True)
    ]


def _is_updated_in_place(plan: Plan, state: Tensor) -> bool:
    """Tells whether runs write only a part of a variable, in place (rewrite/update_states.py)."""
    return any(op.kind == "UPDATE_STATE" and op.input is state for op in plan.graph.ops)
