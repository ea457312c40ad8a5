"""Lines of a terminal's width, in which no word is broken."""

from __future__ import annotations

import textwrap

#: columns of a terminal, and of report.txt
WIDTH = 80


def wrap_text(text: str, indent: str, first: str = "") -> list[str]:
    """The text in lines of at most WIDTH columns, the first behind `first`, others behind `indent`; runs of spaces
    within a line stay. A word that is longer stands alone in a line that is too long: names and paths are copied."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
