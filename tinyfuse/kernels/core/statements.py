"""What the C of a call is made of: statements and expressions, which tinyfuse/emit writes as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: A C expression: an int, a float (printed as an exact float32 literal), or text as it stands.
Expr = int | float | str


@dataclass(frozen=True)
class Let:
    """`const ctype name = value;` A dict value becomes designated initializers (they may nest). `note`: a comment after
    it."""

    ctype: str
    name: str
    value: Expr | Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Call:
    """`function(args);` With `status`, a result other than `status` ends the run: with an error, or, where the call
    `awaits`, without a result, which is none; or, where it `hands_on`, with that result, which is the module's."""

    function: str
    args: tuple[Expr, ...]
    status: str | None = None
    awaits: bool = False
    hands_on: bool = False


@dataclass(frozen=True)
class Loop:
    """`for (int32_t counter = first; counter < count; counter += step) { body }`, with a macro that tells compilers
    what to do with the loop in front of it, where `pragma` names one."""

    counter: str
    count: int | str
    body: tuple[Statement, ...]
    step: int = 1
    first: Expr = 0
    pragma: str = ""

    @property
    def head(self) -> str:
        """The C before its body."""
        step = f"++{self.counter}" if self.step == 1 else f"{self.counter} += {self.step}"
        return f"for (int32_t {self.counter} = {self.first}; {self.counter} < {self.count}; {step})"


@dataclass(frozen=True)
class Branch:
    """`if (condition != 0) { then } else { otherwise }`"""

    condition: str
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class Repeat:
    """`for (;;) { before; if (condition == 0) break; body }`"""

    before: tuple[Statement, ...]
    condition: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Compiled:
    """`#if condition`, body, `#endif`."""

    condition: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Apart:
    """A function with `body`, which is never inlined, and its call: among what stands around it, its loops would have
    too few registers, or more, as it happens. parameters: C type, name and value of each; the body knows of nothing
    else."""

    parameters: tuple[tuple[str, str, Expr], ...]
    body: tuple[Statement, ...]


Statement = Let | Call | Loop | Branch | Repeat | Compiled | Apart


def called(statements: tuple[Statement, ...]) -> Iterator[Let | Call]:
    """The calls and what they are given, in the order of the text, whether or not they run."""
    for statement in statements:
        if isinstance(statement, Loop | Compiled | Apart):
            yield from called(statement.body)
        elif isinstance(statement, Branch):
            yield from called(statement.then + statement.otherwise)
        elif isinstance(statement, Repeat):
            yield from called(statement.before + statement.body)
        else:
            yield statement
