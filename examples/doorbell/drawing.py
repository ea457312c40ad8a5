"""The recording, and under it what the model said of each step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sounds import CLASSES, RATE

WIDTH, LEFT, RIGHT = 860, 70, 20
#: of the two panels: top, height
SOUND, SCORES = (40, 90), (160, 150)
HEIGHT = 360
STEP = 0.02  # seconds
#: colours that people see apart who don't see all colours (Okabe and Ito); the first class is no sound
COLOURS = ("#999999", "#0072B2", "#D55E00")
Place = Callable[[float], float]  # of a moment, in seconds
TEXT = 'font-family="sans-serif" font-size="12" fill="#333"'


def svg(samples: np.ndarray, first: int, scores: np.ndarray) -> str:
    """int16 samples; scores of 0 to 255 of each class [steps, classes], from step `first` on. The same arguments give
    the same bytes."""
    seconds = samples.size / RATE

    def x(time: float) -> float:
        return LEFT + time / seconds * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="A recording, and the scores of each step under it">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_legend(),
        *_sound(samples),
        *_scores(scores, first, seconds, x),
        *_axis(seconds, x),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend() -> list[str]:
    found, at = [], LEFT
    for name, colour in zip(CLASSES[1:], COLOURS[1:], strict=True):
        found.append(f'<rect x="{at}" y="15" width="16" height="4" fill="{colour}"/>')
        found.append(f'<text x="{at + 22}" y="21" {TEXT}>{name}</text>')
        at += 110
    return found


def _sound(samples: np.ndarray) -> list[str]:
    """The least and the largest sample of each pixel."""
    top, height = SOUND
    columns = np.array_split(samples.astype(int), WIDTH - LEFT - RIGHT)
    y = [(top + height * (1 - (column.max() + 32768) / 65535), top + height * (1 - (column.min() + 32768) / 65535))
         for column in columns]  # fmt: skip
    path = "".join(f"M{LEFT + i}.5,{high:.1f}V{max(low, high + 0.5):.1f}" for i, (high, low) in enumerate(y))
    return [
        f'<path d="{path}" stroke="#555" fill="none"/>',
        f'<text x="{LEFT - 10}" y="{top + height / 2 + 4:.0f}" text-anchor="end" {TEXT}>sound</text>',
    ]


def _scores(scores: np.ndarray, first: int, seconds: float, x: Place) -> list[str]:
    top, height = SCORES
    found = []
    for share in (0, 50, 100):
        y = top + height * (1 - share / 100)
        found.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        found.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end" {TEXT}>{share} %</text>')
    start = x(min((first + 1) * STEP, seconds))
    found.append(f'<rect x="{LEFT}" y="{top}" width="{start - LEFT:.1f}" height="{height}" fill="#f4f4f4"/>')
    found.append(
        f'<text x="{(LEFT + start) / 2:.0f}" y="{top + height / 2:.0f}" text-anchor="middle" {TEXT}>window fills</text>'
    )
    for number in range(1, len(CLASSES)):
        points = " ".join(
            f"{x((first + n + 1) * STEP):.1f},{top + height * (1 - score / 255):.1f}"
            for n, score in enumerate(scores[:, number] if len(scores) else ())
        )
        found.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[number]}" stroke-width="2"/>')
    return found


def _axis(seconds: float, x: Place) -> list[str]:
    bottom = SCORES[0] + SCORES[1]
    found, every = [], max(1, round(seconds / 10))
    for time in range(0, int(seconds) + 1, every):
        at = x(time)
        found.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 5}" stroke="#333"/>')
        found.append(f'<text x="{at:.1f}" y="{bottom + 20}" text-anchor="middle" {TEXT}>{time} s</text>')
    return found
