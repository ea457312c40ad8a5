"""Memory banks in the generated files: sections in the C, and fragments of linker scripts that place them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tinyfuse.emit.render import render
from tinyfuse.plan import Memory, Plan
from tinyfuse.plan.memory import STAGED_ALIGN

#: bytes of an instruction cache line of Cortex-M7 and M85
_CODE_ALIGN = 32


@dataclass(frozen=True)
class BankSection:
    """Sections that lie in a bank, `inputs`, and their `kind` of content. Their names begin like the compiler's own
    sections, so that a linker script without the fragment places them there."""

    name: str
    bytes: int
    flash: bool
    align: int
    inputs: tuple[str, ...]
    kind: Literal["ram", "weights", "code"]


def memory_context(plan: Plan) -> dict[str, Any]:
    """Variables for memory banks in the templates; empty without banks."""
    memory = plan.memory or Memory((), None, None)
    used = set(memory.weights.values())
    return {
        "banks": memory.banks,
        "code": memory.code.name if memory.code else None,
        "arena": memory.arena,
        "state": memory.state,
        "weights": [bank.name for bank in memory.banks if bank.name in used],
        "copies": sum(len(staged.arrays) for staged in memory.staged),
        "copied_bytes": memory.copied_bytes,
        "align": STAGED_ALIGN,
        "sections": bank_sections(plan),
    }


def bank_sections(plan: Plan) -> list[BankSection]:
    """Sections of the banks that are not empty, in the order of the banks."""
    memory, name, found = plan.memory or Memory((), None, None), plan.options.name, []
    for bank in memory.banks:
        held = {"arena": plan.arena_bytes_in(bank.name) > 0, "state": memory.state == bank.name}
        inputs = [f".bss.{bank.name}.{name}_{what}" for what, here in held.items() if here]
        if bank.name in memory.weights.values():
            inputs.append(f".rodata.{bank.name}.{name}_weights")
        if inputs:
            kind: Literal["ram", "weights"] = "weights" if bank.flash else "ram"
            found.append(BankSection(bank.name, bank.bytes, bank.flash, plan.arena_align, tuple(inputs), kind))
    if memory.code is not None:
        section, bank = f".text.{memory.code.name}.{name}_code", memory.code
        found.append(BankSection(bank.name, bank.bytes, bank.flash, _CODE_ALIGN, (section,), "code"))
    return found


#: suffixes of the fragments for GNU ld, armlink and IAR
LINKERS = ("ld", "sct", "icf")


def linker_fragments(plan: Plan, context: Mapping[str, Any]) -> dict[str, str]:
    """Text of each linker's fragment by file name; empty without banks."""
    if plan.memory is None:
        return {}
    return {f"{plan.options.name}_memory.{end}": render(f"memory.{end}.j2", context) for end in LINKERS}
