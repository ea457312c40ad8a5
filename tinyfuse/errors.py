"""The errors a user can cause, each with the place it came from.

Everything a model file, an option or the machine can cause is one of the classes below, and carries its exit
code (README.md); so is what breaks a promise of tinyfuse's own (`InternalFault`). `assert` states what a reader
should know and no user's result rests on: `python -O` leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One reason why a model can't be compiled.

    `operator` and `tensor` are already formatted (`str(op)`, `str(tensor)` of `tinyfuse.ir`).
    """

    message: str
    operator: str | None = None
    tensor: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.operator, self.tensor) if part)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} (hint: {self.hint})" if self.hint else text


class TinyfuseError(Exception):
    """Base of every error that ends a command with one clear message."""

    exit_code = 2


class CompileError(TinyfuseError):
    """A model that can't be read or compiled: every reason at once, each with its place."""

    def __init__(self, model: str, problems: list[Problem] | Problem):
        self.model = model
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(f"{model}: {problem}" for problem in self.problems))


class UsageError(TinyfuseError):
    """An option or a path that makes no sense; the message says what would."""


class DoesNotFit(TinyfuseError):
    """The model was compiled, but breaks `--max-ram` or `--max-flash`."""

    exit_code = 1


class ToolMissing(TinyfuseError):
    """A program or library that the command needs is not on this machine."""

    exit_code = 3

    def __init__(self, tool: str, hint: str):
        self.tool, self.hint = tool, hint
        super().__init__(f"{tool} was not found: {hint}")


class EmulationFailed(TinyfuseError):
    """The emulated firmware crashed, hung or said nothing."""

    exit_code = 4


class InternalFault(TinyfuseError):
    """What tinyfuse made breaks a promise of its own, whatever the model was: `what`, found by `where`."""

    exit_code = 5

    def __init__(self, where: str, what: str):
        self.where, self.what = where, what
        super().__init__(
            f"a fault of tinyfuse itself, found by {where}: {what}; nothing was written. "
            "Please report it with this command and the model"
        )
