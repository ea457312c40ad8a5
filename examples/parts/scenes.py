"""Pictures of our own making: a belt seen from above, empty or with a nut, a washer or a screw on it; and the film of
them that the firmware's camera shows.

    python examples/parts/scenes.py      # writes film.pgm
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FILM = HERE / "film.pgm"
CLASSES = ("nothing", "nut", "washer", "screw")
LINES, COLUMNS = 120, 160  # of a picture, as a small camera gives it (QQVGA)
SIDE = 96  # pixels a side that the network sees, in the middle
TOP, LEFT = (LINES - SIDE) // 2, (COLUMNS - SIDE) // 2
#: what lies on the belt, picture by picture
FILM_CLASSES = (0, 1, 2, 3, 2, 1, 3, 0)

Random = np.random.Generator
Array = np.ndarray


# --- shapes: signed distances in pixels, below 0 inside ----------------------------------------


def _nut(x: Array, y: Array, size: float, random: Random) -> Array:
    """A hexagon with a round hole."""
    turned = [np.abs(x * np.cos(angle) + y * np.sin(angle)) for angle in np.arange(3) * np.pi / 3]
    hole = size * random.uniform(0.42, 0.52) - np.hypot(x, y)
    return np.maximum(np.maximum.reduce(turned) - size * 0.88, hole)


def _washer(x: Array, y: Array, size: float, random: Random) -> Array:
    """A disc with a round hole."""
    return np.abs(np.hypot(x, y) - size * 0.8) - size * random.uniform(0.16, 0.24)


def _screw(x: Array, y: Array, size: float, random: Random) -> Array:
    """Lying: a head, and a shaft whose edge has a thread."""
    length, width = size * random.uniform(1.3, 1.9), size * random.uniform(0.2, 0.28)
    head = np.maximum(np.abs(x + length / 2 + size * 0.2) - size * 0.22, np.abs(y) - size * 0.5)
    thread = width + 0.8 * np.sin(x * 2 * np.pi / 4)
    return np.minimum(head, np.maximum(np.abs(x) - length / 2, np.abs(y) - thread))


_SHAPES = {1: _nut, 2: _washer, 3: _screw}


# --- pictures ----------------------------------------------------------------------------------


def _belt(x: Array, y: Array, random: Random) -> Array:
    """Reflected light of the belt alone: unevenly lit, scratched, in some pictures with a seam."""
    across, along = random.uniform(-0.25, 0.25, 2)
    light = random.uniform(0.2, 0.45) * (1 + across * x / COLUMNS + along * y / LINES)
    for _ in range(random.integers(0, 4)):  # scratches: straight lines
        angle, away = random.uniform(0, np.pi), random.uniform(-50, 50)
        light += random.uniform(-0.06, 0.06) * (np.abs(x * np.cos(angle) + y * np.sin(angle) - away) < 0.8)
    if random.random() < 0.3:
        light -= 0.1 * (np.abs(x - random.uniform(-60, 60)) < 2)
    return light


def picture(kind: int, random: Random) -> Array:
    """uint8 [LINES, COLUMNS]: a part of a class (0: none), anywhere near the middle, turned any way, of any size."""
    y, x = np.mgrid[:LINES, :COLUMNS].astype(float)
    x, y = x - (COLUMNS - 1) / 2, y - (LINES - 1) / 2
    light = _belt(x, y, random)
    if kind:
        angle, size = random.uniform(0, 2 * np.pi), random.uniform(17, 27)
        away_x, away_y = random.uniform(-12, 12, 2)
        turned_x = (x - away_x) * np.cos(angle) + (y - away_y) * np.sin(angle)
        turned_y = (y - away_y) * np.cos(angle) - (x - away_x) * np.sin(angle)
        # the same shape twice, so the same random numbers: the part, and its shadow a little aside
        seed = int(random.integers(1 << 30))
        shadow, part = (
            np.clip(0.5 - _SHAPES[kind](turned_x - aside, turned_y - aside, size, np.random.default_rng(seed)), 0, 1)
            for aside in (2.5, 0)
        )
        light *= 1 - 0.4 * shadow
        metal = random.uniform(0.55, 0.85) * (1 + random.uniform(-0.2, 0.2) * turned_y / size)
        light += (metal - light) * part
    light += random.normal(0, 0.012, light.shape)
    return np.clip(np.round(light * 255), 0, 255).astype(np.uint8)


def seen(pictures: Array) -> Array:
    """int8 [n, SIDE, SIDE, 1], the network's input, of uint8 [n, LINES, COLUMNS]: scale 1/255, zero point 0."""
    middle = pictures[:, TOP : TOP + SIDE, LEFT : LEFT + SIDE, np.newaxis]
    return (middle.astype(np.int16) - 128).astype(np.int8)


def film() -> Array:
    """uint8 [pictures, LINES, COLUMNS] of FILM_CLASSES."""
    random = np.random.default_rng(2026)
    return np.array([picture(kind, random) for kind in FILM_CLASSES])


# --- pgm ---------------------------------------------------------------------------------------


def write_pgm(path: Path, pictures: Array) -> None:
    """One below the other."""
    path.write_bytes(b"P5\n%d %d\n255\n" % (COLUMNS, pictures.shape[0] * LINES) + pictures.tobytes())


def read_pgm(path: Path) -> Array:
    """uint8 [n, LINES, COLUMNS]; ValueError for a file that the firmware doesn't take: it must be binary, of 8 bits,
    160 pixels wide, with 120 lines for each picture."""
    data = path.read_bytes()
    header = re.match(rb"P5\s(\d+)\s(\d+)\s255\s", data)
    if header is None:
        raise ValueError("it must be a PGM file of 8 bits (P5), without comments")
    width, height = int(header[1]), int(header[2])
    pixels = data[header.end() :]
    if width != COLUMNS or height % LINES or not height or len(pixels) != width * height:
        raise ValueError(f"it must be {COLUMNS} pixels wide, with {LINES} lines a picture, and whole")
    return np.frombuffer(pixels, np.uint8).reshape(-1, LINES, COLUMNS)


if __name__ == "__main__":
    write_pgm(FILM, film())
    print(f"{FILM}: {FILM.stat().st_size:,} bytes", file=sys.stderr)
