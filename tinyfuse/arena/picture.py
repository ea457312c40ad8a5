"""The arena as a picture in ASCII: addresses against steps."""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.arena.problem import Buffer, Placement

_ROWS, _WIDTH = 24, 96
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def arena_map(buffers: Iterable[Buffer], placement: Placement, width: int = _WIDTH) -> str:
    """A map with one column a step and one line a range of addresses, and a legend.

    A cell shows the letter of the buffer that holds most of its bytes then, '.' where none does, '#'
    where two share it (an output over used-up rows of an input, or two small buffers).
    """
    buffers = [buffer for buffer in buffers if buffer.bytes]
    if not buffers:
        return "  (empty)"
    size, steps = placement.arena_bytes, 1 + max(b.last_step for b in buffers)
    rows = min(_ROWS, size)
    columns = min(steps, width - 12)  # several steps share a column in very long models
    cell = max(1, min(6, (width - 12) // columns))
    letters = {b.name: _LETTERS[i % len(_LETTERS)] for i, b in enumerate(buffers)}
    lines = []
    for row in reversed(range(rows)):
        low, high = size * row // rows, max(size * row // rows + 1, size * (row + 1) // rows)
        text = ""
        for column in range(columns):
            step_range = range(steps * column // columns, max(1, steps * (column + 1) // columns))
            text += _cell(buffers, placement, letters, low, high, step_range) * cell
        lines.append(f"{low:>9} |{text}")
    lines.append(" " * 10 + "+" + "-" * (columns * cell))
    lines.append(" " * 11 + _axis(columns, cell, steps))
    lines.append("")
    lines += _legend(buffers, placement, letters)
    return "\n".join(lines)


def _cell(buffers, placement, letters, low: int, high: int, steps: range) -> str:
    shares: dict[str, int] = {}
    for buffer in buffers:
        offset = placement.offsets[buffer.name]
        held = min(high, offset + buffer.bytes) - max(low, offset)
        if held > 0 and any(buffer.first_step <= s <= buffer.last_step for s in steps):
            shares[letters[buffer.name]] = held
    if not shares:
        return "."
    largest = max(shares, key=lambda letter: shares[letter])
    both = sum(shares.values()) > high - low
    return "#" if both else largest


def _axis(columns: int, cell: int, steps: int) -> str:
    """Step numbers under their columns, as many as have room."""
    text = ""
    for column in range(columns):
        label = str(steps * column // columns)
        if len(text) <= column * cell and (column % max(1, 4 // cell) == 0):
            text = text.ljust(column * cell) + label
    return text


def _legend(buffers, placement, letters) -> list[str]:
    lines = [f"  {'':1} {'offset':>9} {'bytes':>9}  steps    buffer"]
    for buffer in sorted(buffers, key=lambda b: (b.first_step, placement.offsets[b.name])):
        steps = f"{buffer.first_step}-{buffer.last_step}"
        owner = "".join(c if " " <= c <= "~" else "?" for c in buffer.owner)
        lines.append(
            f"  {letters[buffer.name]} {placement.offsets[buffer.name]:>9} {buffer.bytes:>9}  "
            f"{steps:<7}  {buffer.name}  {owner}"[:120].rstrip()
        )
    return lines
