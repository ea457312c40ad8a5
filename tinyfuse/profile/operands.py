"""Registers that an instruction of Thumb, VFP or MVE reads and writes, by its disassembly, as bit masks."""

from __future__ import annotations

import re
from typing import NamedTuple

from tinyfuse.profile.image import Instruction

#: bits: r0 to r15, then s0 to s31 (a d register is two of these, a q register four), then the flags
_FLOATS, _FLAGS = 16, 1 << 48
#: bit of no register, for rules of a core's table about two adjacent instructions
PIPE = 1 << 49

_NAMED = {"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15}
_REGISTER = re.compile(r"\b(?:([rsdq])(\d+)|(sb|sl|fp|ip|sp|lr|pc))(?:\[\d+\])?(?:-([rsdq])(\d+))?\b")
#: an address, and how the instruction changes its base
_MEMORY = re.compile(r"\[([a-z][^\]]*)\](!|, *.+)?$")

_CONDITION = "(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)"
#: mnemonics that end in the letters of a condition but have none
_UNCONDITIONAL = re.compile(r"teq|mls|smmls|v\w*[ml]s|muls|lsls|adcs|sbcs|bics|le|svc")
_SETS_FLAGS = re.compile(r"(add|sub|mov|and|orr|eor|bic|ls[lr]|asr|ror|rsb|mul|neg|mvn|adc|sbc)s|cmp|cmn|tst|teq")
_READS_FLAGS = re.compile(r"it[te]*|adc|sbc|cs(el|et|etm|inc|inv|neg)|cinc|cinv|cneg|b" + _CONDITION)
_COMPARES = re.compile(r"cmp|cmn|tst|teq|vcmpe?|vp[ts].*|cbn?z|tb[bh]|bl?x?|b" + _CONDITION)
_TWO_RESULTS = re.compile(r"[su]mull|[su]mlal|s?mlald\w*|umaal|vr?ml[as]ldav\w*|vaddlva?")
_ACCUMULATES = re.compile(r"ml[as]|[su]mlal|umaal|smm?l[as]\w*|usada8|(?!v\w*avx?$)v\w*ml[as]\w*|vfn?m[as]|vaddl?va")
_KEEPS = re.compile(r"movt|bf[ic]|vq?movu?n[bt]|vq?r?shru?n[bt]|vs[lr]i")
#: instructions that only write their first operand if they have two
_ONE_SOURCE = re.compile(
    r"movw?|movs|mvns?|[su]xt\w+|rev\w*|rbit|clz|adr|negs?|v(mov|dup|neg|abs|cvt|mvn|sqrt|cl[sz]|rint|rev)\w*"
)


class Roles(NamedTuple):
    """Bit masks of the registers that an instruction uses, by role.

    address  registers of an address
    addends  values added to a product
    data     other registers that the instruction reads
    results  registers that it writes, without `base`
    base     base register of an address, if the instruction changes it
    """

    address: int = 0
    addends: int = 0
    data: int = 0
    results: int = 0
    base: int = 0


def registers(text: str) -> int:
    """Mask of all registers in a text, including ranges."""
    mask = 0
    for kind, number, name, _, last in _REGISTER.findall(text):
        first = _NAMED[name] if name else int(number)
        end = int(last) if last else first
        size = {"s": 1, "d": 2, "q": 4}.get(kind, 0)
        low, high = (first, end + 1) if not size else (_FLOATS + first * size, _FLOATS + (end + 1) * size)
        mask |= (1 << high) - (1 << low)
    return mask & (_FLAGS - 1)


def count_listed(instruction: Instruction) -> int:
    """Number of registers between the braces of a load or store of several registers. A double register counts as
    two."""
    inside = re.search(r"\{([^}]*)\}", instruction.operands)
    return bin(registers(inside[1])).count("1") if inside else 0


def roles(instruction: Instruction) -> Roles:
    """Roles of an instruction's registers."""
    name, operands = instruction.mnemonic.partition(".")[0], instruction.operands.partition("<")[0]
    conditional = re.fullmatch(rf"(\w+?){_CONDITION}", name) and not _UNCONDITIONAL.fullmatch(name)
    if conditional and not re.fullmatch(r"b" + _CONDITION, name):
        name = re.sub(_CONDITION + "$", "", name)
    flags_read = _FLAGS if conditional or _READS_FLAGS.fullmatch(name) else 0
    flags_set = _FLAGS if _SETS_FLAGS.fullmatch(name) else 0
    several = re.match(r"(v?(ldm|stm)|v?push|v?pop)", name)
    memory = _MEMORY.search(operands)
    if several:
        found = _of_several(name, operands)
        return found._replace(data=found.data | flags_read)
    if memory:
        found = _of_memory(name, operands, memory)
        return found._replace(data=found.data | flags_read)
    parts = _split(operands)
    count = 0 if _COMPARES.fullmatch(name) else 2 if _TWO_RESULTS.fullmatch(name) else 1
    if name.startswith("vmov") and len(parts) == 4 and parts[0].startswith("r"):
        count = 2  # two lanes to core registers
    results, sources = parts[:count], parts[count:]
    written, read = registers(", ".join(results)), registers(", ".join(sources))
    reads_first = len(parts) == 2 and count > 0 and not _ONE_SOURCE.fullmatch(name)
    addends = 0
    if _ACCUMULATES.fullmatch(name):
        listed = len(parts) == count + 3 and not name.startswith("v")
        addends = registers(parts[-1]) if listed else written
        read = registers(", ".join(sources[:-1])) if listed else read
    elif conditional or _KEEPS.fullmatch(name) or "[" in "".join(results) or reads_first:
        read |= written
    return Roles(0, addends, read | flags_read, written | flags_set)


def _split(operands: str) -> list[str]:
    return [part.strip() for part in operands.split(",")] if operands else []


def _of_several(name: str, operands: str) -> Roles:
    base, brace, listed = operands.partition("{")
    address = registers(base) or registers("sp")
    updates = address if "!" in base or not registers(base) else 0
    moved = registers(brace + listed)
    stores = name.lstrip("v").startswith(("stm", "push"))
    return Roles(address, 0, moved if stores else 0, 0 if stores else moved, updates)


def _of_memory(name: str, operands: str, memory: re.Match[str]) -> Roles:
    moved = registers(operands[: memory.start()])
    address = registers(memory[1])
    base = registers(memory[1].partition(",")[0]) if memory[2] else 0
    stores = name.lstrip("v").startswith("st")
    return Roles(address, 0, moved if stores else 0, 0 if stores else moved, base)
