"""`tinyfuse board calibrate` and `board estimate`: make a cost table from a board's cycles, and predict other models'
cycles with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import click

from tinyfuse import __version__
from tinyfuse.cli.files import FileCommand, OutputFile, read_text
from tinyfuse.cli.flags import generation_flags, json_flag
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer, progress, show, versioned
from tinyfuse.cost.calibrate import Sample, rates, table_text
from tinyfuse.cost.predict import known_total, plan_stages, plan_total
from tinyfuse.cost.table import CostTable, entry_name, instructions_table, read_table
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import UsageError
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.diff import read_answer
from tinyfuse.report.report_json import plan_envelope, stage_json
from tinyfuse.targets import load_target

_EXAMPLES = """\b
Examples:
  tinyfuse board validate kws.tflite --target cortex-m4 --port /dev/ttyACM0 --json > kws.json
  tinyfuse board calibrate kws.json vww.json -o board.toml
  tinyfuse board estimate other.tflite --target cortex-m4 --costs board.toml
"""

#: largest answer or table that is read, in bytes
_MOST_BYTES = 1 << 26


@click.command("calibrate", cls=FileCommand, epilog=_EXAMPLES)
@click.argument("runs", type=click.Path(), nargs=-1, required=True)
@click.option(
    "-o", "--output", type=OutputFile(), required=True, metavar="FILE", help="Write the cost table to this file."
)
@json_flag()
def calibrate_command(runs: tuple[str, ...], output: str, as_json: bool) -> int:
    """Make a table of cycle costs. RUNS are files that `tinyfuse board validate --json` printed for one board; the more
    models they cover, the better the table predicts."""
    return show(calibrate(runs, output), as_json)


def calibrate(runs: Sequence[str], output: str) -> Answer:
    """Writes the table. UsageError for files that are no answers of `board validate`, or are of different targets."""
    answers = [read_validation(name) for name in runs]
    targets = {str(answer["target"]) for answer in answers}
    if len(targets) > 1:
        raise UsageError(f"the files have different targets, {', '.join(sorted(targets))}: give those of one board")
    target = load_target(targets.pop())
    table = instructions_table(target)
    if table is None or target.cost_table is None:
        raise UsageError(f"{target.name} has no cost table, which is needed to turn instructions into cycles")
    samples = [found for name, answer in zip(runs, answers, strict=True) for found in _samples(name, answer, table)]
    groups = sum(len(answer["groups"]) for answer in answers)
    if not samples:
        raise UsageError("no group in these files has both cycles and predicted instructions")
    mean, found = rates(samples)
    models = [Path(str(answer["model"])).name for answer in answers]
    about = {
        "unit": "cycles", "table": target.cost_table, "target": target.name, "models": ", ".join(models),
        "tinyfuse": __version__,
    }  # fmt: skip
    write_file(Path(output), table_text(table, mean, found, about))
    left = groups - len(samples)
    data = versioned(
        output=output,
        target=target.name,
        models=models,
        cycles_per_instruction=round(mean, 4),
        kernels=[
            {
                "entry": name,
                "groups": rate.groups,
                "cycles_per_instruction": round(rate.cycles, 4),
                "mean_error": round(rate.mean_error, 4),
                "worst_error": round(rate.worst_error, 4),
            }
            for name, rate in found.items()
        ],
        warnings=[f"{left} of {groups} groups have no predicted instructions, or no cycles"] if left else [],
    )
    lines = [
        f"{output}: cycles of {len(samples)} groups of {len(models)} models on {target.name}",
        f"{mean:8.3f} cycles per instruction on average",
        *(
            f"{each.cycles:8.3f} {name}: {each.groups} groups, off by {each.mean_error:.1%}, at most "
            f"{each.worst_error:.1%}"
            for name, each in found.items()
        ),
    ]
    return Answer(data, [*lines, *(f"warning: {warning}" for warning in data["warnings"])])


def read_validation(name: str) -> JsonObject:
    """Reads the answer of `board validate` in a file. UsageError if there is none, or if the board computed wrong
    outputs."""
    answer = read_answer(name, _text(name))
    if not isinstance(answer.get("groups"), list) or not {"counter", "exact", "target", "model"} <= answer.keys():
        raise UsageError(f"{name}: `tinyfuse board validate --json` did not write this file")
    if answer.get("within_bound") is not True:
        raise UsageError(f"{name}: the board computed wrong outputs, so its cycles are of no use")
    return answer


def _samples(name: str, answer: JsonObject, table: CostTable) -> list[Sample]:
    """Samples of the groups that have both cycles and predicted instructions."""
    found = []
    for group in answer["groups"]:
        predicted: dict[str, float] = {}
        try:
            cycles = group["cycles"]
            figures = [(str(op["entry"]), op["predicted_instructions"]) for op in group["operators"]]
        except (KeyError, TypeError):
            raise UsageError(
                f"{name}: `tinyfuse board validate --json` did not write this file: a group lacks its figures"
            ) from None
        if any(not _is_figure(figure) for figure in (cycles, *(instructions for _, instructions in figures))):
            continue
        for entry, instructions in figures:
            if entry not in table.kernels:
                raise UsageError(
                    f"{name}: the cost table has no kernel {entry!a}; did another version of tinyfuse write the file?"
                )
            predicted[entry] = predicted.get(entry, 0.0) + instructions
        if cycles > 0 and sum(predicted.values()) > 0:
            found.append(Sample(predicted, cycles))
    return found


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15 and math.isfinite(value)


@click.command("estimate", epilog=_EXAMPLES)
@generation_flags
@click.option("--costs", type=click.Path(), required=True, metavar="FILE", help="A table that `board calibrate` wrote.")
def estimate_command(request: Request, as_json: bool, costs: str) -> int:
    """Predict MODEL's cycles on a board. --costs has the cycles that the board counted for other models."""
    return show(estimate(request, costs, progress), as_json)


def estimate(request: Request, costs: str, progress: Progress) -> Answer:
    """Predicts the cycles of each group by the table in the file `costs`. UsageError if that is no table for the
    target."""
    table = _table(costs, request.target)
    plan, _ = make_plan(request, progress, needs_tree=False)
    instructions, every, groups = plan_stages(plan), plan_stages(plan, table), []
    for group, predicted, cycles in zip(plan.groups, instructions, every, strict=True):
        groups.append(
            {
                "name": f"{plan.options.name}_group_{group.index}",
                "macs": group.macs * plan.runs(group),
                "cycles": known_total(cycles),
                "predicted_instructions": known_total(predicted),
                "operators": [
                    {
                        **stage_json(stage),
                        "entry": entry_name(stage.op, stage.kernel, stage.by_row, plan.context),
                        "cycles": known_total([each]),
                    }
                    for stage, each in zip(group.stages, cycles, strict=True)
                ],
            }
        )
    data = plan_envelope(plan) | {
        "warnings": list(plan.warnings),
        "costs": costs,
        "about": table.about,
        "macs": plan.macs,
        "cycles": plan_total(every),
        "predicted_instructions": plan_total(instructions),
        "groups": groups,
    }
    return Answer(data, _lines(data))


def _table(name: str, target: str) -> CostTable:
    try:
        table = read_table(_text(name))
    except ValueError as error:
        raise UsageError(f"--costs {name}: not a cost table: {' '.join(str(error).split())}") from None
    core = load_target(target)
    if table.about.get("unit") != "cycles":
        raise UsageError(f"--costs {name}: not a table of cycles; `tinyfuse board calibrate` writes one")
    if table.about.get("table") != core.cost_table:
        raise UsageError(f"--costs {name}: made on a {table.about.get('target', 'board')!a}, not for {core.name}")
    return table


def _lines(data: JsonObject) -> list[str]:
    def figure(value: int | None) -> str:
        return "unknown" if value is None else f"{value:,}"

    head = f"about {figure(data['cycles'])} cycles, of {figure(data['predicted_instructions'])} predicted instructions"
    lines = [f"{head}; by {data['costs']}, from {data['about'].get('models', 'a board')}"]
    for number, group in enumerate(data["groups"]):
        kinds = ", ".join(op["kind"] for op in group["operators"])
        lines.append(f"{figure(group['cycles']):>14}  {number} {kinds}")
    return [*lines, *(f"warning: {warning}" for warning in data["warnings"])]


def _text(name: str) -> str:
    return read_text(name, "a file", _MOST_BYTES)
