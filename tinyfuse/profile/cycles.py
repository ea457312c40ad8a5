"""Estimates cycles of a run from published timings of the core.

It uses the instructions and their counts, but knows no wait states, caches, bus conflicts or waiting for results. So
the figure is always called an estimate.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tinyfuse.profile.image import Instruction

_IF = r"(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?(\.[nw])?"  # suffixes of a mnemonic
_LOADS = rf"ldr(b|h|sb|sh|t)?{_IF}"
_STORES = rf"str(b|h|t)?{_IF}"
_DOUBLES = rf"(ldrd|strd){_IF}"
_MULTIPLES = rf"((ldm|stm)(ia|db)?|push|pop){_IF}"
_DIVISIONS = rf"[su]div{_IF}"
_FLOAT_MULTIPLES = r"v(push|pop|ldm|stm)\w*(\..*)?"
_LOOP_ENDS = r"(le|letp)(\.[nw])?"


def _registers(instruction: Instruction) -> int:
    """Number of registers between the braces of an instruction that loads or stores several."""
    inside = re.search(r"\{([^}]*)\}", instruction.operands)
    count = 0
    for item in inside[1].split(",") if inside else ():
        first, _, last = (re.sub(r"\D", "", end) for end in item.strip().partition("-"))
        count += int(last) - int(first) + 1 if first and last else 1
    return count


Cost = float | Callable[[Instruction], float]


@dataclass(frozen=True)
class Timing:
    """Timing of a core.

    source   publication of the timing.
    rules    (pattern of the whole mnemonic, cycles); the first match counts; one cycle without a match.
    taken    extra cycles of a jump, except for `free_jumps`.
    pipes    patterns of instructions that occupy a unit which following instructions may need.
    same_pipe, other   extra cycles if the previous instruction used the same pipe, or did not.
    """

    source: str
    rules: tuple[tuple[str, Cost], ...]
    taken: float
    free_jumps: str
    pipes: tuple[str, ...]
    same_pipe: float
    other: float

    def pipe(self, instruction: Instruction | None) -> str | None:
        name = instruction.mnemonic if instruction else ""
        return next((pipe for pipe in self.pipes if re.fullmatch(pipe, name)), None)

    def cycles(
        self, instruction: Instruction, before: Instruction | None, executed: int, jumps: int, after: int
    ) -> float:
        """Estimated cycles of an instruction that ran `executed` times, `after` of these right after `before`, and
        jumped `jumps` times."""
        cost: Cost = next((c for p, c in self.rules if re.fullmatch(p, instruction.mnemonic)), 1)
        total = executed * (cost(instruction) if callable(cost) else cost)
        pipe = self.pipe(instruction)
        if pipe is not None:
            same = after if self.pipe(before) == pipe else 0
            total += same * self.same_pipe + (executed - same) * self.other
        if not re.fullmatch(self.free_jumps, instruction.mnemonic):
            total += jumps * self.taken
        return total


_FLOAT = (
    (r"vldr(\..*)?|vstr(\..*)?", 2),
    (_FLOAT_MULTIPLES, lambda i: 1 + _registers(i)),
    (r"v(n?ml[as]|fn?m[as])\.f32", 3),
    (r"v(div|sqrt)\.f32", 14),
)

_M4 = Timing(
    source="Cortex-M4 Technical Reference Manual (Arm 100166), instruction set summary and load/store timings",
    rules=(
        (_LOADS, 1),  # and one more unless a load or store is right before, see pipes
        (_STORES, 1),  # the store itself overlaps with the next instruction
        (_DOUBLES, 3),
        (_MULTIPLES, lambda i: 1 + _registers(i)),
        (_DIVISIONS, 12),  # 2 to 12, depending on operands, which are unknown here
        (r"tb[bh]", 2),
        *_FLOAT,
    ),
    taken=2,  # "P", the pipeline refill: 1 to 3
    free_jumps="",
    pipes=(_LOADS,),
    same_pipe=0,
    other=1,
)

_M3 = replace(
    _M4,
    source="Cortex-M3 Technical Reference Manual (Arm DDI 0337), instruction set summary and load/store timings",
    rules=(
        (r"ml[as]" + _IF, 2),
        (r"[su]mull" + _IF, 4),  # 3 to 5, depending on operands
        (r"[su]mlal" + _IF, 5.5),  # 4 to 7, depending on operands
        *_M4.rules,
    ),
)

_M0PLUS = Timing(
    source="Cortex-M0+ Technical Reference Manual (Arm DDI 0484), instruction set summary; the multiplier of one cycle",
    rules=(
        (_LOADS, 2),
        (_STORES, 2),
        (_MULTIPLES, lambda i: 1 + _registers(i) + ("pc" in i.operands)),
        (rf"bl{_IF}", 2),  # and one more for the jump, like any jump
        (r"mrs|msr|dmb|dsb|isb", 3),
    ),
    taken=1,
    free_jumps="",
    pipes=(),
    same_pipe=0,
    other=0,
)

_M55 = Timing(
    source="scheduling model of the Cortex-M55 in LLVM (ARMScheduleM55.td, by Arm): an MVE instruction takes two "
    "beats, which overlap with another pipe's; no dual issue assumed",
    rules=(
        (_LOOP_ENDS, 0),  # free after the first iteration
        (_DOUBLES, 2),
        (_MULTIPLES, lambda i: 1 + _registers(i) / 2),  # 64-bit data bus
        (_DIVISIONS, 12),
        (r"tb[bh]", 2),
        (_FLOAT_MULTIPLES, lambda i: 1 + _registers(i) / 2),
    ),
    taken=3,  # MispredictPenalty
    free_jumps=_LOOP_ENDS,
    pipes=(
        r"v(mrs|msr|ctp|pst|pt|pnot)\w*(\..*)?",
        r"v(ldr|str|ld[24]|st[24])\w*(\..*)?",
        r"v(q?r?d?mul|q?r?d?ml|fm)\w*(\..*)?",  # multiplications
        r"v(?!push|pop|ldm|stm)\w+(\..*)?",  # the integer pipe
    ),
    same_pipe=1,
    other=0,
)

_M33 = replace(
    _M4,
    source="no timings of the Cortex-M33 are published; LLVM schedules it by its model of the Cortex-M4 "
    "(ARMProcessors.td), so these are the M4's: " + _M4.source,
)

_M7 = Timing(
    source="scheduling model of the Cortex-M7 in LLVM (ARMScheduleM7.td): two instructions a cycle where their units "
    "allow; every branch predicted, no waiting for a result",
    rules=(
        (r"ldrd" + _IF, 1),  # alone in its cycle
        (r"strd" + _IF, 1),
        (_MULTIPLES, lambda i: max(1, _registers(i) / 2)),  # alone; 64-bit data bus
        (_DIVISIONS, 7),  # alone
        (r"tb[bh]", 2),
        (_FLOAT_MULTIPLES, lambda i: max(1, _registers(i) / 2)),
        (r"v(div|sqrt)\.f32", 16),
        (r".*", 0.5),
    ),
    taken=0,
    free_jumps="",
    # there is one unit for each of these, so two in a row take two cycles
    pipes=(
        _STORES,
        r"(mul|mla|mls|[su]mull|[su]mlal|smm\w*|sm[lu]\w*)" + _IF,
        r"([su]xt\w*|[su]add\w*|[su]sub\w*|[su]sat\w*|pkh\w*|sel|[su]bfx|uq\w*|q\w*|rev\w*|rbit)" + _IF,
        rf"(b{_IF}|bl|bx|blx|cbn?z)",
        r"v\w+(\..*)?",
    ),
    same_pipe=0.5,
    other=0,
)

_TIMINGS = {
    "cortex-m0plus": _M0PLUS, "cortex-m3": _M3, "cortex-m4": _M4, "cortex-m7": _M7, "cortex-m33": _M33,
    "cortex-m55": _M55,
}  # fmt: skip


def timing(cpu: str | None) -> Timing | None:
    """Timing of a core (a Target's cpu); None if there is no table for it."""
    return _TIMINGS.get(cpu or "")
