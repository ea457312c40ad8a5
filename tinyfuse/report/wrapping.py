"""Wraps text to the terminal's width without breaking words."""

from __future__ import annotations

import textwrap

#: columns of report.txt and of output to a terminal
WIDTH = 80


def wrap_text(text: str, indent: str, first: str = "") -> list[str]:
    """Wraps text to lines of at most WIDTH columns; the first begins with `first`, others with `indent`.

    Runs of spaces within a line stay. A longer word gets a line of its own, because names and paths are copied.
    """
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
