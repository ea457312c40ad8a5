"""The arena in C: one pointer to bytes, or a struct with a pointer to each of its parts in memory banks."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.plan import ArenaPart, Plan


@dataclass(frozen=True)
class PartC:
    """A part as C names it: `member` of the struct, what follows a symbol, what stands in macros."""

    bank: str
    bytes: int
    align: int

    @property
    def member(self) -> str:
        """Not the bank's name alone: that may be a word of C++, or a macro of a vendor's header."""
        return f"in_{self.bank}"

    @property
    def macro(self) -> str:
        return self.bank.upper()


@dataclass(frozen=True)
class ArenaC:
    """How the templates write the arena of the module `name`; `parts` is empty where it is whole."""

    name: str
    parts: tuple[PartC, ...]
    plan_parts: tuple[ArenaPart, ...]

    @property
    def type(self) -> str:
        """What API functions take."""
        return f"const {self.name}_arena_parts *" if self.parts else "void *"

    @property
    def const_type(self) -> str:
        """What they take that only read."""
        return self.type if self.parts else "const void *"

    @property
    def group_type(self) -> str:
        """What groups take."""
        return self.type if self.parts else "uint8_t *"

    @property
    def argument(self) -> str:
        """What API functions hand to groups."""
        return "arena" if self.parts else "bytes"

    def at(self, offset: int, base: str = "bytes") -> str:
        """The address of a byte of the arena; `base`: of one that is whole."""
        if not self.parts:
            return f"{base} + {offset}u"
        part = next(part for part in reversed(self.plan_parts) if part.start <= offset)
        member = next(each.member for each in self.parts if each.bank == part.bank)
        return f"arena->{member} + {offset - part.start}u"

    def part_symbols(self, symbol: str) -> str:
        """Of a macro that defines the parts: their names."""
        return ", ".join(f"{symbol}##_{part.bank}" for part in self.parts)


def arena_c(plan: Plan) -> ArenaC:
    """The arena of a plan's module."""
    parts = tuple(PartC(part.bank, part.bytes, plan.arena_align) for part in plan.arena_parts)
    return ArenaC(plan.options.name, parts, plan.arena_parts)
