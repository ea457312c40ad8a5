"""docs/options.md, and README's table of the options used most, made from the commands' own declarations: in the
repository, `python -m tinyfuse.cli.reference` writes both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tinyfuse.cli.main import main
from tinyfuse.emit.output_folder import write_file
from tinyfuse.options import DECLARED, Flag, respelled
from tinyfuse.report.operators import escaped

_HEAD = """\
# Options

Every option of every command, written by `python -m tinyfuse.cli.reference` from the declarations in
`tinyfuse/options.py` and `tinyfuse/cli/`; `tinyfuse COMMAND --help` prints the same.

| option | of | default | |
|---|---|---|---|
"""

#: of README's table, in its order
_USED_MOST = (
    "optimize", "fusion", "kernels", "weights", "weights_blob", "feed_rows", "step", "max_step", "slide", "memory",
    "max_ram", "max_flash", "front_end", "plugins",
)  # fmt: skip

#: head of README's table of options
_TABLE = "| option | what it does |\n|---|---|\n"


def options_markdown() -> str:
    """The page: a line an option, with the commands that have it alike."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name, command in _commands(main):
        for option in command.params:
            if isinstance(option, click.Option):
                rows.setdefault((_spelling(option), _default(option), option.help or ""), []).append(name)
    lines = [
        f"| `{option}` | {', '.join(names)} | {default} | {_linked(help, '')} |\n"
        for (option, default, help), names in rows.items()
    ]
    return _HEAD + "".join(lines)


def with_options_table(readme: str) -> str:
    """README with its table of options, whose head it has, as they are declared."""
    before, _, behind = readme.partition(_TABLE)
    behind = re.sub(r"\A(\|.*\n)*", "", behind)
    rows = (f"| `{_typed(DECLARED[name])}` | {_told(DECLARED[name])} |\n" for name in _USED_MOST)
    return before + _TABLE + "".join(rows) + behind


def _commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def _linked(help: str, docs: str) -> str:
    """A help text in Markdown, with options as code and links to pages of docs/, which lies there."""
    pieces = [f"`{piece}`" if at % 2 else _prose(piece, docs) for at, piece in enumerate(help.split("`"))]
    return "".join(pieces)


def _prose(text: str, docs: str) -> str:
    text = re.sub(r"docs/([a-z-]+\.md)", rf"[\g<0>]({docs}\1)", escaped(text))
    return respelled(text, DECLARED, lambda _, flag, value: f"`{flag}`" if value is None else f"`{flag} {value}`")


def _told(flag: Flag) -> str:
    """What it does, and its default."""
    default = f"`{flag.default}`" if flag.choices and flag.otherwise is None else _linked(flag.otherwise or "", "docs/")
    return _linked(flag.help, "docs/") + (f" Default: {default}." if default else "")


def _typed(flag: Flag) -> str:
    """As it is typed, with its values."""
    values = "\\|".join(flag.choices) or flag.metavar
    return f"{flag.flag} {values}" if values else flag.flag


def _spelling(option: click.Option) -> str:
    """As it is typed, with its values."""
    flag = ", ".join(option.opts)
    if option.is_flag:
        return flag
    values = "\\|".join(option.type.choices) if isinstance(option.type, click.Choice) else option.metavar or "N"
    return f"{flag} {values}"


def _default(option: click.Option) -> str:
    """What is taken without the option, where that is a value."""
    return f"`{option.default}`" if option.show_default and isinstance(option.default, str | int | float) else ""


if __name__ == "__main__":
    write_file(Path("docs/options.md"), options_markdown())
    write_file(Path("README.md"), with_options_table(Path("README.md").read_text()))
