"""The pictures as the network sees them, each with what it said of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scenes import CLASSES, LEFT, SIDE, TOP

ACROSS = 4  # pictures side by side
CELL, GAP, BAR = 200, 16, 16
HEIGHT = CELL + len(CLASSES) * (BAR + 4) + GAP
GREYS = 12
TEXT = 'font-family="sans-serif" font-size="12" fill="#333"'


def svg(pictures: np.ndarray, scores: list[list[int]]) -> str:
    """uint8 pictures [n, 120, 160]; the scores of each, 0 to 255. The same arguments give the same bytes."""
    width = min(ACROSS, len(pictures)) * (CELL + GAP) + GAP
    height = -(-len(pictures) // ACROSS) * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="Pictures of a belt, with the score of each class under them">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for n, (pixels, row) in enumerate(zip(pictures, scores, strict=True)):
        x, y = GAP + n % ACROSS * (CELL + GAP), GAP + n // ACROSS * (HEIGHT + GAP)
        parts += [f'<g transform="translate({x},{y})">', *_picture(pixels), *_scores(row), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _picture(pixels: np.ndarray) -> Iterator[str]:
    """The middle, by half as many pixels, in a few greys: runs of one grey are lines."""
    middle = pixels[TOP : TOP + SIDE, LEFT : LEFT + SIDE].astype(int)
    half = middle.reshape(SIDE // 2, 2, SIDE // 2, 2).sum(axis=(1, 3))  # 0 to 4 * 255
    greys = half * GREYS // (4 * 255 + 1)
    yield f'<g transform="scale({CELL / (SIDE // 2):.4f})" shape-rendering="crispEdges">'
    for grey in np.unique(greys):
        level = round((grey + 0.5) / GREYS * 255)
        path = "".join(f"M{start} {y}.5h{end - start}" for y, start, end in _runs(greys == grey))
        yield f'<path d="{path}" stroke="#{level:02x}{level:02x}{level:02x}" stroke-width="1.02"/>'
    yield "</g>"


def _runs(mask: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """(line, first column, column behind the last) of what is true side by side."""
    for y, line in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
        yield from ((y, int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True))


def _scores(row: list[int]) -> Iterator[str]:
    """A bar for each class; the best one stands out."""
    for n, (name, score) in enumerate(zip(CLASSES, row, strict=True)):
        y = CELL + 6 + n * (BAR + 4)
        colour = "#0072B2" if n == row.index(max(row)) else "#bbb"
        yield f'<text x="0" y="{y + 12}" {TEXT}>{name}</text>'
        yield f'<rect x="60" y="{y + 2}" width="{score * (CELL - 60) / 255:.1f}" height="{BAR - 4}" fill="{colour}"/>'
