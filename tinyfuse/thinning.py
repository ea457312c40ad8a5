"""Fewer of many, where all can't be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def evenly(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of them (two or more): both ends, and what lies evenly between."""
    last = len(items) - 1
    return list(items) if last < most else [items[k * last // (most - 1)] for k in range(most)]
