"""An SPDX line as the first of every file that can hold a comment."""

from __future__ import annotations

from pathlib import PurePosixPath

_TAG = "SPDX-License-Identifier:"

#: how a line comment begins and ends, by the end of a file's name or by its name
_COMMENTS = {
    **dict.fromkeys((".c", ".h", ".ino", ".ld", ".sct", ".icf"), ("/* ", " */")),
    **dict.fromkeys((".md", ".pdsc"), ("<!-- ", " -->")),
    **dict.fromkeys((".mk", ".build", ".yml", ".yaml", ".conf", ".properties"), ("# ", "")),
    **dict.fromkeys(("CMakeLists.txt", "Kconfig", "Makefile"), ("# ", "")),
}


def with_licence(name: str, text: str, licence: str) -> str:
    """The text of the file with an SPDX line; as it is where it has one, or can hold no comment (JSON, plain text)."""
    path = PurePosixPath(name)
    comment = _COMMENTS.get(path.name) or _COMMENTS.get(path.suffix)
    if comment is None or _TAG in text:
        return text
    line = f"{comment[0]}{_TAG} {licence}{comment[1]}\n"
    if text.startswith("<?xml"):  # nothing may stand before this one
        first, _, rest = text.partition("\n")
        return f"{first}\n{line}{rest}"
    return line + text
