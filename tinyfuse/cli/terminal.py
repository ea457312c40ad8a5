"""Output of all commands: answers as text or JSON, progress, exit codes, and one message for each error."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from tinyfuse import __version__
from tinyfuse.errors import CompileError, InternalFault, TinyfuseError
from tinyfuse.html_report.names import make_visible
from tinyfuse.report.answer import SCHEMA_VERSION, JsonObject
from tinyfuse.resources import PACKAGE

#: moves to the start of the line and clears it (ECMA-48: EL)
_CLEARED = "\r\x1b[2K"


@dataclass(frozen=True)
class Answer:
    """Result of a command.

    data   JSON (docs/json.md)
    lines  text for a terminal
    exact  False if the module computes wrong outputs, or a figure grew beyond its limit
    """

    data: JsonObject
    lines: list[str]
    exact: bool = True


def show(answer: Answer, as_json: bool) -> int:
    """Prints an answer, and returns the command's exit code."""
    clear_progress()
    for text in [json_text(answer.data)] if as_json else answer.lines:
        for line in text.split("\n"):
            click.echo(make_visible(line))
    return 0 if answer.exact else 1


def json_text(data: JsonObject) -> str:
    """JSON text as it is printed."""
    return json.dumps(data, indent=2, default=list)


def versioned(**data: Any) -> JsonObject:
    """JSON of an answer that is not about a model."""
    return {"schema_version": SCHEMA_VERSION, "tinyfuse_version": __version__, **data}


def progress(text: str) -> None:
    """Prints a line of progress on stderr, if that is a terminal; it replaces the line before."""
    if _is_watched():
        columns = shutil.get_terminal_size().columns
        click.secho(f"{_CLEARED}{make_visible(text)[: columns - 1]}", err=True, dim=True, nl=False)


def clear_progress() -> None:
    """Clears the line of progress, before other output and at the end."""
    if _is_watched():
        click.echo(_CLEARED, err=True, nl=False)


def _is_watched() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class ErrorReportingGroup(click.Group):
    """Command group that ends every command with one clear message: text on stderr, or JSON with --json."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        arguments = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in arguments
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller; the replacement stays open
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
            getattr(sys, name).reconfigure(errors="backslashreplace")  # paths may have characters that it lacks
        try:
            code = super().main(arguments, *rest, **{**extra, "standalone_mode": False})
        except click.exceptions.Exit as leave:
            code = leave.exit_code
        except click.Abort:
            clear_progress()
            code = 130
        except click.exceptions.NoArgsIsHelpError as help_text:
            click.echo(help_text.format_message())
            code = 2
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            more = f"; try '{context.command_path} --help'" if context else ""
            code = _fail(error.format_message().rstrip(".") + more, 2, as_json, None)
        except TinyfuseError as error:
            code = _fail(str(error), error.exit_code, as_json, error)
        except BrokenPipeError:
            _drop_output()
            code = 1
        except OSError as error:
            # errors of a command's own files are handled by the command; this is a full disk, for example
            _drop_output()
            place = "" if error.filename is None else f"{error.filename}: "
            code = _fail(f"{place}{error.strerror or error}", 2, False, None)
        except Exception as error:
            code = _fail(fault_text(error, arguments), InternalFault.exit_code, as_json, None)
        sys.exit(code if isinstance(code, int) else 0)


def fault_text(error: Exception, arguments: Sequence[str]) -> str:
    """Message for an unexpected exception: its type and place, and what a report needs."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)] or list(frames)
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno}, {own[-1].name})" if own else ""
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return (
        f"a fault of tinyfuse itself: {type(error).__name__}: {' '.join(str(error).split())}{place}. "
        f"Please report it with the model and this: tinyfuse {__version__}, {machine}: "
        f"{shlex.join(['tinyfuse', *arguments])}"
    )


def _drop_output() -> None:
    """Redirects stdout to nowhere, because Python would try to write the rest at exit, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int, as_json: bool, error: TinyfuseError | None) -> int:
    clear_progress()
    if as_json:
        body: JsonObject = {"message": message, "exit_code": code}
        if isinstance(error, CompileError):
            body["problems"] = [asdict(problem) for problem in error.problems]
            body["model"] = error.model
        click.echo(json_text(versioned(error=body)))
    else:
        for line in message.splitlines():
            click.echo(f"tinyfuse: {make_visible(line)}", err=True)
    return code
