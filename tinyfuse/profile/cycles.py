"""Timing of every instruction on a core, from published descriptions, for the pipeline of scoreboard.h.

The pipeline runs over the instructions that QEMU executes. It knows no wait states, caches or bus conflicts, so the
figure is always called an estimate. A board's flash is added by tinyfuse/board_timing.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from tinyfuse.profile.image import Instruction
from tinyfuse.profile.operands import PIPE, Roles, count_listed, roles

_IF = r"(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?(\.[nw])?"  # suffixes of a mnemonic
_LOADS, _STORES = rf"ldr(b|h|sb|sh|t)?{_IF}", rf"str(b|h|t)?{_IF}"
_DOUBLES = rf"(ldrd|strd){_IF}"
_LISTS, _FLOAT_LISTS = rf"((ldm|stm)(ia|db)?|push|pop){_IF}", r"v(push|pop|ldm|stm)\w*(\..*)?"
_DIVISIONS = rf"[su]div{_IF}"
_MULTIPLIES = rf"(mul|mla|mls|[su]mull|[su]mlal|umaal|smm\w*|sm[lu]\w*){_IF}"
_JUMPS = rf"(bl?x?{_IF}|cbn?z|tb[bh])(\.[nw])?"
_LOOP_ENDS = r"(le|letp)(\.[nw])?"

#: a number, or a function of an instruction
Cycles = int | Callable[[Instruction], int]


@dataclass(frozen=True)
class Rule:
    """Timing of the instructions whose whole mnemonic matches (scoreboard.h).

    hold     cycles in which nothing else issues; 0: it may issue beside others.
    first    whether it only issues as the first of a cycle; `last`: whether nothing issues in its cycle after it.
    units    (alternative units, cycles) for each unit that it needs.
    latency  cycles until its results are ready; `base`: until the base of an address is.
    address, data, addends   cycles before it issues at which these registers must be ready; negative: after.
    pairs    only 16-bit instructions may issue beside others.
    """

    mnemonics: str
    hold: Cycles = 0
    units: tuple[tuple[str, Cycles], ...] = ()
    latency: Cycles = 1
    base: int = 1
    address: int = 0
    data: int = 0
    addends: int = 0
    first: bool = False
    last: bool = False
    pairs: bool = False


@dataclass(frozen=True)
class Core:
    """Pipeline of a core.

    source   publication of its timing.
    width    instructions that issue in a cycle.
    taken    cycles that a jump adds.
    rules    the first match counts; an instruction without a match issues alone, for one cycle.
    joined   instructions that overlap with one of the same kind right before them; any other instruction waits for its
             second cycle.
    """

    source: str
    width: int
    taken: int
    rules: tuple[Rule, ...]
    joined: str = "never"
    _units: dict[str, int] = field(default_factory=dict, compare=False)

    def settings(self, instructions: Iterable[Instruction]) -> Iterator[str]:
        """Lines for plugin.c."""
        yield f"core {self.width} {self.taken}"
        for each in instructions:
            yield f"step {each.address:x} {self.step(each)}"

    def step(self, instruction: Instruction) -> str:
        """Timing of an instruction as scoreboard.h reads it."""
        name = instruction.mnemonic
        if re.fullmatch(_LOOP_ENDS, name):
            return "0 0 0 1 0 0 0 0 0 0"
        rule = next((each for each in self.rules if re.fullmatch(each.mnemonics, name)), Rule(".*", hold=1))
        found, joined = roles(instruction), re.fullmatch(self.joined, name) is not None
        wide = rule.pairs and instruction.end - instruction.address > 2
        lists = [
            [(self._mask(names), _cycles(busy, instruction)) for names, busy in rule.units],
            [*_reads(rule, found), *([] if joined else [(PIPE, 0)])],
            [(found.results, _cycles(rule.latency, instruction)), (found.base, rule.base), (PIPE * joined, 2)],
        ]
        needs = " ".join(f"{bits:x} {cycles}" for each in lists for bits, cycles in [*filter(_is_some, each), (0, 0)])
        return f"{1 if wide else _cycles(rule.hold, instruction)} {int(rule.first)} {int(rule.last)} 0 {needs}"

    def _mask(self, names: str) -> int:
        units = (self._units.setdefault(name, len(self._units)) for name in names.split())
        return sum(1 << unit for unit in units)


def _reads(rule: Rule, found: Roles) -> list[tuple[int, int]]:
    return [(found.address, rule.address), (found.data, rule.data), (found.addends, rule.addends)]


def _is_some(need: tuple[int, int]) -> bool:
    return need[0] != 0


def _cycles(cycles: Cycles, instruction: Instruction) -> int:
    return cycles(instruction) if callable(cycles) else cycles


def _one_and_each(instruction: Instruction) -> int:
    return 1 + count_listed(instruction)


def _by_twos(instruction: Instruction) -> int:
    """Registers that a bus of 64 bits moves two at a time."""
    return max(1, (count_listed(instruction) + 1) // 2)


# --- cores that issue one instruction per cycle ------------------------------------------------------

_M4 = Core(
    source="Cortex-M4 Technical Reference Manual (Arm 100166), instruction set summary and load/store timings",
    width=1,
    taken=2,  # "P", the pipeline refill: 1 to 3
    joined=_LOADS,  # a load right after a load takes one cycle, unless its address comes from that load
    rules=(
        Rule(_LOADS, hold=1, latency=2),
        Rule(_DOUBLES, hold=3),
        Rule(_LISTS, hold=_one_and_each),
        Rule(_DIVISIONS, hold=12),  # 2 to 12, depending on operands, which are unknown here
        Rule(r"tb[bh]", hold=2),
        Rule(r"vldr(\..*)?|vstr(\..*)?", hold=2),
        Rule(_FLOAT_LISTS, hold=_one_and_each),
        Rule(r"v(n?ml[as]|fn?m[as])\.f32", hold=3),
        Rule(r"v(div|sqrt)\.f32", hold=14),
    ),
)

_M33 = replace(
    _M4,
    source="no timings of the Cortex-M33 are published; LLVM schedules it by its model of the Cortex-M4 "
    "(ARMProcessors.td), so these are the M4's: " + _M4.source,
)

_M3 = replace(
    _M4,
    source="Cortex-M3 Technical Reference Manual (Arm DDI 0337), instruction set summary and load/store timings",
    rules=(
        Rule(rf"ml[as]{_IF}", hold=2),
        Rule(rf"[su]mull{_IF}", hold=4),  # 3 to 5, depending on operands
        Rule(rf"[su]mlal{_IF}", hold=6),  # 4 to 7, depending on operands
        *_M4.rules,
    ),
)

_M0PLUS = Core(
    source="Cortex-M0+ Technical Reference Manual (Arm DDI 0484), instruction set summary; the multiplier of one cycle",
    width=1,
    taken=1,
    rules=(
        Rule(f"{_LOADS}|{_STORES}", hold=2),
        Rule(_LISTS, hold=lambda i: _one_and_each(i) + ("pc" in i.operands)),
        Rule(rf"bl{_IF}", hold=2),  # and one more for the jump, like any jump
        Rule(r"mrs|msr|dmb|dsb|isb", hold=3),
    ),
)

# --- Cortex-M7 -------------------------------------------------------------------------------------

_SHIFTS = rf"(lsl|lsr|asr|ror|rrx)s?{_IF}"
#: instructions of the SIMD unit, which takes only the first of two instructions
_SIMD = (
    # operands pass a shifter, so they are needed a cycle earlier
    Rule(rf"[su]sat{_IF}", units=(("simd", 1), ("alu0 alu1", 1), ("shifter", 1)), latency=2, data=1, first=True),
    Rule(rf"(rev\w*|rbit){_IF}", units=(("simd", 1), ("alu0 alu1", 1), ("shifter", 1)), latency=0, data=1, first=True),
    Rule(
        rf"(pkh\w*|[su]xta\w*|[su]bfx|bfi|bfc){_IF}", units=(("simd", 1), ("alu0 alu1", 1), ("shifter", 1)), first=True
    ),
    Rule(rf"([su]sat16|u?q\w+|usad\w*){_IF}", units=(("simd", 1), ("alu0 alu1", 1)), latency=2, first=True),
    Rule(
        rf"([su]xt\w*|[su]h?(add|sub)\d+|[su]h?(asx|sax)|sel|clz){_IF}",
        units=(("simd", 1), ("alu0 alu1", 1)),
        first=True,
    ),
)
_M7 = Core(
    source="scheduling model of the Cortex-M7 in LLVM (ARMScheduleM7.td): two instructions a cycle where their units "
    "allow; every jump predicted",
    width=2,
    taken=0,
    rules=(
        # LDM, STM, LDRD and STRD issue alone; addresses are needed a cycle before data
        Rule(rf"ldrd{_IF}", hold=1, units=(("load0 load1", 1),), address=1, base=0),
        Rule(rf"strd{_IF}", hold=1, units=(("store", 1),), address=1, data=-1, base=0),
        Rule(
            rf"(ldm(ia|db)?|pop){_IF}", hold=_by_twos, units=(("load0 load1", 1),), latency=_by_twos, address=1, base=0
        ),
        Rule(rf"(stm(ia|db)?|push){_IF}", hold=_by_twos, units=(("store", 1),), address=1, base=0),
        Rule(rf"ldr(b|h|sb|sh){_IF}", units=(("load0 load1", 1),), latency=2, address=1, base=0),
        Rule(_LOADS, units=(("load0 load1", 1),), address=1, base=0),
        Rule(_STORES, units=(("store", 1),), address=1, data=-1, base=0),
        Rule(_DIVISIONS, hold=7),
        Rule(_MULTIPLIES, units=(("multiplier", 1),), latency=2, addends=-1),
        *_SIMD,
        Rule(_SHIFTS, units=(("alu0 alu1", 1), ("shifter", 1))),
        Rule(r"tb[bh]", hold=2, address=1),
        Rule(_JUMPS, units=(("branch", 1),)),
        Rule(r"it[te]*|nop(\.[nw])?"),
        Rule(_FLOAT_LISTS, hold=_by_twos, units=(("load0 load1 store", 1),), address=1),
        Rule(r"vldr(\..*)?", units=(("load0 load1", 1), ("port0 port1", 1)), address=1),
        Rule(r"vstr(\..*)?", units=(("store", 1), ("port0 port1", 1)), address=1, data=-2),
        Rule(r"v(div|sqrt)\.f32", units=(("float", 14), ("port0 port1", 1)), latency=16),
        Rule(r"v(n?ml[as])\.f32", units=(("float", 1), ("port0 port1", 1)), latency=6, addends=-3),
        Rule(r"v(fn?m[as])\.f32", units=(("float", 1), ("port0 port1", 1)), latency=5, addends=-2),
        Rule(r"vmrs|vmsr", hold=1),
        Rule(r"vmov(\..*)?", units=(("port0 port1", 1),), latency=3),
        Rule(r"v\w+\.f64.*", units=(("float", 2), ("port0", 1), ("port1", 1)), latency=7, first=True),
        Rule(r"v\w+(\..*)?", units=(("float", 1), ("port0 port1", 1)), latency=3),
        Rule(r"mrs|msr|dmb|dsb|isb", hold=3),
        Rule(r"\w+(\.[nw])?", units=(("alu0 alu1", 1),)),
    ),
)

# --- Cortex-M55 and M85 ----------------------------------------------------------------------------

#: a vector occupies its pipe for two beats; (mnemonics, latency) of pipes in LLVM's model of the M55
_CONTROL = r"v(ctp|pst|pt|pnot)\w*(\..*)?"
_VECTOR_LOADS, _VECTOR_STORES = r"vld(r[bhwd]\w*|[24]\d)\.[suif]?\d+", r"vst(r[bhwd]\w*|[24]\d)\.[suif]?\d+"
_SUMS = r"v(r?ml[as]\w*av\w*|addl?va?)\.[su]\d+"
_PRODUCTS = (
    r"v(mul\w*|rmulh\w*|q?r?dmul\w*|qr?dml\w+|q?d?ml[as]\w*|mlas?\w*|fm[as]\w*|cmul\w*|cmla\w*|cvt\w*)\.[sufi]\d+.*"
)
_NARROWS = r"v(q?movu?n[bt]|q?r?shru?n[bt])\w*\.\w+"
_ROUNDED_SHIFTS = r"v(r|q|qr)sh[lr]\w*\.\w+"
_COMPARES = r"vcmp\w*\.\w+"
_FLOAT_SCALARS = r"v\w+\.f(32|64).*"


def _scattered(instruction: Instruction) -> bool:
    return re.search(r"\[.*q\d", instruction.operands) is not None


_M55 = Core(
    source="scheduling model of the Cortex-M55 in LLVM (ARMScheduleM55.td, by Arm): a vector takes two beats, which "
    "overlap with another pipe's; of two instructions of 16 bits, one of them a move, an extension or an addition of a "
    "constant, both issue",
    width=2,
    taken=3,  # MispredictPenalty
    rules=(
        Rule(_CONTROL, hold=1, units=(("control", 1),)),
        Rule(_VECTOR_LOADS, hold=1, units=(("memory", 2),), latency=lambda i: 2 if _scattered(i) else 1),
        Rule(_VECTOR_STORES, hold=1, units=(("memory", 2),)),
        Rule(_FLOAT_LISTS, hold=_by_twos, units=(("memory", 1),), latency=2),
        Rule(r"vldr(\..*)?", hold=1, units=(("memory", 1),), latency=2),
        Rule(r"vstr(\..*)?", hold=1, units=(("memory", 1),)),
        Rule(_SUMS, hold=1, units=(("products", 2),), latency=2),
        Rule(_COMPARES, hold=1, units=(("products", 2),)),
        Rule(r"v(div|sqrt)\.f32", hold=1, units=(("products", 1),), latency=16),
        Rule(_PRODUCTS, hold=1, units=(("products", 2),), latency=2),
        Rule(_NARROWS, hold=1, units=(("integers", 2),), latency=3),
        Rule(_ROUNDED_SHIFTS, hold=1, units=(("integers", 2),), latency=2),
        Rule(_FLOAT_SCALARS, hold=1, units=(("products", 1),), latency=2),
        Rule(r"vmrs|vmsr", hold=1, units=(("products", 1),)),
        Rule(r"vmov(\..*)?", hold=1, units=(("integers products", 2),)),
        Rule(r"v\w+(\..*)?", hold=1, units=(("integers", 2),)),
        Rule(_DOUBLES, hold=1, units=(("memory", 1),), latency=2),
        Rule(_LISTS, hold=_by_twos, units=(("memory", 1),), latency=lambda i: _by_twos(i) + 1),
        Rule(_LOADS, units=(("alu", 1), ("memory", 1)), latency=2, pairs=True),
        Rule(_STORES, units=(("alu", 1), ("memory", 1)), pairs=True),
        Rule(_DIVISIONS, hold=8, latency=8),
        Rule(rf"{_MULTIPLIES}|([su]sat|q|uq|[su]h?(add|sub)\d|[su]bfx|[su]xta)\w*{_IF}", hold=1, latency=2),
        Rule(r"(adds?|subs?|movs?|[su]xt[bh]|nop|it[te]*)(\.n)?", pairs=True),
        Rule(r"\w+(\.[nw])?", units=(("alu", 1),), pairs=True),
    ),
)

_M85 = replace(
    _M7,
    source="scheduling model of the Cortex-M85 in LLVM (ARMScheduleM85.td): two instructions a cycle where their units "
    "allow; every jump predicted; a vector occupies its pipe for two cycles, and nothing issues in its cycle after it",
    rules=(
        Rule(_CONTROL, units=(("control", 2), ("vectors", 1)), last=True),
        Rule(_VECTOR_LOADS, units=(("load0", 2), ("load1", 2), ("vectors", 1)), address=1, last=True),
        Rule(_VECTOR_STORES, units=(("store", 2), ("vectors", 1)), address=1, data=-2, last=True),
        Rule(_SUMS, units=(("products", 2), ("vectors", 1)), latency=4, addends=-2, last=True),
        Rule(_COMPARES, units=(("compares", 2), ("vectors", 1)), last=True),
        Rule(_PRODUCTS, units=(("products", 2), ("vectors", 1)), latency=2, last=True),
        Rule(rf"{_NARROWS}|{_ROUNDED_SHIFTS}", units=(("integers", 2), ("vectors", 1)), latency=2, last=True),
        Rule(r"vmov(\..*)?", units=(("vectors", 1),), last=True),
        Rule(
            rf"(?!{_FLOAT_SCALARS}|v(ldr|str|push|pop|ldm|stm|mrs|msr))v\w+(\..*)?",
            units=(("integers", 2), ("vectors", 1)),
            last=True,
        ),
        Rule(_DOUBLES, units=(("load0", 1), ("load1", 1)), address=1, base=0),
        *_M7.rules,
    ),
)

_CORES = {
    "cortex-m0plus": _M0PLUS, "cortex-m3": _M3, "cortex-m4": _M4, "cortex-m7": _M7, "cortex-m33": _M33,
    "cortex-m55": _M55, "cortex-m85": _M85,
}  # fmt: skip


def core(cpu: str | None) -> Core | None:
    """Pipeline of a core (a Target's cpu); None if there is no table for it."""
    return _CORES.get(cpu or "")
