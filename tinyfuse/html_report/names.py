"""Names out of a model's file, made so that they can be read: whatever they hold, they change nothing of the text
round them."""

from __future__ import annotations


def make_visible(text: str) -> str:
    """The text with characters that can't be seen, or that turn the direction of writing, as \\uXXXX."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
