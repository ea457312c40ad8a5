"""What a group's function holds where it is run in steps: the numbers that it keeps in the caller's cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: the variable that counts the pieces of a call that is divided
PIECE = "piece"


def cursor_checks(prefix: str, numbers: Iterable[tuple[str, str]]) -> list[str]:
    """C that refuses numbers which no step left, each a variable and the most that it may be. It tells the compiler
    their range, too: gcc takes a row that may be anything for an overflow, and warns."""
    lines = []
    for variable, most in numbers:
        lines += [f"if ({variable} < 0 || {variable} > {most}) {{", f"    return {prefix}_ERROR_CURSOR;", "}"]
    return lines


def end_of_step(prefix: str, numbers: Sequence[str], left: str) -> list[str]:
    """C that keeps what the next step of the group begins with; `left`: an expression for whether there is one."""
    kept = [f"rows[{n}] = {variable};" for n, variable in enumerate(numbers)]
    return [*kept, f"if ({left}) {{", f"    return {prefix}_MORE_STEPS;", "}"]
