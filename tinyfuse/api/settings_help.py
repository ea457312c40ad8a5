"""Text of Python's help for settings: that of the options (tinyfuse/options.py), with options spelled as arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from tinyfuse.options import Flag, respell_options

_WIDTH = 118


def settings_help(declared: Mapping[str, Flag]) -> str:
    """Two columns: names of the arguments, and their descriptions."""
    column = max(map(len, declared)) + 2
    lines: list[str] = []
    for name, flag in declared.items():
        text = respell_options(f"{flag.help} {_default(flag)}".rstrip(), declared, _as_argument)
        wrapped = textwrap.wrap(text, _WIDTH - column, break_long_words=False, break_on_hyphens=False)
        lines += [f"{name:{column}}{wrapped[0]}", *(" " * column + line for line in wrapped[1:])]
    return "\n".join(lines)


def _as_argument(name: str, flag: str, value: str | None) -> str:
    return name if value is None else f'{name}="{value}"'


def _default(flag: Flag) -> str:
    """Sentence about the argument's default."""
    if flag.otherwise is not None:
        return f"Default: {flag.otherwise}."
    if flag.default in (None, ()):
        return ""
    return f"Default: {flag.default!r}.".replace("'", '"')
