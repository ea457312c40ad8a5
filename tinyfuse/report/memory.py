"""Report of memory banks: their content, the bytes that an inference reads, and the effect of copying weights ahead."""

from __future__ import annotations

from typing import Any

from tinyfuse.banks import Bank
from tinyfuse.cost.activation_traffic import buffer_traffic
from tinyfuse.cost.traffic import Layer, layers
from tinyfuse.plan import Memory, Plan


def memory_json(plan: Plan) -> dict[str, Any] | None:
    """JSON of the memory banks; None if the user named none.

    Loads, and traffic (loads and stores), are predicted bytes per inference. Traffic of the state is not predicted.
    """
    memory = plan.memory
    if memory is None:
        return None
    every = list(layers(plan))
    return {
        "banks": [_bank(plan, memory, bank.name, every) for bank in memory.banks],
        "arena_parts": [{"bank": part.bank, "start": part.start, "bytes": part.bytes} for part in memory.parts],
        "copies": [
            {
                "group": staged.group,
                "begun": staged.begun,
                "bytes": staged.bytes,
                "offset": plan.placement.offsets[staged.buffer],
            }
            for staged in memory.staged
        ],
        "copied_bytes": memory.copied_bytes,
        "uncopied_arena_bytes": memory.uncopied_arena_bytes,
        "code": None if memory.code is None else _code(memory.code),
    }


def _code(bank: Bank) -> dict[str, Any]:
    return {"name": bank.name, "bytes": bank.bytes, "kind": "flash" if bank.flash else "ram"}


def _bank(plan: Plan, memory: Memory, name: str, every: list[Layer]) -> dict[str, Any]:
    bank = memory.bank(name)
    held = [layer for layer in every if memory.weights.get(layer.keys[0]) == name]
    weights = sum(len(key[3]) for layer in held for key in layer.keys)
    arena = plan.arena_bytes_in(name)
    state = plan.state_bytes if memory.state == name else 0
    copied = {array.key for staged in memory.staged for array in staged.arrays}
    left = sum(layer.loads for layer in held if layer.keys[0] not in copied)
    by_copies = sum(
        len(array.key[3]) for staged in memory.staged for array in staged.arrays if memory.weights[array.key] == name
    )
    return {
        "name": name,
        "bytes": bank.bytes,
        "kind": "flash" if bank.flash else "ram",
        "slow": bank.slow,
        "fast": bank.fast,
        "used_bytes": arena + state + weights,
        "arena_bytes": arena,
        "arena_traffic": _arena_traffic(plan, name),
        "state_bytes": state,
        "weight_bytes": weights,
        "weight_loads": left + by_copies,
        "uncopied_weight_loads": sum(layer.loads for layer in held),
        "layers": [
            {
                "operator": layer.what,
                "bytes": sum(len(key[3]) for key in layer.keys),
                "loads": layer.loads,
                "copied": layer.keys[0] in copied,
            }
            for layer in held
        ],
    }


def _arena_traffic(plan: Plan, bank: str) -> int:
    """Predicted bytes that an inference loads from and stores to the arena's part in a bank."""
    traffic, offsets = buffer_traffic(plan), plan.placement.offsets
    if not plan.arena_parts:
        return sum(traffic.values()) if plan.arena_bytes_in(bank) else 0
    return sum(
        traffic[buffer.name]
        for part in plan.arena_parts
        for buffer in plan.buffers
        if part.bank == bank and 0 <= offsets[buffer.name] - part.start < part.bytes
    )


def memory_lines(data: dict[str, Any] | None) -> list[str]:
    """Lines of the summary: one per bank, and one for copied weights."""
    if data is None:
        return []
    traffic = sum(bank["arena_traffic"] for bank in data["banks"]) if data["arena_parts"] else None
    lines = [_bank_line(bank, traffic) for bank in data["banks"]]
    if data["code"]:
        sort = "flash" if data["code"]["kind"] == "flash" else "RAM"
        lines.append(f"{data['code']['name']:<8} {'code':>17}   of {data['code']['bytes']:,}, {sort}")
    if data["copies"]:
        ahead = sum(copy["begun"] < copy["group"] for copy in data["copies"])
        groups = "1 group" if len(data["copies"]) == 1 else f"{len(data['copies'])} groups"
        early = f", for {ahead} of them while the group before runs" if ahead else ""
        lines.append(
            f"copied   {data['copied_bytes']:>11,} bytes   of weights into the arena in each inference, for "
            f"{groups}{early}; without copies the arena takes {data['uncopied_arena_bytes']:,}"
        )
    return lines


def _bank_line(bank: dict[str, Any], traffic: int | None) -> str:
    """Line of a bank. `traffic` is the traffic of all parts of a divided arena, in bytes; None for a whole arena."""
    held = [what for what in ("arena", "state") if bank[f"{what}_bytes"]]
    if traffic is not None and bank["arena_bytes"]:
        share = 100 * bank["arena_traffic"] / max(1, traffic)
        held[0] = f"part of the arena, {bank['arena_bytes']:,}, with {share:.0f} % of its loads and stores, predicted"
    if bank["layers"]:
        held.append(f"weights of {len(bank['layers'])} layers, {bank['weight_loads']:,} bytes loaded, predicted")
        if bank["weight_loads"] != bank["uncopied_weight_loads"]:
            held[-1] += f" ({bank['uncopied_weight_loads']:,} without copies)"
    speed = "slow " if bank["slow"] else "fast " if bank["fast"] else ""
    sort = f"{speed}{'flash' if bank['kind'] == 'flash' else 'RAM'}"
    what = ", ".join(held) or "nothing"
    return f"{bank['name']:<8} {bank['used_bytes']:>11,} bytes   of {bank['bytes']:,}, {sort}: {what}"


def layer_lines(data: dict[str, Any] | None) -> list[str]:
    """Lines of report.txt: each layer with its bank."""
    if data is None or not any(bank["layers"] for bank in data["banks"]):
        return []
    width = max(len(bank["name"]) for bank in data["banks"])
    lines = [f"{'bank':<{width}}  {'bytes':>9}  {'loaded':>11}  weights of"]
    for bank in data["banks"]:
        for layer in bank["layers"]:
            copied = ", copied ahead" if layer["copied"] else ""
            lines.append(
                f"{bank['name']:<{width}}  {layer['bytes']:>9,}  {layer['loads']:>11,}  {layer['operator']}{copied}"
            )
    return [*lines, ""]
