"""The arena as ASCII art: addresses against steps."""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.arena.problem import Buffer, Placement

_ROWS, _LEFT = 24, 11  # lines of the map; columns of its addresses
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_FREE, _MANY = ".", "#"


def arena_map(buffers: Iterable[Buffer], placement: Placement, width: int = 80) -> str:
    """Draws a map with a column per step and a line per range of addresses, and a legend.

    Lines have at most `width` characters, which must be 60 or more. Buffers of zero bytes are left out.
    """
    assert width >= 60, f"no room for a map in {width} characters"
    shown = sorted(
        (b for b in buffers if b.bytes),
        key=lambda b: (b.first_step, placement.offsets[b.name], b.last_step, b.name),
    )
    if not shown:
        return "  (empty)"
    letters = _letters(shown)
    size, steps = placement.arena_bytes, 1 + max(b.last_step for b in shown)
    rows, columns = min(_ROWS, size), min(steps, width - _LEFT)
    cell = min(12, (width - _LEFT) // columns)
    lines = []
    for row in reversed(range(rows)):
        low, high = size * row // rows, size * (row + 1) // rows
        held = [b for b in shown if placement.offsets[b.name] < high and placement.offsets[b.name] + b.bytes > low]
        text = ""
        for column in range(columns):
            # several steps share a column in very long models
            first, last = steps * column // columns, steps * (column + 1) // columns - 1
            text += _cell([letters[b.name] for b in held if b.first_step <= last and b.last_step >= first], cell)
        lines.append(f"{low:>{_LEFT - 2}} |{text}")
    lines.append(" " * (_LEFT - 1) + "+" + "-" * (columns * cell))
    lines.append((" " * _LEFT + _axis(columns, cell, steps)).rstrip())
    lines += [
        "",
        "  A line stands for the bytes from its address up to that of the line above,",
        "  a column for the time in which a group runs, a letter for a buffer below.",
        "  Several letters in a column: the buffers use these bytes at different times;",
        "  or one overwrites bytes that another no longer needs; or they lie side by",
        f"  side, each smaller than a line. '{_FREE}' is free, '{_MANY}' more buffers than fit.",
        "",
    ]
    return "\n".join(line[:width] for line in lines + _legend(shown, placement, letters, width))


def _letters(shown: list[Buffer]) -> dict[str, str]:
    """Assigns a letter to each buffer. Buffers that are alive in the same group get different letters, as long as
    letters last."""
    letters: dict[str, str] = {}
    until = dict.fromkeys(_LETTERS, -1)  # last step at which a letter is taken
    for number, buffer in enumerate(shown):
        in_turn = [_LETTERS[(number + k) % len(_LETTERS)] for k in range(len(_LETTERS))]
        letter = next((c for c in in_turn if until[c] < buffer.first_step), _MANY)
        letters[buffer.name] = letter
        if letter in until:
            until[letter] = buffer.last_step
    return letters


def _cell(letters: list[str], width: int) -> str:
    """Letters side by side, all equally wide."""
    if not letters:
        return _FREE * width
    if len(letters) > width:
        return "".join(letters[: width - 1]) + _MANY
    return "".join(letters[len(letters) * column // width] for column in range(width))


def _axis(columns: int, cell: int, steps: int) -> str:
    """Step numbers under their columns, as many as fit."""
    text = ""
    for column in range(columns):
        if column == 0 or len(text) < column * cell:
            text = text.ljust(column * cell) + str(steps * column // columns)
    return text[: columns * cell]


def _legend(shown: list[Buffer], placement: Placement, letters: dict[str, str], width: int) -> list[str]:
    lines = [f"  {'':1} {'offset':>9} {'bytes':>9}  {'groups':<7}  buffer"]
    for buffer in shown:
        steps = f"{buffer.first_step}-{buffer.last_step}"
        owner = "".join(c if " " <= c <= "~" else "?" for c in buffer.owner)
        line = (
            f"  {letters[buffer.name]} {placement.offsets[buffer.name]:>9} {buffer.bytes:>9}  "
            f"{steps:<7}  {buffer.name:<11}  {owner}"
        ).rstrip()
        lines.append(line if len(line) <= width else line[: width - 3] + "...")
    return lines
