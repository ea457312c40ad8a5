"""Reads asm statements of preprocessed C, and finds what they hide from the compiler.

https://gcc.gnu.org/onlinedocs/gcc/Extended-Asm.html: a compiler believes the list of clobbers, it reads no assembly. A
register that is missing there is a fault that shows only where a compiler happens to keep a value in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_CORE = re.compile(r"(?<![%\w])(r1[0-2]|r\d|lr)\b")
_VECTORS = re.compile(r"(?<![%.\w])([sdq])(\d+)(?:-[sdq](\d+))?\b")
#: how many of the 32 single registers s0 to s31 lie in one of a kind
_SINGLES = {"s": 1, "d": 2, "q": 4}
_RANGE = re.compile(r"r(\d+)-r(\d+)")
_SETS_FLAGS = re.compile(
    r"\b(?:cmp|cmn|tst|teq|(?:add|adc|sub|sbc|rsb|mov|mvn|and|orr|eor|bic|lsl|lsr|asr|ror|mul)s)(?:\.[nw])?\s"
)
_MEMORY = re.compile(r"\b(?:ldr|ldm|str|stm|vldr|vldm|vstr|vstm|vld\d|vst\d|push|pop)\w*(?:\.\w+)?\s")
_PREDICATE = re.compile(r"\b(?:vctp|vcmp|vpt\w*|vpnot)(?:\.\w+)?\s|\bvmsr\s+p0")


@dataclass(frozen=True)
class AsmStatement:
    """One asm statement: its template, its clobbers, and the core registers of its operands, from the declarations
    before it."""

    template: str
    clobbers: frozenset[str]
    bound: frozenset[str]

    def faults(self) -> list[str]:
        """Registers and flags that the statement uses without declaring them."""
        unsaid = sorted(_core_registers(self.template) - self._known())
        singles = _singles(self.template) - _singles(" ".join(self.clobbers))
        unsaid += [f"s{n}" for n in sorted(singles)]
        uses = (("cc", _SETS_FLAGS), ("memory", _MEMORY), ("p0", _PREDICATE))
        return unsaid + [name for name, used in uses if used.search(self.template) and name not in self.clobbers]

    def _known(self) -> set[str]:
        pushed, popped = (re.findall(rf"\b{kind}\s*{{([^}}]*)}}", self.template) for kind in ("push", "pop"))
        if not pushed:
            return {*self.clobbers, *self.bound}
        # what is pushed between the first and the last is only kept for a while
        saved = _core_registers(pushed[0])
        # Thumb-1 has no push of the upper registers: they are moved into lower ones, and back from them
        moved = set(re.findall(r"\bmov (r8|r9|r10|r11|lr), r[4-7]\b", self.template))
        return {*self.clobbers, *self.bound, *moved, *(saved & (_core_registers(popped[-1]) | moved))}


def asm_statements(text: str) -> Iterator[AsmStatement]:
    """All asm statements with operands or clobbers in preprocessed C."""
    for found in re.finditer(r"\b(?:__)?asm(?:__)?\s*(?:volatile)?\s*\(", text):
        parts = _parts(text, found.end())
        if len(parts) == 1:
            continue  # a variable's register, or a function's name
        template = "".join(_STRING.findall(parts[0])).replace("\\n", "\n").replace("\\t", "\t")
        function = text.rfind("\n}\n", 0, found.start())
        block = text[max(function, 0) : found.start()]
        names = dict(re.findall(r'register [^;]*?(\w+) __asm\("(\w+)"\)', block))
        operands = re.findall(r"\((\w+)\)", "".join(parts[1:3]))
        yield AsmStatement(
            template,
            frozenset(_STRING.findall(parts[3])) if len(parts) > 3 else frozenset(),
            frozenset(names[name] for name in operands if name in names),
        )


def _parts(text: str, start: int) -> list[str]:
    """Template, outputs, inputs and clobbers of the statement whose parenthesis opens at `start`."""
    parts, part, depth, at = [], start, 1, start
    while depth:
        string = _STRING.match(text, at)
        if string:
            at = string.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth or (depth == 1 and text[at] == ":"):
            parts.append(text[part:at])
            part = at + 1
        at += 1
    return parts


def _core_registers(text: str) -> set[str]:
    text = _RANGE.sub(lambda r: " ".join(f"r{n}" for n in range(int(r[1]), int(r[2]) + 1)), text)
    return set(_CORE.findall(text))


def _singles(text: str) -> set[int]:
    """Single-precision registers of all vector registers that a text names."""
    found = set()
    for kind, first, last in _VECTORS.findall(text):
        size = _SINGLES[kind]
        found.update(range(int(first) * size, (int(last or first) + 1) * size))
    return found
