"""Makes the flags of the command line from the declarations in tinyfuse/options.py."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import clear_progress, progress
from tinyfuse.errors import UsageError
from tinyfuse.options import DECLARED, Flag, flags
from tinyfuse.plugin import plugins
from tinyfuse.targets import all_targets, load_target
from tinyfuse.toolchain.csolution import ENDING, read_request
from tinyfuse.toolchain.devices import Device, find_device

#: value of --memory for all memories that a device's pack names
DEVICE_BANKS = "device"

Command = Callable[..., int]
Decorator = Callable[[Command], Command]


def json_flag(help: str = "Print only JSON.") -> Decorator:
    """Decorator that adds --json, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def data_flag(help: str) -> Decorator:
    """--data, as the argument `data`: paths."""
    return click.option("--data", type=click.Path(), multiple=True, required=True, metavar="[NAME=]PATH", help=help)


def generation_flags(command: Command) -> Command:
    """Decorator that adds MODEL and all options that change the code.

    The command gets a Request, `as_json` and the values of its own flags, and runs with the request's plugins.
    """
    return generation_flags_but()(command)


def generation_flags_but(*left_out: str, default_target: str | None = None) -> Decorator:
    """`generation_flags` without some options, by field name, and with a target where none is given."""

    def decorate(command: Command) -> Command:
        return _with_request(command, left_out, default_target)

    return decorate


def _with_request(command: Command, left_out: Sequence[str], default_target: str | None) -> Command:
    def wrapped(model: str, target: str | None, device: str | None, as_json: bool, **values: Any) -> int:
        given = {name: flag.default if name in left_out else values.pop(name) for name, flag in DECLARED.items()}
        if target is None and device is None and not model.endswith(ENDING):
            target = default_target
        layer = None
        if model.endswith(ENDING):
            model, target, layer = _read_csolution_request(model, target, device, given)
        target, found = _chosen_target(target, device, given, as_json)
        request = Request(model, target, layer, found, **given)
        with plugins(request.plugins):
            return command(request, as_json, **values)

    return _add_parameters(_generation_parameters(left_out, default_target), functools.wraps(command)(wrapped))


def add_flags(declared: type) -> Decorator:
    """Decorator that adds the flags of a dataclass; the command gets an instance of it as `how`."""

    def decorate(command: Command) -> Command:
        def wrapped(*arguments: Any, **values: Any) -> int:
            how = declared(**{name: values.pop(name) for name in flags(declared)})
            return command(*arguments, how=how, **values)

        made = [_click_option(name, flag) for name, flag in flags(declared).items()]
        return _add_parameters(made, functools.wraps(command)(wrapped))

    return decorate


def _add_parameters(parameters: Sequence[Decorator], command: Command) -> Command:
    """Adds parameters to a command, to be shown in this order."""
    for parameter in reversed(parameters):
        command = parameter(command)
    return command


def _generation_parameters(left_out: Sequence[str], default_target: str | None) -> list[Decorator]:
    otherwise = "" if default_target is None else f"  [default: {default_target}]"
    parameters: list[Decorator] = [
        click.argument("model", type=click.Path()),
        click.option(
            "--target",
            metavar="T",
            help=f"The core to generate code for; `tinyfuse targets` lists them.{otherwise}",
            shell_complete=_targets_from,
        ),
        click.option(
            "--device",
            metavar="NAME",
            help="The microcontroller, instead of --target. Its CMSIS-Pack gives the core, and --max-ram and "
            f"--max-flash; with --memory {DEVICE_BANKS} also its memory banks. `tinyfuse devices` lists them.",
        ),
    ]
    parameters += [_click_option(name, flag) for name, flag in DECLARED.items() if name not in left_out]
    return [*parameters, json_flag("Print only JSON on stdout (docs/json.md).")]


def _targets_from(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Completions that a shell offers for --target."""
    return [
        CompletionItem(name, help=each.description) for name, each in all_targets().items() if name.startswith(begun)
    ]


def _click_option(name: str, flag: Flag) -> Decorator:
    if flag.is_switch:
        return click.option(flag.flag, name, is_flag=True, help=flag.help)
    return click.option(
        flag.flag,
        name,
        type=_click_type(flag),
        default=None if flag.is_repeated else flag.default,
        multiple=flag.is_repeated,
        metavar=flag.metavar,
        show_default=True,
        help=flag.help if flag.otherwise is None else f"{flag.help}  [default: {flag.otherwise}]",
    )


class NumberRange(click.FloatRange):
    """Range of finite numbers. It refuses infinity, and nan, which compares false with every limit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


def _click_type(flag: Flag) -> Any:
    if flag.choices:
        return click.Choice(flag.choices)
    if flag.limits is not None:
        return (NumberRange if isinstance(flag.limits[0], float) else click.IntRange)(*flag.limits)
    return click.Path() if flag.is_file else click.STRING


def _read_csolution_request(
    file: str, target: str | None, device: str | None, given: dict[str, Any]
) -> tuple[str, str, Path]:
    """Model, target and layer that a *.cbuild-mlops.yml names; stores the module's name in `given`."""
    if target is not None or device is not None or given["name"] is not None:
        raise UsageError(
            f"{file} already gives the core and the module's name; leave out --target, --device and --name"
        )
    asked = read_request(Path(file))
    given["name"] = asked.name
    return str(asked.model), asked.target, asked.layer


def _chosen_target(
    target: str | None, device: str | None, given: dict[str, Any], as_json: bool
) -> tuple[str, Device | None]:
    """Target that was given, or that of the device, and the device; stores the device's limits in `given` unless others
    are there."""
    if device is None:
        if target is None:
            raise UsageError("Missing option '--target' (or '--device')")
        if DEVICE_BANKS in given["memory"]:
            raise UsageError(
                f"--memory {DEVICE_BANKS} means the memory banks of --device; give --device too, or write banks "
                "such as dtcm=64K"
            )
        return target, None
    if target is not None:
        raise UsageError("give --target or --device, not both")
    found = find_device(device, progress)
    if not as_json:
        clear_progress()
        click.echo(found, err=True)
    for option, limit in (("max_ram", found.ram), ("max_flash", found.flash)):
        if given[option] is None and limit:
            given[option] = str(limit)
    if given["timing"] is None:
        boards = [board for board in load_target(found.target).boards if board.devices]
        given["timing"] = next((board.name for board in boards if found.name.startswith(board.devices)), None)
    banks = [found.memories if text == DEVICE_BANKS else (text,) for text in given["memory"]]
    given["memory"] = tuple(bank for some in banks for bank in some)
    return found.target, found
