"""JSON of a profile; docs/json.md documents every key."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tinyfuse.cost.cycles import plan_cycles, timing_of
from tinyfuse.cost.predict import known_total, plan_stages, plan_total
from tinyfuse.errors import UsageError
from tinyfuse.plan import Group, Memory, Plan, Stage
from tinyfuse.profile.image import ARENA, BANKS, COLUMNS, FLASH, OTHER, REGIONS, STATES
from tinyfuse.profile.instruction_kinds import KINDS, floor_per_mac
from tinyfuse.profile.measure import Profile, Usage
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import stage_json, timing_json
from tinyfuse.verify.emulation.result import Firmware, Outcome


@dataclass(frozen=True)
class Measured:
    """A build of a model and its run.

    profile        None if single instructions were not counted
    cycles_source  source of the core's timing; None if there is none
    """

    plan: Plan
    firmware: Firmware
    outcome: Outcome
    profile: Profile | None
    cycles_source: str | None


def profile_json(measured: Measured) -> JsonObject:
    """Figures of one build, including groups and operators."""
    plan, outcome, profile = measured.plan, measured.outcome, measured.profile
    predicted, cycles = plan_stages(plan), plan_cycles(plan)
    timing = timing_of(plan.context.target, plan.options)
    predicted_cycles = plan_total(cycles)
    return {
        **_usage(plan.memory, profile.total if profile else None, plan.macs, None),
        "instructions": outcome.instructions,
        "instructions_mean": outcome.instructions_mean,
        "instructions_per_mac": _ratio(outcome.instructions, plan.macs),
        "macs": plan.macs,
        "predicted_instructions": plan_total(predicted),
        "predicted_cycles": predicted_cycles,
        "predicted_ms": timing.milliseconds(predicted_cycles),
        "estimated_ms": timing.milliseconds(profile.total.cycles if profile else None),
        "timing": None if plan.options.timing is None else timing_json(timing),
        "cycles_source": measured.cycles_source,
        "arena_bytes": plan.arena_bytes,
        "state_bytes": plan.state_bytes,
        "ram_bytes": measured.firmware.ram_bytes,
        "stack_bytes": outcome.stack_bytes,
        "board_cycles": None,
        "groups": [_group(measured, *each) for each in zip(plan.groups, predicted, cycles, strict=True)],
        "outside_groups": _usage(plan.memory, profile.outside if profile else None, None, None),
    }


def _group(measured: Measured, group: Group, predicted: list[float | None], cycles: list[float | None]) -> JsonObject:
    profile = measured.profile
    usage = profile.groups.get(group.index) if profile else None
    runs = measured.plan.runs(group)
    macs, elements = group.macs * runs, sum(tensor.elements for tensor in group.outputs) * runs
    return {
        "name": f"{measured.plan.options.name}_group_{group.index}",
        "macs": macs,
        "output_elements": elements,
        **_usage(measured.plan.memory, usage, macs, elements),
        "predicted_instructions": known_total(predicted),
        "predicted_cycles": known_total(cycles),
        "board_cycles": None,
        "stack_bytes": _stack(measured, usage),
        "operators": [_operator(measured, group, *each) for each in zip(group.stages, predicted, cycles, strict=True)],
    }


def _operator(
    measured: Measured, group: Group, stage: Stage, predicted: float | None, cycles: float | None
) -> JsonObject:
    profile = measured.profile
    usage, functions = None, None
    if profile:
        number = group.stages.index(stage)
        parts = {
            part.function: used for part, used in profile.parts.get(group.index, {}).items() if part.stage == number
        }
        usage = total(parts.values())
        functions = [
            {"name": name or None, "instructions": used.instructions, "estimated_cycles": whole(used.cycles)}
            for name, used in sorted(parts.items(), key=lambda part: -part[1].instructions)
        ]
    runs = measured.plan.runs(group)
    macs, elements = stage.macs * runs, sum(tensor.elements for tensor in stage.op.outputs) * runs
    return {
        **stage_json(stage),
        "macs": macs,
        "output_elements": elements,
        **_usage(measured.plan.memory, usage, macs, elements),
        "floor_per_mac": floor_per_mac(measured.plan.context.target, stage.op.input.dtype) if macs else None,
        "predicted_instructions": known_total([predicted]),
        "predicted_cycles": known_total([cycles]),
        "functions": functions,
    }


def add_board_cycles(data: JsonObject, answer: JsonObject, name: str) -> JsonObject:
    """Adds the cycles of an answer of `board validate`, read from file `name`. UsageError if that is about another
    module."""
    same = all(answer.get(key) == json.loads(json.dumps(data[key])) for key in ("model_sha256", "target", "options"))
    names = [group["name"] for group in data["groups"]]
    cycles = {group.get("name"): group.get("cycles") for group in answer["groups"] if isinstance(group, dict)}
    if not same or [*cycles] != names:
        raise UsageError(f"--board {name}: it is about another model, target or options than this profile")
    counted = [answer.get("cycles"), *cycles.values()]
    if not all(type(each) is int and each >= 0 for each in counted):
        raise UsageError(f"--board {name}: it lacks cycles of some group; did the board have a counter?")
    groups = [group | {"board_cycles": cycles[group["name"]]} for group in data["groups"]]
    return data | {"board_cycles": answer["cycles"], "groups": groups}


def total(usages: Iterable[Usage]) -> Usage:
    """Sum of several usages, measured on the same core."""
    usages = list(usages)
    cycles = [used.cycles for used in usages if used.cycles is not None]
    zeros = (0,) * COLUMNS
    return Usage(
        kinds=tuple(map(sum, zip(*(used.kinds for used in usages), strict=True))) or (0,) * len(KINDS),
        loaded=tuple(map(sum, zip(zeros, *(used.loaded for used in usages), strict=True))),
        stored=tuple(map(sum, zip(zeros, *(used.stored for used in usages), strict=True))),
        calls=sum(used.calls for used in usages),
        cycles=sum(cycles) if len(cycles) == len(usages) else None,
        lowest=min((used.lowest for used in usages if used.lowest is not None), default=None),
    )


def _usage(memory: Memory | None, usage: Usage | None, macs: int | None, elements: int | None) -> JsonObject:
    """Keys that a build, a group and an operator share."""
    if usage is None:
        keys = (
            "instructions",
            "instructions_per_mac",
            "instructions_per_output",
            "instruction_kinds",
            "loaded_bytes",
            "stored_bytes",
            "bank_bytes",
            "calls",
            "estimated_cycles",
        )
        return dict.fromkeys(keys)
    return {
        "instructions": usage.instructions,
        "instructions_per_mac": _ratio(usage.instructions, macs),
        "instructions_per_output": _ratio(usage.instructions, elements),
        "instruction_kinds": dict(zip(KINDS, usage.kinds, strict=True)),
        "loaded_bytes": _regions(memory, usage.loaded),
        "stored_bytes": _regions(memory, usage.stored),
        "bank_bytes": None if memory is None else _banks(memory, usage),
        "calls": usage.calls,
        "estimated_cycles": whole(usage.cycles),
    }


def _regions(memory: Memory | None, columns: tuple[int, ...]) -> dict[str, int]:
    """Bytes by memory. Weights count as flash and parts of the arena as arena, wherever they lie; a state is other
    memory."""
    found = dict(zip(REGIONS, columns, strict=False))
    for number, bank in enumerate(memory.banks if memory else ()):
        found[REGIONS[FLASH if bank.flash else ARENA]] += columns[BANKS + number]
    found[REGIONS[OTHER]] += columns[STATES]
    return found


def _banks(memory: Memory, usage: Usage) -> dict[str, dict[str, int]]:
    """Bytes loaded from and stored to each bank: its weights, its part of the arena, and its states."""
    found = {}
    for number, bank in enumerate(memory.banks):
        columns = [BANKS + number]
        columns += [c for c, place in ((ARENA, memory.arena), (STATES, memory.state)) if place == bank.name]
        found[bank.name] = {
            "loaded": sum(usage.loaded[column] for column in columns),
            "stored": sum(usage.stored[column] for column in columns),
        }
    return found


def _stack(measured: Measured, usage: Usage | None) -> int | None:
    """Stack bytes of a group: those of the whole inference for the group with the deepest stack."""
    deepest = measured.profile.total.lowest if measured.profile else None
    if usage is None or usage.lowest is None or deepest is None or measured.outcome.stack_bytes is None:
        return None
    return max(0, measured.outcome.stack_bytes - (usage.lowest - deepest))


def _ratio(instructions: int | None, unit: int | None) -> float | None:
    return round(instructions / unit, 3) if instructions is not None and unit else None


def whole(cycles: float | None) -> int | None:
    """Cycles as a whole number; None if they were not counted."""
    return None if cycles is None else round(cycles)
