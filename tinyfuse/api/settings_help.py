"""What Python's help says of settings: the text of the options (tinyfuse/options.py), spelled as arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from tinyfuse.options import Flag, respell_options

_WIDTH = 118


def settings_help(declared: Mapping[str, Flag]) -> str:
    """Two columns: the arguments' names, and what they do."""
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
    """What is taken where the argument is left out."""
    if flag.otherwise is not None:
        return f"Default: {flag.otherwise}."
    if flag.default in (None, ()):
        return ""
    return f"Default: {flag.default!r}.".replace("'", '"')
