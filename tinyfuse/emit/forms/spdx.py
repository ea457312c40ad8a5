"""Adds an SPDX line at the top of every file that can hold a comment."""

from __future__ import annotations

from pathlib import PurePosixPath

_TAG = "SPDX-License-Identifier:"

#: suffix or name of a file -> beginning and end of a line comment
_COMMENTS = {
    **dict.fromkeys((".c", ".h", ".ino", ".ld", ".sct", ".icf"), ("/* ", " */")),
    **dict.fromkeys((".md", ".pdsc"), ("<!-- ", " -->")),
    **dict.fromkeys((".mk", ".build", ".yml", ".yaml", ".conf", ".properties"), ("# ", "")),
    **dict.fromkeys(("CMakeLists.txt", "Kconfig", "Makefile"), ("# ", "")),
}


def with_licence(name: str, text: str, licence: str) -> str:
    """Text of a file with an SPDX line; unchanged if it has one, or cannot hold a comment (JSON, plain text)."""
    path = PurePosixPath(name)
    comment = _COMMENTS.get(path.name) or _COMMENTS.get(path.suffix)
    if comment is None or _TAG in text:
        return text
    line = f"{comment[0]}{_TAG} {licence}{comment[1]}\n"
    if text.startswith("<?xml"):  # an XML declaration must be the first thing in the file
        first, _, rest = text.partition("\n")
        return f"{first}\n{line}{rest}"
    return line + text
