"""Reads the TOML that our tables are written in (targets/costs, cycles, code), four times as fast as tomllib: most
commands need two or three, and a small model takes no longer than they do.

A line of such a file is a section or a field: a string, a number, some of them, or an inline table of numbers. Any
other file is tomllib's.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

_SECTION = re.compile(r'\[([a-z_]+)(?:\.(?:([a-z_]+)|"([^"\\]*)"))?\]')
_FIELD = re.compile(r"([a-z_0-9]+) = (.+)")
_VALUE = re.compile(r'"[^"\\]*"|(0|[1-9]\d*)|(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?')


def loads(text: str) -> dict[str, Any]:
    """What tomllib.loads makes of a text. Its errors, where it is none of TOML."""
    try:
        return _tables(text)
    except ValueError:
        return tomllib.loads(text)


def _tables(text: str) -> dict[str, Any]:
    """The same of a table of ours; ValueError where it is anything else."""
    found: dict[str, Any] = {}
    section = found
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if named := _SECTION.fullmatch(line):
            name, plain, quoted = named.groups()
            entry = quoted if plain is None else plain
            parent = found.setdefault(name, {})
            section = parent if entry is None else parent.setdefault(entry, {})
            if section:
                raise ValueError("a section twice, or after one inside it")
        elif (field := _FIELD.fullmatch(line)) and field[1] not in section:
            section[field[1]] = _value(field[2])
        else:
            raise ValueError(line)
    return found


def _value(text: str) -> Any:
    """What stands behind a key."""
    ends = text[0] + text[-1]
    if ends == "{}":
        pairs = [pair.split(" = ") for pair in text[1:-1].split(", ")] if text[1:-1] else []
        found = {key: _single(value) for key, value in pairs}
        if len(found) < len(pairs):
            raise ValueError("a key twice")
        return found
    if ends == "[]":
        return [_single(value) for value in text[1:-1].split(", ")] if text[1:-1] else []
    return _single(text)


def _single(text: str) -> Any:
    """A string or a number."""
    known = _VALUE.fullmatch(text)
    if known is None:
        raise ValueError(text)
    return text[1:-1] if text[0] == '"' else int(text) if known[1] else float(text)
