"""`tinyfuse evaluate`: accuracy of the generated code over a data set."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from tinyfuse.api.evaluating import evaluate_on, mistake_inputs
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import add_flags, data_flag, generation_flags_but
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request, command_line
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.metrics import is_share
from tinyfuse.evaluate.options import EvaluateOptions
from tinyfuse.frontend.labels import label_lines
from tinyfuse.html_report.evaluation import evaluation_page
from tinyfuse.html_report.pictures import picture_of
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import find_tools

#: number of classes that are printed, those with the lowest recall first; --json and --html have all
_SHOWN = 12

_EXAMPLES = """\b
Examples:
  tinyfuse evaluate kws.tflite --data x.npy --labels y.npy
  tinyfuse evaluate kws.tflite --data x.npy --labels y.npy --float kws_float.tflite --html kws.html
  tinyfuse evaluate vww.tflite --data pictures/ --labels pictures/ --at-least 0.85
  tinyfuse evaluate ad.tflite --data x.npz --labels y.csv --metric score.py:reconstruction
  tinyfuse evaluate kws.tflite --target cortex-m4 --emulator qemu --data x.npy --labels y.npy

\b
x.npy has the shape [samples, ...]. Floats are real values, and are quantized with the input's scale and zero point;
integers are passed as they are. A folder has one file for each sample.
The exit code is 1 if the metric misses --at-least or --at-most, or if outputs differ from the interpreter's.
"""


@click.command("evaluate", cls=FileCommand, epilog=_EXAMPLES)
@generation_flags_but("labels", default_target="host")
@data_flag(
    "Samples: a .npy, .npz or .csv file, or a folder of such files, of pictures or of sounds. Repeat it for several "
    "inputs."
)
@click.option(
    "--labels",
    type=click.Path(),
    required=True,
    metavar="PATH",
    help="A label for each sample: a .npy, .csv or .txt file. If --data is a folder with one folder for each class: "
    "the same folder.",
)
@click.option(
    "--classes",
    type=click.Path(),
    metavar="FILE",
    help="A file of class names, one per line, in the output's order. Without it, names come from the model's "
    "metadata.",
)
@click.option(
    "--float",
    "float_path",
    type=click.Path(),
    metavar="FILE",
    help="The float model that MODEL was made from, to be evaluated too.",
)
@click.option(
    "--html",
    type=OutputFile(),
    metavar="FILE",
    help="Also write an HTML page: confusion matrix, classes, worst mistakes, thresholds.",
)
@add_flags(EvaluateOptions)
def command(
    request: Request,
    as_json: bool,
    data: tuple[str, ...],
    labels: str,
    classes: str | None,
    float_path: str | None,
    html: str | None,
    how: EvaluateOptions,
) -> int:
    """Measure how accurate the code generated from MODEL is on your data set, and compare its outputs with the
    interpreter's."""
    return show(evaluate(request, data, labels, classes, float_path, html, progress, how), as_json)


def evaluate(
    request: Request, data: tuple[str, ...], labels: str, classes: str | None, float_path: str | None,
    html: str | None, progress: Progress, how: EvaluateOptions,
) -> Answer:  # fmt: skip
    """The metric of the module over the samples and labels in files, on this machine or an emulated core.

    Writes the page `html`, if any. Errors as `Module.evaluate`.
    """
    names = () if classes is None else label_lines(classes, "--classes")
    target = load_target(request.target)
    if how.emulator != "host" and target.cpu is None:
        raise UsageError(f"--emulator {how.emulator} emulates a core: also give one, such as --target cortex-m4")
    machine = find_tools(how.emulator, target, how.compiler)
    if machine.name == "host":  # it runs no CMSIS-NN; our kernels compute the same bits
        request = request.replace(kernels="tinyfuse")
    plan, tree = make_plan(request, progress, needs_tree=True)
    found = evaluate_on(plan, tree, request.data, machine, data, labels, names, float_path, how, progress)
    result = asdict(found)
    answer = (
        plan_envelope(plan)
        | result
        | {
            "warnings": [*plan.warnings, *found.warnings],
            "data": list(data),
            "labels": labels,
            "float": float_path,
            "page": html,
            "command": command_line("evaluate", request, how),
        }
    )
    if html is not None:
        about = f"{request.model} over {', '.join(data)}"
        inputs = mistake_inputs(plan, data, found, how)
        drawn = {sample: picture_of(array) for sample, array in inputs.items()}
        pictures = {sample: pixels for sample, pixels in drawn.items() if pixels is not None}
        write_file(Path(html), evaluation_page(found, plan.options.name, about, pictures))
    return Answer(answer, _lines(answer), exact=found.passed and not found.faulty)


def _lines(data: JsonObject) -> list[str]:
    lines = [
        f"{data['metric']:<12}  {_score(data['score'], data['metric'])}: generated code, {data['samples']:,} samples",
        f"interpreter   {_score(data['interpreter'], data['metric'])}: {data['oracle']}{_difference(data)}",
    ]
    if data["float_model"] is not None:
        agreement = "" if data["agreement"] is None else f", the same best class for {data['agreement']:.2%} of samples"
        lines.append(f"float         {_score(data['float_model'], data['metric'])}: {data['float_by']}{agreement}")
    lines += _class_lines(data)
    lines.append(f"ran on {data['emulator']}, compiled by {data['compiler']} -{data['compiler_opt']}")
    lines += [*data["notes"], *(f"warning: {warning}" for warning in data["warnings"])]
    if data["page"]:
        lines.append(f"wrote {data['page']}")
    if data["faulty"]:
        lines.append(
            f"DIFFERS: {data['differing']:,} samples from {data['oracle']}, the first is {data['first_difference']}: a "
            "fault of tinyfuse; please report it with the model"
        )
    if not data["passed"]:
        lines.append(f"FAILED: {data['metric']} is {data['score']['value']:.4g}, which --at-least or --at-most refuses")
    return lines


def _score(score: JsonObject, metric: str) -> str:
    """A metric with its confidence interval: shares in percent."""
    share = is_share(metric)

    def shown(value: float) -> str:
        return f"{value:.2%}" if share else f"{value:.5g}"

    interval = (
        "" if score["low"] is None else f" ({shown(score['low'])} to {shown(score['high'])} with 95 % confidence)"
    )
    return f"{shown(score['value'])}{interval}"


def _difference(data: JsonObject) -> str:
    if data["exact"]:
        return ", every output byte equal"
    return ", our own references: unproven" if data["unproven"] else f", {data['differing']:,} samples differ"


def _class_lines(data: JsonObject) -> list[str]:
    """Table lines of the classes with the lowest recall."""
    found = sorted((c for c in data["classes"] if c["samples"]), key=lambda c: c["recall"])
    if not found:
        return []
    rows = [
        f"{c['name'][:24]:<24} {c['samples']:>8,} {_percent(c['precision']):>10} {_percent(c['recall']):>8}"
        for c in found[:_SHOWN]
    ]
    more = [f"and {len(found) - _SHOWN} more classes: --json, --html"] if len(found) > _SHOWN else []
    return [f"{'class':<24} {'samples':>8} {'precision':>10} {'recall':>8}", *rows, *more]


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
