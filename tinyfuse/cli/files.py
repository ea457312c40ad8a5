"""Files that commands are given and write: what may be read, and what may not be written over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tinyfuse.emit.output_folder import check_writable
from tinyfuse.errors import UsageError


class OutputFile(click.Path):
    """The type of a parameter that names a file which the command writes."""


class OutputFolder(click.Path):
    """The type of a parameter that names a folder which the command makes."""


class FileCommand(click.Command):
    """A command that writes files. Before it runs, each of them must be one that can be written, that the command
    doesn't read, and that no other of its parameters names."""

    def invoke(self, ctx: click.Context) -> Any:
        """UsageError where an output can't be written."""
        read, written = list(_named(self, ctx, read=True)), list(_named(self, ctx, read=False))
        for number, (flag, path) in enumerate(written):
            for other, taken in (*read, *written[:number]):
                if _is_same(path, taken):
                    raise UsageError(f"{flag} {path}: {other} names this file; give another one")
            check_writable(path, Path(path.parent if self._makes_folders() else "."))
        return super().invoke(ctx)

    def _makes_folders(self) -> bool:
        """Whether a folder of a file may be one that the command makes: then the command checks that itself."""
        return any(isinstance(parameter.type, OutputFolder) for parameter in self.params)


def _named(command: click.Command, context: click.Context, read: bool) -> Iterator[tuple[str, Path]]:
    """The files that a command's parameters name, those that it reads or those that it writes, with the parameters'
    names for messages. A parameter may name several, as NAME=FILE too."""
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
    """Whether both names are of one file, or would be."""
    try:
        return os.path.realpath(a) == os.path.realpath(b) or os.path.samefile(a, b)
    except (OSError, ValueError):
        return False


def read_text(name: str, what: str, most: int, told: str = "") -> str:
    """The text of the file `name`, which is to be `what`. UsageError, `told` before the reason, where it can't be read,
    is no text, or has more than `most` bytes."""
    try:
        with open(name, "rb") as file:  # what has no size (a device, a pipe) may go on without end
            data = file.read(most + 1)
        if len(data) > most:
            raise UsageError(f"{name}: too large for {what} of tinyfuse")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"can't read {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: {told}it is not UTF-8") from error
