"""C for groups that run in steps: checks and updates of the numbers that they keep in the caller's cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: C variable that counts the pieces of a divided call
PIECE = "piece"


def cursor_checks(prefix: str, numbers: Iterable[tuple[str, str]]) -> list[str]:
    """C lines that refuse a cursor with numbers that no step leaves; `numbers` maps each variable to its largest value.

    The lines also tell the compiler the variables' range: without it, gcc warns of overflows.
    """
    lines = []
    for variable, most in numbers:
        lines += [f"if ({variable} < 0 || {variable} > {most}) {{", f"    return {prefix}_ERROR_CURSOR;", "}"]
    return lines


def end_of_step(prefix: str, numbers: Sequence[str], left: str) -> list[str]:
    """C lines that store the numbers for the group's next step; `left` is a C expression that is true if there is
    one."""
    kept = [f"rows[{n}] = {variable};" for n, variable in enumerate(numbers)]
    return [*kept, f"if ({left}) {{", f"    return {prefix}_MORE_STEPS;", "}"]
