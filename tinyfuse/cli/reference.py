"""Writes docs/options.md from the commands' declarations: `python -m tinyfuse.cli.reference` in a checkout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tinyfuse.cli.main import main
from tinyfuse.emit.output_folder import write_file
from tinyfuse.options import DECLARED, respell_options

_HEAD = """\
# Options

Every option of every command, written by `python -m tinyfuse.cli.reference` from the declarations in
`tinyfuse/options.py` and `tinyfuse/cli/`; `tinyfuse COMMAND --help` prints the same.
"""

_TABLE = """
| option | default | |
|---|---|---|
"""


def options_markdown() -> str:
    """Text of docs/options.md: a table for each set of commands that share options."""
    commands: dict[tuple[str, str, str], list[str]] = {}
    for name, command in _commands(main):
        for option in command.params:
            if isinstance(option, click.Option):
                commands.setdefault((_spelling(option), _default(option), option.help or ""), []).append(name)
    tables: dict[str, list[str]] = {}
    for (spelling, default, help), names in commands.items():
        tables.setdefault(", ".join(names), []).append(f"| `{spelling}` | {default} | {_linked(help)} |\n")
    return _HEAD + "".join(f"\n## {names}\n{_TABLE}{''.join(rows)}" for names, rows in tables.items())


def _commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def _linked(help: str) -> str:
    """Help text in Markdown, with options as code and links to pages of docs/."""
    pieces = [f"`{piece}`" if at % 2 else _prose(piece) for at, piece in enumerate(help.split("`"))]
    return "".join(pieces)


def escape_markdown(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    for character in "\\`*_|<[":
        text = text.replace(character, "\\" + character)
    return text


def _prose(text: str) -> str:
    text = re.sub(r"docs/([a-z-]+\.md)", r"[\g<0>](\1)", escape_markdown(text))
    return respell_options(text, DECLARED, lambda _, flag, value: f"`{flag}`" if value is None else f"`{flag} {value}`")


def _spelling(option: click.Option) -> str:
    """Option with its placeholder or values, as typed."""
    flag = ", ".join(option.opts)
    if option.is_flag:
        return flag
    values = "\\|".join(option.type.choices) if isinstance(option.type, click.Choice) else option.metavar or "N"
    return f"{flag} {values}"


def _default(option: click.Option) -> str:
    """Default of the option, if it is a value."""
    return f"`{option.default}`" if option.show_default and isinstance(option.default, str | int | float) else ""


if __name__ == "__main__":
    write_file(Path("docs/options.md"), options_markdown())
