"""Errors that a user can cause, each with its place.

Everything that a model file, an option or the machine can cause is one of the classes below, with an exit code
(docs/json.md); so is a broken promise of tinyfuse itself (`InternalFault`). `assert` states what a reader should know
and no result depends on: `python -O` leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: lines of a refusal, and places per line; `--json` has all
MOST_LINES = 12
MOST_PLACES = 3
#: characters of each text of a problem: files may have names and shapes of any length
MOST_CHARACTERS = 600


@dataclass(frozen=True)
class Problem:
    """One reason why a model cannot be compiled.

    `operator` and `tensor` are already formatted (`str(op)`, `str(tensor)` of `tinyfuse.ir`). Names from a file may
    have any characters: control characters are escaped, and long texts cut.
    """

    message: str
    operator: str | None = None
    tensor: str | None = None
    hint: str | None = None

    def __post_init__(self) -> None:
        for name in ("message", "operator", "tensor", "hint"):
            text = getattr(self, name)
            if text is not None:
                object.__setattr__(self, name, _clear(text))

    @property
    def place(self) -> str:
        return ": ".join(part for part in (self.operator, self.tensor) if part)

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text} (hint: {self.hint})" if self.hint else text


def _clear(text: str) -> str:
    """Return a text in one line of limited length, without control characters."""
    text = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 3]}..."
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def refusal_lines(problems: Sequence[Problem]) -> list[str]:
    """Lines of a refusal: one per distinct reason with its places, each hint once."""
    alike: dict[tuple[str, str | None], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.message, problem.hint), []).append(problem)
    lines, hints = [], set()
    for (message, hint), (first, *more) in alike.items():
        text = f"{first.place}: {message}" if first.place else message
        if more:
            named = [problem.operator or problem.tensor or "" for problem in more[:MOST_PLACES]]
            named += [f"{len(more) - MOST_PLACES} more"] if len(more) > MOST_PLACES else []
            text += f"; so with {', '.join(named)}"
        lines.append(text if hint is None or hint in hints else f"{text} (hint: {hint})")
        hints.add(hint)
    if len(lines) > MOST_LINES:
        left = len(lines) - MOST_LINES
        lines = [*lines[:MOST_LINES], f"and {left} more {'reason' if left == 1 else 'reasons'}: --json shows all"]
    return lines


class TinyfuseError(Exception):
    """Base of every error that ends a command with one clear message."""

    exit_code = 2

    def __reduce__(self) -> tuple[Callable[..., TinyfuseError], tuple[object, ...]]:
        # exceptions are pickled with the arguments of Exception, which differ here
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(kind: type[TinyfuseError], args: tuple[object, ...], fields: dict[str, object]) -> TinyfuseError:
    """Restores an error that a worker process sent."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class CompileError(TinyfuseError):
    """Raised for a model that cannot be read or compiled, with every reason and its place.

    `problems` has them one by one; the text merges equal ones in one line.
    """

    def __init__(self, model: str, problems: list[Problem] | Problem):
        self.model = model
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(f"{model}: {line}" for line in refusal_lines(self.problems)))


class UsageError(TinyfuseError):
    """Raised for an option or a path that makes no sense. The message says what would make sense."""


class DoesNotFit(TinyfuseError):
    """Raised if the model was compiled, but exceeds `--max-ram`, `--max-flash` or `--max-step`."""

    exit_code = 1


class ToolMissing(TinyfuseError):
    """Raised if a program or library that the command needs is not on this machine."""

    exit_code = 3

    def __init__(self, tool: str, hint: str):
        self.tool, self.hint = tool, hint
        super().__init__(f"{tool} was not found: {hint}")

    def add_others(self, others: Sequence[ToolMissing]) -> ToolMissing:
        """Append the texts of the others to this error's, so that the user can install all at once. Return this
        error."""
        self.args = ("\n".join(map(str, (self, *others))),)
        return self


class EmulationFailed(TinyfuseError):
    """Raised if emulated firmware crashed, hung or printed nothing."""

    exit_code = 4


class RunTimeout(EmulationFailed):
    """Raised if the firmware did not end in time.

    log     text that it wrote
    stream  inputs, [frame][index], of the inference that was running, and of earlier ones in its stream; [] if none was
            running
    emulator, opt  how it was built and run
    """

    emulator, opt = "", ""

    def __init__(self, message: str, log: str):
        self.log = log
        self.stream: list[list[Any]] = []
        super().__init__(message)


class BoardFailed(TinyfuseError):
    """Raised if a board does not answer, answers unexpectedly, or has another module."""

    exit_code = 4


class InternalFault(TinyfuseError):
    """Raised for a bug of tinyfuse, never for a bad model. `where`: place or check that found it; `what`: the fault."""

    exit_code = 5

    def __init__(self, where: str, what: str):
        self.where, self.what = where, what
        super().__init__(
            f"a fault of tinyfuse itself, found by {where}: {what}; nothing was written. "
            "Please report it with this command and the model"
        )
