"""How long steps say what they are at."""

from __future__ import annotations

from collections.abc import Callable

#: gets a line of progress
Progress = Callable[[str], None]


def silent(text: str) -> None:
    """Says nothing."""
