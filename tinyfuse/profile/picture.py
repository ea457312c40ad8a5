"""Draws a profile as SVG: the inference, its groups, operators and functions, with widths proportional to their
instructions."""

from __future__ import annotations

from html import escape

from tinyfuse.errors import UsageError
from tinyfuse.report.answer import JsonObject

_WIDTH, _MARGIN, _ROW, _GAP = 960, 16, 30, 2
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_LETTER = 6.7  # width of a letter at _SIZE, pixels
_SIZE = 11
_WHOLE, _GROUP = "#3b4252", "#5e6c84"
_PALETTE = ("#e8833a", "#4c9f70", "#4a7fb5", "#c8553d", "#8e6c8a", "#d9a441", "#5aa9a4", "#9a8c5c")


def profile_svg(data: JsonObject) -> str:
    """Picture of the JSON of `profile`. UsageError if single instructions were not counted."""
    total = data["instructions"]
    if total is None or data["calls"] is None:
        raise UsageError("--svg needs a count of each instruction, which takes QEMU and a C compiler for this computer")
    return _Picture(data, total).draw()


class _Picture:
    def __init__(self, data: JsonObject, total: int):
        self.data = data
        self.scale = (_WIDTH - 2 * _MARGIN) / total
        kinds = [op["kind"] for group in data["groups"] for op in group["operators"]]
        self.colors = {kind: _PALETTE[i % len(_PALETTE)] for i, kind in enumerate(dict.fromkeys(kinds))}
        self.lines: list[str] = []

    def draw(self) -> str:
        data = self.data
        self._text(_MARGIN, 24, f"{data['options']['name']} on {data['target']}", size=15, weight=600)
        self._text(_MARGIN, 43, self._summary(), fill="#5b6472")
        top = 58
        self._box(_MARGIN, top, data["instructions"], _WHOLE, "one inference", "#fff")
        x = float(_MARGIN)
        for number, group in enumerate(data["groups"]):
            self._box(x, top + _ROW, group["instructions"], _GROUP, f"group {number}", "#fff")
            inner = x
            for op in group["operators"]:
                self._operator(inner, top + 2 * _ROW, op)
                inner += op["instructions"] * self.scale
            x += group["instructions"] * self.scale
        height = self._legend(top + 4 * _ROW + 20)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
                f'height="{height}" font-family="{_FONT}" font-size="{_SIZE}">',
                f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="#fff"/>',
                *self.lines,
                "</svg>\n",
            ]
        )

    def _summary(self) -> str:
        data, unfused = self.data, self.data["unfused"]
        words = [f"{data['instructions']:,} instructions"]
        if data["instructions_per_mac"]:
            words.append(f"{data['instructions_per_mac']:.2f} a MAC")
        words.append(f"arena {data['arena_bytes']:,} bytes")
        if unfused:
            words.append(f"unfused: {unfused['instructions']:,} instructions, arena {unfused['arena_bytes']:,}")
        return " · ".join(words)

    def _operator(self, x: float, y: float, op: JsonObject) -> None:
        color = self.colors[op["kind"]]
        per_mac = f", {op['instructions_per_mac']:.2f} a MAC" if op["instructions_per_mac"] else ""
        self._box(x, y, op["instructions"], color, op["kind"], "#fff", f"{op['name']}{per_mac}")
        for function in op["functions"]:
            name = function["name"] or "row loop"
            self._box(
                x, y + _ROW, function["instructions"], color, name.removeprefix("tinyfuse_"), "#1d2430", opacity=0.45
            )
            x += function["instructions"] * self.scale

    def _box(
        self,
        x: float,
        y: float,
        instructions: int,
        color: str,
        label: str,
        ink: str,
        more: str = "",
        opacity: float = 1,
    ) -> None:
        width = instructions * self.scale
        if width < 0.3:
            return
        gap = min(1.0, width / 4)
        share = 100 * instructions / self.data["instructions"]
        title = f"{label}: {instructions:,} instructions, {share:.1f} %" + (f" ({more})" if more else "")
        self.lines.append(
            f'<g><title>{escape(title)}</title><rect x="{x:.2f}" y="{y}" width="{width - gap:.2f}" '
            f'height="{_ROW - _GAP}" rx="{min(2.0, width / 4):.1f}" fill="{color}" fill-opacity="{opacity}"/>'
        )
        letters = int((width - 8) / _LETTER)
        if letters >= 3:
            longer = f"{label} {share:.1f} %"
            shown = longer if len(longer) <= letters else label if len(label) <= letters else label[: letters - 1] + "…"
            self._text(x + 5, y + 18, shown, fill=ink)
        self.lines.append("</g>")

    def _legend(self, y: float) -> int:
        """Draws the share of every kind of operator, and returns the height of the picture."""
        shares: dict[str, int] = {}
        for group in self.data["groups"]:
            for op in group["operators"]:
                shares[op["kind"]] = shares.get(op["kind"], 0) + op["instructions"]
        x = float(_MARGIN)
        for kind, instructions in sorted(shares.items(), key=lambda item: -item[1]):
            label = f"{kind} {100 * instructions / self.data['instructions']:.1f} %"
            if label.endswith(" 0.0 %"):
                continue
            width = 18 + len(label) * _LETTER + 16
            if x + width > _WIDTH and x > _MARGIN:
                x, y = float(_MARGIN), y + 20
            self.lines.append(
                f'<rect x="{x:.1f}" y="{y - 9}" width="11" height="11" rx="2" fill="{self.colors[kind]}"/>'
            )
            self._text(x + 16, y, label, fill="#5b6472")
            x += width
        return int(y + 16)

    def _text(self, x: float, y: float, text: str, fill: str = "#1d2430", size: int = _SIZE, weight: int = 400) -> None:
        self.lines.append(
            f'<text x="{x:.1f}" y="{y}" fill="{fill}" font-size="{size}" font-weight="{weight}">{escape(text)}</text>'
        )
