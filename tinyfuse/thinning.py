"""Selects samples of sequences that are too long to be examined as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def pick_evenly(items: Sequence[Item], most: int) -> list[Item]:
    """Picks at most `most` items (two or more), evenly spread, with both ends."""
    last = len(items) - 1
    return list(items) if last < most else [items[k * last // (most - 1)] for k in range(most)]
