"""The arena as an SVG picture: addresses upward, steps to the right, one rectangle per buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from tinyfuse.arena.problem import Buffer, Placement

#: role of a buffer -> legend text, and a fill on which black text is readable
ROLES = {
    "input": ("input", "#80b1d3"),
    "output": ("output", "#bebada"),
    "tensor": ("tensor between groups", "#b3de69"),
    "ring": ("rows in a ring", "#fdb462"),
    "stack": ("stack of rings and scratch", "#fdcdac"),
    "scratch": ("scratch", "#d9d9d9"),
    "weights": ("weights copied from a slow bank", "#fccde5"),
    "counters": ("counters of rows", "#ffed6f"),
    "": ("buffer", "#ccebc5"),
}
SHARED = (
    "Hatched: bytes that two buffers share: one uses them while the other",
    "no longer needs them, or has not filled them yet.",
)

_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 34, 16, 40  # margins, pixels
_STEP, _LIVE_SETS, _NARROWEST, _WIDEST = 40, 280, 560, 1600  # pixels: a step; a step with live sets; the plot
_HEIGHT = 480
_CHARACTER, _LINE = 6, 11  # pixels of text
_TITLE_CHARACTER = 8
_LEGEND_LINE = 18


def arena_svg(
    buffers: Iterable[Buffer], placement: Placement, arena_bytes: int | None = None, lower_bound: int | None = None,
    roles: Mapping[str, tuple[str, str]] | None = None,
) -> str:  # fmt: skip
    """Draws a small stand-alone SVG.

    Buffers that are alive only in some live sets of a step are drawn at those, from left to right. Every rectangle has
    its figures as a tooltip. `arena_bytes` and `lower_bound` replace the placement's by the rounded ones of the module.
    `roles` maps a buffer's name to (key of ROLES, layer as label), see report/buffer_roles.py.
    """
    shown = [buffer for buffer in buffers if buffer.bytes]
    named = {buffer.name: (roles or {}).get(buffer.name, ("", buffer.name)) for buffer in shown}
    size = max(1, placement.arena_bytes if arena_bytes is None else arena_bytes)
    least = placement.lower_bound if lower_bound is None else lower_bound
    edges = _step_edges(shown)
    drawn = [_Drawn(buffer, placement.offsets[buffer.name], _spans(buffer, edges, shown)) for buffer in shown]
    shared = [path for before, after in _alive_together(drawn) for path in _shared(before, after, size)]
    proof = "proven minimal" if least >= size else f"at least {least:,} are needed"
    title = f"Arena: {size:,} bytes, {proof}"
    width = _LEFT + max(edges[-1], _TITLE_CHARACTER * len(title)) + _RIGHT
    legend = _legend([role for role in ROLES if role in {role for role, _ in named.values()}], bool(shared), width)
    height = _TOP + _HEIGHT + _BOTTOM + _LEGEND_LINE * (1 + max((line for line, _ in legend), default=0))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="10">',
        '<defs><pattern id="shared" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<path d="M0 6L6 0" stroke="#333" stroke-width="0.7"/></pattern></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="13">{title}</text>',
        *_axes(edges, size),
    ]
    for each in drawn:
        lines += _rectangles(each, size, ROLES[named[each.buffer.name][0]][1])
    lines += [f'<path d="{path}" fill="url(#shared)" pointer-events="none"/>' for path in shared]
    for each in drawn:
        lines += _label(each, size, named[each.buffer.name][1])
    lines += [text for _, text in legend]
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


class _Drawn(NamedTuple):
    """A buffer with its offset, and its lifetime as (left, right) in pixels from the plot's left edge."""

    buffer: Buffer
    offset: int
    spans: list[tuple[int, int]]


def _alive_together(drawn: Sequence[_Drawn]) -> Iterator[tuple[_Drawn, _Drawn]]:
    """Yields pairs of buffers that share bytes while both are alive."""
    ordered = sorted(drawn, key=lambda each: each.buffer.first_step)
    for number, before in enumerate(ordered):
        for after in ordered[number + 1 :]:
            if after.buffer.first_step > before.buffer.last_step:
                break
            apart = max(before.offset, after.offset) >= min(
                before.offset + before.buffer.bytes, after.offset + after.buffer.bytes
            )
            if not apart and before.buffer.meets(after.buffer):
                yield before, after


def _shared(before: _Drawn, after: _Drawn, size: int) -> Iterator[str]:
    """Yields outlines of the bytes and times that both buffers share."""
    bottom = _TOP + _HEIGHT
    top = bottom - _HEIGHT * min(each.offset + each.buffer.bytes for each in (before, after)) // size
    low = bottom - _HEIGHT * max(before.offset, after.offset) // size
    for left, right in before.spans:
        for other_left, other_right in after.spans:
            start, end = max(left, other_left), min(right, other_right)
            if start < end and top < low:
                yield f"M{_LEFT + start} {top}H{_LEFT + end}V{low}H{_LEFT + start}Z"


def _legend(roles: Sequence[str], shares: bool, width: int) -> list[tuple[int, str]]:
    """(line, markup) of each legend entry, as many in a line as fit."""
    found, line, x = [], 0, _LEFT
    for role in roles:
        text, colour = ROLES[role]
        wide = 24 + _CHARACTER * len(text) + _LINE
        if x > _LEFT and x + wide > width:
            line, x = line + 1, _LEFT
        y = _TOP + _HEIGHT + _BOTTOM + _LEGEND_LINE * line
        swatch = f'<path d="M{x} {y}h12v10h-12Z" fill="{colour}" stroke="#444" stroke-width="0.5"/>'
        found.append((line, f'{swatch}<text x="{x + 17}" y="{y + 9}">{text}</text>'))
        x += wide
    if shares:
        y = _TOP + _HEIGHT + _BOTTOM + _LEGEND_LINE * (line + 1)
        swatch = f'<path d="M{_LEFT} {y}h12v10h-12Z" fill="url(#shared)" stroke="#444" stroke-width="0.5"/>'
        for number, text in enumerate(SHARED):
            found.append((line + 1 + number, f'{swatch}<text x="{_LEFT + 17}" y="{y + 9}">{text}</text>'))
            y, swatch = y + _LEGEND_LINE, ""
    return found


def _live_sets_at(shown: list[Buffer], step: int) -> int:
    """Counts the live sets of a step; 1 if no buffer tells."""
    here = (b.live_sets for b in shown if b.live_sets and b.first_step == step)
    return 1 + max((max(live_sets) for live_sets in here), default=0)


def _step_edges(shown: list[Buffer]) -> list[int]:
    """Left edge of each step in pixels, then the right edge of the last."""
    steps = 1 + max((b.last_step for b in shown), default=0)
    wide = [_STEP if _live_sets_at(shown, step) == 1 else _LIVE_SETS for step in range(steps)]
    whole = sum(wide)
    plot = max(_NARROWEST, min(_WIDEST, whole))
    return [plot * sum(wide[:step]) // whole for step in range(steps + 1)]


def _axes(edges: list[int], size: int) -> Iterator[str]:
    bottom, right = _TOP + _HEIGHT, _LEFT + edges[-1]
    for address in _ticks(size):
        y = bottom - _HEIGHT * address // size
        yield f'<path d="M{_LEFT - 4} {y}H{right}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{address:,}</text>'
    labelled = -100
    for step, (left, end) in enumerate(pairwise(edges)):
        middle = _LEFT + (left + end) // 2
        if middle - labelled >= 4 * _CHARACTER:
            yield f'<text x="{middle}" y="{bottom + 15}" text-anchor="middle">{step}</text>'
            labelled = middle
        if left:
            yield f'<path d="M{_LEFT + left} {_TOP}V{bottom}" stroke="#eee"/>'
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#333"/>'
    yield f'<text x="{(_LEFT + right) // 2}" y="{bottom + 31}" text-anchor="middle">group</text>'


def _ticks(size: int) -> list[int]:
    """Round addresses, at most ten, and the arena's end."""
    step = 1
    while size // step > 10:
        step *= 2
    return [address for address in range(0, size, step) if size - address > step // 3] + [size]


def _rectangles(drawn: _Drawn, size: int, colour: str) -> Iterator[str]:
    buffer = drawn.buffer
    top, height = _top_and_height(drawn, size)
    owner = f" ({buffer.owner})" if buffer.owner else ""
    groups = (
        f"group {buffer.first_step}"
        if buffer.first_step == buffer.last_step
        else f"groups {buffer.first_step} to {buffer.last_step}"
    )
    about = f"{buffer.name}{owner}: {buffer.bytes:,} bytes at {drawn.offset:,}, {groups}"
    yield f"<g><title>{escape(_printable(about), quote=False)}</title>"
    for left, right in drawn.spans:
        yield (
            f'<rect x="{_LEFT + left}" y="{top}" width="{max(1, right - left)}" height="{height}" '
            f'fill="{colour}" stroke="#444" stroke-width="0.5"/>'
        )
    yield "</g>"


def _label(drawn: _Drawn, size: int, layer: str) -> Iterator[str]:
    """Yields the name of a buffer's layer, or its first word, if it fits."""
    top, height = _top_and_height(drawn, size)
    left, right = max(drawn.spans, key=lambda span: span[1] - span[0])
    fitting = (text for text in (layer, layer.split(" ")[0]) if right - left >= _CHARACTER * len(text) + 4)
    label = next(fitting, None)
    if label and height >= _LINE:
        x, y = _LEFT + (left + right) // 2, top + height // 2 + 4
        yield (
            f'<text x="{x}" y="{y}" text-anchor="middle" pointer-events="none" stroke="#fff" stroke-width="2" '
            f'paint-order="stroke">{escape(_printable(label), quote=False)}</text>'
        )


def _top_and_height(drawn: _Drawn, size: int) -> tuple[int, int]:
    low, top = (_TOP + _HEIGHT - _HEIGHT * a // size for a in (drawn.offset, drawn.offset + drawn.buffer.bytes))
    return top, max(1, low - top)


def _spans(buffer: Buffer, edges: list[int], shown: list[Buffer]) -> list[tuple[int, int]]:
    """Lifetime of a buffer as (left, right) in pixels: runs of live sets in its first step, then its other steps."""
    left, right, end = (edges[step] for step in (buffer.first_step, buffer.first_step + 1, buffer.last_step + 1))
    if not buffer.live_sets:
        return [(left, end)]
    count = _live_sets_at(shown, buffer.first_step)
    at = [left + (right - left) * live_set // count for live_set in range(count + 1)]
    starts = sorted(m for m in buffer.live_sets if m - 1 not in buffer.live_sets)
    ends = sorted(m for m in buffer.live_sets if m + 1 not in buffer.live_sets)
    spans = [(at[start], at[stop + 1]) for start, stop in zip(starts, ends, strict=True)]
    return spans if right == end else [*spans, (right, end)]


def _printable(text: str) -> str:
    """Replaces control characters, which XML forbids; other scripts stay."""
    return "".join(c if c.isprintable() else "?" for c in text)
