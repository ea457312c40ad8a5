"""The arena in C: a pointer to bytes, or a struct with one pointer for each part in a memory bank."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.plan import ArenaPart, Plan


@dataclass(frozen=True)
class PartC:
    """C names of a part of the arena: the struct's `member`, and the name in macros."""

    bank: str
    bytes: int
    align: int

    @property
    def member(self) -> str:
        """Member of the struct. It has a prefix, because a bank's name may be a keyword of C++ or a vendor's macro."""
        return f"in_{self.bank}"

    @property
    def macro(self) -> str:
        return self.bank.upper()


@dataclass(frozen=True)
class ArenaC:
    """C types and expressions for the arena of module `name`; `parts` is empty if the arena is whole."""

    name: str
    parts: tuple[PartC, ...]
    plan_parts: tuple[ArenaPart, ...]

    @property
    def type(self) -> str:
        """Type of the arena parameter of API functions."""
        return f"const {self.name}_arena_parts *" if self.parts else "void *"

    @property
    def const_type(self) -> str:
        """Type of the arena parameter of API functions that only read."""
        return self.type if self.parts else "const void *"

    @property
    def group_type(self) -> str:
        """Type of the arena parameter of groups."""
        return self.type if self.parts else "uint8_t *"

    @property
    def argument(self) -> str:
        """Argument that API functions pass to groups."""
        return "arena" if self.parts else "bytes"

    def at(self, offset: int, base: str = "bytes") -> str:
        """C expression for the address of a byte of the arena; `base` is the pointer to a whole arena."""
        if not self.parts:
            return f"{base} + {offset}u"
        part = next(part for part in reversed(self.plan_parts) if part.start <= offset)
        member = next(each.member for each in self.parts if each.bank == part.bank)
        return f"arena->{member} + {offset - part.start}u"

    def part_symbols(self, symbol: str) -> str:
        """Names of the parts' variables, in a macro that defines them."""
        return ", ".join(f"{symbol}##_{part.bank}" for part in self.parts)


def arena_c(plan: Plan) -> ArenaC:
    """Arena of a plan's module, in C."""
    parts = tuple(PartC(part.bank, part.bytes, plan.arena_align) for part in plan.arena_parts)
    return ArenaC(plan.options.name, parts, plan.arena_parts)
