"""`tinyfuse board`: validates a module on the real board, and predicts cycles of others from its counts."""

from __future__ import annotations

import click
from rich.console import Console

from tinyfuse.api.boards import validate_plan
from tinyfuse.api.results import BoardFigures, BoardValidation, Spread
from tinyfuse.board.device import Device
from tinyfuse.board.port import open_port
from tinyfuse.board.text import board_text
from tinyfuse.cli.board_costs import calibrate_command, estimate_command
from tinyfuse.cli.compared import comparison_json
from tinyfuse.cli.flags import add_flags, generation_flags
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.cost.predict import known_total, plan_stages, plan_total
from tinyfuse.cost.table import entry_name
from tinyfuse.options import BoardOptions
from tinyfuse.plan import Group, Plan
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import plan_envelope, stage_json

_EXAMPLES = """\b
Examples:
  tinyfuse gen kws.tflite --target cortex-m4 --board            writes the code for the firmware
  tinyfuse board validate kws.tflite --target cortex-m4 --port /dev/ttyACM0
  tinyfuse board validate kws.tflite --target cortex-m4 --port COM3 --baud 921600 --runs 32
  tinyfuse board validate kws.tflite --target cortex-m4 --port socket://localhost:4444 --json

\b
docs/board.md shows the few lines that the firmware needs.
"""


@click.group("board")
def command() -> None:
    """Compare the generated code's outputs on your own board with the interpreter's, count its cycles, and predict the
    cycles of other models."""


command.add_command(calibrate_command)
command.add_command(estimate_command)


@command.command("validate", epilog=_EXAMPLES)
@generation_flags
@click.option(
    "--port",
    required=True,
    metavar="PORT",
    help="The board's serial port: /dev/ttyACM0, COM3, or a URL of pyserial, such as socket://localhost:4444.",
)
@add_flags(BoardOptions)
def validate_command(request: Request, as_json: bool, port: str, how: BoardOptions) -> int:
    """Compare outputs and count cycles on a board. Inputs go over the serial line to firmware that has MODEL's code;
    every output bit is compared with the interpreter's."""
    data = validate(request, port, how, progress)
    if not as_json:
        console = Console(highlight=False)
        console.print(board_text(data, console.width))
    return show(Answer(data, [], exact=data["within_bound"]), as_json)


def validate(request: Request, port: str, how: BoardOptions, progress: Progress) -> JsonObject:
    """Validates a module on a board, and returns JSON (docs/json.md).

    ToolMissing without pyserial or oracle; UsageError for a port that cannot be opened; BoardFailed if the board
    answers wrongly or not at all.
    """
    plan, _ = make_plan(request, progress, needs_tree=False)
    line = open_port(port, how.baud)
    try:
        found = validate_plan(plan, request.data, Device(line, port, how.baud), how, progress)
    finally:
        line.close()
    return validation_json(plan, port, found)


def validation_json(plan: Plan, port: str, found: BoardValidation) -> JsonObject:
    """JSON of a validation (docs/json.md)."""
    predicted, figures = plan_stages(plan), found.figures
    return plan_envelope(plan) | {
        "warnings": [*plan.warnings, *found.warnings],
        "port": port,
        **comparison_json(found),
        "counter": found.counter,
        "overhead_cycles": found.overhead_cycles,
        "macs": plan.macs,
        "arena_bytes": plan.arena_bytes,
        "state_bytes": plan.state_bytes,
        **_cycles(figures.cycles if figures else None),
        "outside_cycles": figures.outside.mean if figures else None,
        "longest_step_cycles": figures.longest_step if figures else None,
        "predicted_instructions": plan_total(predicted),
        "groups": [_group(plan, group, predicted[group.index], figures) for group in plan.groups],
    }


def _cycles(spread: Spread | None) -> JsonObject:
    if spread is None:
        return dict.fromkeys(("cycles", "least_cycles", "most_cycles"))
    return {"cycles": spread.mean, "least_cycles": spread.least, "most_cycles": spread.most}


def _group(plan: Plan, group: Group, predicted: list[float | None], figures: BoardFigures | None) -> JsonObject:
    """JSON of a group: the keys of `profile` that need no emulator, and the cycles."""
    runs = plan.runs(group)
    return {
        "name": f"{plan.options.name}_group_{group.index}",
        "macs": group.macs * runs,
        "output_elements": sum(tensor.elements for tensor in group.outputs) * runs,
        **_cycles(figures.groups[group.index] if figures else None),
        "predicted_instructions": known_total(predicted),
        "operators": [
            {
                **stage_json(stage),
                "macs": stage.macs * runs,
                "output_elements": sum(tensor.elements for tensor in stage.op.outputs) * runs,
                "entry": entry_name(stage.op, stage.kernel, stage.by_row, plan.context),
                "predicted_instructions": known_total([instructions]),
            }
            for stage, instructions in zip(group.stages, predicted, strict=True)
        ],
    }
