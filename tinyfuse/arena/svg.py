"""The arena as an SVG picture: addresses upward, steps to the right, a rectangle a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise

from tinyfuse.arena.problem import Buffer, Placement

#: fills that black text is read on
_COLOURS = (
    "#8dd3c7",
    "#fdb462",
    "#80b1d3",
    "#fb8072",
    "#b3de69",
    "#bebada",
    "#fccde5",
    "#ffed6f",
    "#bc80bd",
    "#ccebc5",
)
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 34, 16, 40  # margins, pixels
_STEP, _LIVE_SETS, _WIDEST = 40, 200, 1600  # pixels of a step, of one with live sets; of the plot
_HEIGHT = 480
_CHARACTER, _LINE = 6, 11  # pixels of text
_TITLE_CHARACTER = 8


def arena_svg(
    buffers: Iterable[Buffer], placement: Placement, arena_bytes: int | None = None, lower_bound: int | None = None
) -> str:
    """A small stand-alone SVG. Buffers that live in some live sets of a step alone are drawn at those,
    from left to right; every rectangle has its figures as a tooltip. `arena_bytes` and `lower_bound` are
    what the module states: the placement's, rounded up."""
    shown = [buffer for buffer in buffers if buffer.bytes]
    size = max(1, placement.arena_bytes if arena_bytes is None else arena_bytes)
    least = placement.lower_bound if lower_bound is None else lower_bound
    edges = _step_edges(shown)
    proof = "proven minimal" if least >= size else f"at least {least:,} are needed"
    title = f"Arena: {size:,} bytes, {proof}"
    width, height = _LEFT + max(edges[-1], _TITLE_CHARACTER * len(title)) + _RIGHT, _TOP + _HEIGHT + _BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="10">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="13">{title}</text>',
        *_axes(edges, size),
    ]
    for number, buffer in enumerate(shown):
        lines += _rectangles(
            buffer, placement.offsets[buffer.name], size, edges, shown, _COLOURS[number % len(_COLOURS)]
        )
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def _live_sets_at(shown: list[Buffer], step: int) -> int:
    """How many live sets the step has; 1 if no buffer tells."""
    here = (b.live_sets for b in shown if b.live_sets and b.first_step == step)
    return 1 + max((max(live_sets) for live_sets in here), default=0)


def _step_edges(shown: list[Buffer]) -> list[int]:
    """Where each step begins, in pixels, and where the last one ends."""
    steps = 1 + max((b.last_step for b in shown), default=0)
    wide = [_STEP if _live_sets_at(shown, step) == 1 else _LIVE_SETS for step in range(steps)]
    whole = sum(wide)
    plot = max(240, min(_WIDEST, whole))
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
    yield f'<text x="{(_LEFT + right) // 2}" y="{bottom + 31}" text-anchor="middle">step</text>'


def _ticks(size: int) -> list[int]:
    """Round addresses, at most ten, and the arena's end."""
    step = 1
    while size // step > 10:
        step *= 2
    return [address for address in range(0, size, step) if size - address > step // 3] + [size]


def _rectangles(
    buffer: Buffer, offset: int, size: int, edges: list[int], shown: list[Buffer], colour: str
) -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    top, low = bottom - _HEIGHT * (offset + buffer.bytes) // size, bottom - _HEIGHT * offset // size
    height = max(1, low - top)
    spans = [(_LEFT + left, max(1, right - left)) for left, right in _spans(buffer, edges, shown)]
    owner = f" ({buffer.owner})" if buffer.owner else ""
    steps = (
        f"step {buffer.first_step}"
        if buffer.first_step == buffer.last_step
        else (f"steps {buffer.first_step} to {buffer.last_step}")
    )
    about = f"{buffer.name}{owner}: {buffer.bytes:,} bytes at {offset:,}, {steps}"
    yield f"<g><title>{escape(_printable(about), quote=False)}</title>"
    for left, width in spans:
        yield (
            f'<rect x="{left}" y="{top}" width="{width}" height="{height}" '
            f'fill="{colour}" fill-opacity="0.8" stroke="#444" stroke-width="0.5"/>'
        )
    left, width = max(spans, key=lambda span: span[1])
    name = _printable(buffer.name)
    if height >= _LINE and width >= _CHARACTER * len(name) + 4:
        x, y = left + width // 2, top + height // 2 + 4
        yield f'<text x="{x}" y="{y}" text-anchor="middle">{escape(name, quote=False)}</text>'
    yield "</g>"


def _spans(buffer: Buffer, edges: list[int], shown: list[Buffer]) -> list[tuple[int, int]]:
    """Where a buffer lives, (left, right) in pixels: its steps, of the first one runs of live sets."""
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
    """XML has no control characters; other scripts may stay."""
    return "".join(c if c.isprintable() else "?" for c in text)
