"""Statements and expressions that make up the C of a call; tinyfuse/emit prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: C expression: an int, a float (printed as an exact float32 literal), or C text
Expr = int | float | str


def c_array(values: Iterable[int | str], length: int = 0) -> str:
    """C initializer of an array, with zeros after the values up to `length`."""
    texts = [str(value) for value in values]
    return "{" + ", ".join(texts + ["0"] * (length - len(texts))) + "}"


def c_loops(values: Sequence[int | str], length: int, fill: int) -> str:
    """C initializer of an array with a value for each loop of a nest of `length`; `fill` for missing outer loops."""
    return c_array([*[fill] * (length - len(values)), *values])


@dataclass(frozen=True)
class Let:
    """C declaration `const ctype name = value;`. A dict becomes designated initializers, which may be nested. `note` is
    a comment after the statement."""

    ctype: str
    name: str
    value: Expr | Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Call:
    """C statement `function(args);`.

    status    any other result ends the run: with an error, unless one of the two below is set.
    awaits    another result ends the run without a result of the model, and without an error.
    hands_on  another result becomes the result of the module's function.
    """

    function: str
    args: tuple[Expr, ...]
    status: str | None = None
    awaits: bool = False
    hands_on: bool = False


@dataclass(frozen=True)
class Loop:
    """C statement `for (int32_t counter = first; counter < count; counter += step) { body }`. `pragma` names a macro
    before the loop, which tells compilers how to optimize it."""

    counter: str
    count: int | str
    body: tuple[Statement, ...]
    step: int = 1
    first: Expr = 0
    pragma: str = ""

    @property
    def head(self) -> str:
        """C text before the loop's body."""
        step = f"++{self.counter}" if self.step == 1 else f"{self.counter} += {self.step}"
        return f"for (int32_t {self.counter} = {self.first}; {self.counter} < {self.count}; {step})"


@dataclass(frozen=True)
class Branch:
    """C statement `if (condition != 0) { then } else { otherwise }`."""

    condition: str
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class WhileLoop:
    """C statement `for (;;) { before; if (condition == 0) break; body }`."""

    before: tuple[Statement, ...]
    condition: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class PreprocessorIf:
    """C lines `#if condition`, body, `#endif`."""

    condition: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class NoInlineCall:
    """Call of a function that has `body` and is never inlined, so that the surrounding code does not compete with its
    loops for registers. `parameters` has the C type, name and value of each parameter; the body may use no other
    variable."""

    parameters: tuple[tuple[str, str, Expr], ...]
    body: tuple[Statement, ...]


Statement = Let | Call | Loop | Branch | WhileLoop | PreprocessorIf | NoInlineCall


def iterate_calls(statements: tuple[Statement, ...]) -> Iterator[Let | Call]:
    """Yields all calls and definitions, nested ones too, in the order of the text, whether or not they run."""
    for statement in statements:
        if isinstance(statement, Loop | PreprocessorIf | NoInlineCall):
            yield from iterate_calls(statement.body)
        elif isinstance(statement, Branch):
            yield from iterate_calls(statement.then + statement.otherwise)
        elif isinstance(statement, WhileLoop):
            yield from iterate_calls(statement.before + statement.body)
        else:
            yield statement
