"""SVG picture of a group's row schedule: which stage makes a row at which time, and the rows in each ring."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tinyfuse.cost.predict import group_stream
from tinyfuse.plan import Group, Plan
from tinyfuse.plan.rows import Stream, height
from tinyfuse.report.buffer_roles import layer_name

_LEFT, _TOP, _RIGHT, _BOTTOM = 250, 40, 90, 36  # margins in pixels
_LANE, _GAP, _EVENT, _WIDTH = 34, 8, 14, 1000  # pixels: a stage's lane and the gap below; widest event; the plot
_MADE, _HELD, _WHOLE = "#d95f02", "#9ecae1", "#e5e5e5"


def rows_svg(plan: Plan) -> str:
    """Stand-alone SVG of the largest group that runs by rows; if there is none, an SVG that says so."""
    streams = [(group, group_stream(plan, group)) for group in plan.groups if group.outputs]
    by_row = [(group, stream) for group, stream in streams if stream is not None]
    if not by_row:
        return _page(460, 60, ['<text x="20" y="34" font-size="13">No group runs by rows.</text>'])
    return _picture(*max(by_row, key=lambda each: len(each[0].stages)))


def _picture(group: Group, stream: Stream) -> str:
    played = stream.played.tolist()
    event = min(_EVENT, _WIDTH / len(played))
    right = _LEFT + event * len(played)
    bottom = _TOP + len(group.stages) * (_LANE + _GAP)
    lines = [
        f'<text x="{_LEFT}" y="22" font-size="13">Group {group.index}: {len(played):,} rows in order of '
        "computation, from left to right</text>"
    ]
    for s in range(len(group.stages)):
        lines += _lane(group, stream, played, s, event)
    key, end = bottom + 20, right + _RIGHT
    for x, colour, text in (
        (_LEFT, _MADE, "makes a row"), (_LEFT + 110, _HELD, "rows in the ring"),
        (_LEFT + 270, _WHOLE, "rows of a whole tensor so far"),
    ):  # fmt: skip
        lines.append(f'<rect x="{x}" y="{key - 9}" width="10" height="10" fill="{colour}"/>')
        lines.append(f'<text x="{x + 15}" y="{key}">{text}</text>')
    return _page(max(int(end), _LEFT + 470), bottom + _BOTTOM, lines)


def _lane(group: Group, stream: Stream, played: list[list[int]], s: int, event: float) -> Iterator[str]:
    stage, floor = group.stages[s], _TOP + (s + 1) * (_LANE + _GAP) - _GAP
    tensor = stage.op.output
    ring = stream.rings.get(tensor)
    most = ring or height(tensor)
    name = tensor.name.split(";")[0].split("/")[-1]
    label = f"{layer_name(stage.op)} {name[:16]}"
    kind = "whole" if ring is None else f"{ring} of {height(tensor)}" + (", slides" if tensor in stream.sliding else "")
    base = floor - _LANE // 2 + 4
    yield f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{escape(_printable(label), quote=False)}</text>'
    yield f'<text x="{_LEFT + event * len(played) + 6:g}" y="{base}">{escape(kind, quote=False)}</text>'
    path, last = [f"M{_LEFT} {floor}"], None
    for number, (_, *rows) in enumerate(played):
        if rows[s] != last:
            last = rows[s]
            path.append(f"H{_LEFT + event * number:.1f}V{floor - _LANE * last / most:.1f}")
    path.append(f"H{_LEFT + event * len(played):.1f}V{floor}Z")
    colour = _WHOLE if ring is None else _HELD
    yield f'<path d="{"".join(path)}" fill="{colour}" stroke="#888" stroke-width="0.5"/>'
    made = [number for number, (computing, *_) in enumerate(played) if computing == s]
    ticks = "".join(
        f"M{_LEFT + event * n:.1f} {floor - 5}h{max(event, 0.7):.2f}v5h-{max(event, 0.7):.2f}Z" for n in made
    )
    yield f'<path d="{ticks}" fill="{_MADE}"/>'


def _page(width: int, height: int, lines: list[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *lines,
            "</svg>",
            "",
        ]
    )


def _printable(text: str) -> str:
    """Text with control characters, which XML forbids, replaced by "?"."""
    return "".join(c if c.isprintable() else "?" for c in text)
