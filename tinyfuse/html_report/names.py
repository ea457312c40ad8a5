"""Makes names from a model's file readable, without effect on the text around them."""

from __future__ import annotations


def make_visible(text: str) -> str:
    """The text with invisible characters, and those that change the direction of writing, as \\uXXXX."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
