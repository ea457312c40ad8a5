"""Progress reports of long steps."""

from __future__ import annotations

from collections.abc import Callable

#: gets a line of progress
Progress = Callable[[str], None]


def silent(text: str) -> None:
    """Discards a line of progress."""
