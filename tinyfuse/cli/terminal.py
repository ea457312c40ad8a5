"""How every command ends and tells: exit codes, one message for what went wrong, progress, JSON."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

import click

from tinyfuse import __version__
from tinyfuse.errors import CompileError, TinyfuseError


class Ending(click.Group):
    """Ends every command with one clear message: text on stderr, or JSON where --json was given."""

    def main(self, args=None, **extra):
        arguments = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in arguments
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller
                setattr(sys, name, open(os.devnull, "w"))
            getattr(sys, name).reconfigure(errors="backslashreplace")  # paths may hold what it can't show
        try:
            code = super().main(args=arguments, standalone_mode=False, **extra)
        except click.exceptions.Exit as leave:
            code = leave.exit_code
        except click.Abort:
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
            # the files of a command have errors of their own: this is a full disk, under stdout too
            _drop_output()
            place = "" if error.filename is None else f"{error.filename}: "
            code = _fail(f"{place}{error.strerror or error}", 2, False, None)
        sys.exit(code if isinstance(code, int) else 0)


def _drop_output() -> None:
    """What is still to be written to stdout can't be: Python would try again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int, as_json: bool, error: TinyfuseError | None) -> int:
    if as_json:
        body: dict = {"message": message, "exit_code": code}
        if isinstance(error, CompileError):
            body["problems"] = [asdict(problem) for problem in error.problems]
            body["model"] = error.model
        click.echo(json.dumps({"schema_version": 1, "tinyfuse_version": __version__, "error": body}, indent=2))
    else:
        for line in message.splitlines():
            click.echo(f"tinyfuse: {line}", err=True)
    return code


def progress(text: str) -> None:
    """One line of progress on stderr, where a person watches."""
    if sys.stderr.isatty():
        click.secho(text, err=True, dim=True)


def print_json(data: dict) -> int:
    click.echo(json.dumps(data, indent=2, default=list))
    return 0
