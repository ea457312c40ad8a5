"""RAM against instructions, as SVG: a panel a model and core, both axes logarithmic, a point a tool
and setting. Lower left is better."""

from __future__ import annotations

from html import escape
from math import floor, log10

from rows import Row

_PANEL, _GAP, _LEFT, _TOP = 200, 46, 60, 84
_COLORS = {
    "tinyfuse": "#d1495b",
    "TFLM": "#2e6f9e",
    "bakeNN": "#8a6fb3",
    "TVM": "#3f8f5f",
    "TinyEngine": "#b8862b",
    "TinyEngine float": "#d8b365",
}
_GREY = "#6b7280"


def plot(rows: list[Row]) -> str:
    """The picture; rows without figures, and panels without rows, are left out."""
    rows = [row for row in rows if row.instructions and row.ram_bytes]
    models = list(dict.fromkeys(row.model for row in rows))
    targets = list(dict.fromkeys(row.target for row in rows))
    width = max(720, _LEFT + len(models) * (_PANEL + _GAP))
    height = _TOP + len(targets) * (_PANEL + _GAP + 14)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(_LEFT, 24, "Static RAM (bytes) against instructions of one inference: lower left is better", size=15),
    ]
    x = _LEFT
    for tool in dict.fromkeys(row.tool for row in rows):
        lines.append(f'<circle cx="{x + 5}" cy="44" r="5" fill="{_COLORS.get(tool, _GREY)}"/>')
        lines.append(_text(x + 14, 48, tool))
        x += 34 + 7 * len(tool)
    lines.append(_text(x, 48, "filled: exact, hollow: not", color=_GREY))
    for j, target in enumerate(targets):
        for i, model in enumerate(models):
            here = [row for row in rows if (row.model, row.target) == (model, target)]
            if here:
                left, top = _LEFT + i * (_PANEL + _GAP), _TOP + j * (_PANEL + _GAP + 14)
                lines += _panel(here, f"{model}, {target}", left, top)
    return "\n".join([*lines, "</svg>\n"])


def _panel(rows: list[Row], title: str, left: int, top: int) -> list[str]:
    across = _Axis([row.instructions for row in rows])
    up = _Axis([row.ram_bytes for row in rows])
    bottom = top + _PANEL
    lines = [
        f'<rect x="{left}" y="{top}" width="{_PANEL}" height="{_PANEL}" fill="#fafafa" stroke="#d1d5db"/>',
        _text(left, top - 6, title, size=12),
    ]
    for value in across.ticks:
        x = left + across.at(value) * _PANEL
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="#e5e7eb"/>')
        lines.append(_text(x, bottom + 14, _short(value), color=_GREY, anchor="middle"))
    for value in up.ticks:
        y = bottom - up.at(value) * _PANEL
        lines.append(f'<line x1="{left}" x2="{left + _PANEL}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        lines.append(_text(left - 4, y + 4, _short(value), color=_GREY, anchor="end"))
    for row in rows:
        color = _COLORS.get(row.tool, _GREY)
        x, y = left + across.at(row.instructions) * _PANEL, bottom - up.at(row.ram_bytes) * _PANEL
        what = f"{row.tool} {row.setting}: {row.instructions:,} instructions, {row.ram_bytes:,} bytes"
        fill = color if row.exact else "#fff"
        lines.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" fill-opacity="0.8" stroke="{color}" '
            f'stroke-width="1.5"><title>{escape(what)}</title></circle>'
        )
    return lines


class _Axis:
    """A logarithmic axis around some values, with ticks at 1, 2 and 5."""

    def __init__(self, values: list[int]):
        self.low, self.high = log10(min(values)) - 0.12, log10(max(values)) + 0.12
        decades = range(floor(self.low), floor(self.high) + 1)
        ticks = [m * 10**d for d in decades for m in (1, 2, 5)]
        self.ticks = [tick for tick in ticks if self.low < log10(tick) < self.high]

    def at(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        return (log10(value) - self.low) / (self.high - self.low)


def _short(value: float) -> str:
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if value >= unit:
            return f"{value / unit:g} {letter}"
    return f"{value:g}"


def _text(x: float, y: float, text: str, color: str = "#111827", size: int = 11, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
    )
