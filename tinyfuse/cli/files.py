"""Files that commands read and write: checks that outputs can be written and overwrite no input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tinyfuse.emit.output_folder import check_writable
from tinyfuse.errors import UsageError


class OutputFile(click.Path):
    """Type of a parameter that names a file to be written."""


class OutputFolder(click.Path):
    """Type of a parameter that names a folder to be written."""


class FileCommand(click.Command):
    """Command that writes files. Before it runs, it checks that each of them can be written, that the command does not
    read it, and that no other parameter names it."""

    def invoke(self, ctx: click.Context) -> Any:
        """Checks the outputs, then runs the command. UsageError if an output cannot be written."""
        read, written = list(_named(self, ctx, read=True)), list(_named(self, ctx, read=False))
        for number, (flag, path) in enumerate(written):
            for other, taken in (*read, *written[:number]):
                if _is_same(path, taken):
                    raise UsageError(f"{flag} {path}: {other} names this file; give another one")
            check_writable(path, Path(path.parent if self._makes_folders() else "."))
        return super().invoke(ctx)

    def _makes_folders(self) -> bool:
        """Tells whether the command makes a folder, and so checks itself whether a file's folder exists."""
        return any(isinstance(parameter.type, OutputFolder) for parameter in self.params)


def _named(command: click.Command, context: click.Context, read: bool) -> Iterator[tuple[str, Path]]:
    """Yields (parameter's name, file) for the files that a command reads, or those that it writes. A parameter may name
    several, also as NAME=FILE."""
    for parameter in command.params:
        is_output = isinstance(parameter.type, OutputFile)
        if not isinstance(parameter.type, click.Path) or isinstance(parameter.type, OutputFolder) or is_output == read:
            continue
        value = context.params.get(parameter.name or "")
        flag = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
        for each in value if isinstance(value, tuple) else (value,):
            for name in {each, each.partition("=")[2]} if each else ():
                if name:
                    yield flag, Path(name)


def _is_same(a: Path, b: Path) -> bool:
    """Tells whether both paths are, or would be, the same file."""
    try:
        return os.path.realpath(a) == os.path.realpath(b) or os.path.samefile(a, b)
    except (OSError, ValueError):
        return False


def read_text(name: str, what: str, most: int, told: str = "") -> str:
    """Text of the file `name`, which should be `what`. UsageError if it cannot be read, is not UTF-8, or has more than
    `most` bytes; `told` then precedes the reason."""
    try:
        with open(name, "rb") as file:  # a device or a pipe may be endless
            data = file.read(most + 1)
        if len(data) > most:
            raise UsageError(f"{name}: too large for {what} of tinyfuse, at most {most:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"can't read {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: {told}it is not UTF-8") from error
