"""`tinyfuse run`: runs the firmware of `verify` on the user's inputs, and prints the outputs."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from tinyfuse.api.measuring import run_plan
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import add_flags, generation_flags
from tinyfuse.cli.machine import choose_machine
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.emit.header import tensor_symbols
from tinyfuse.emit.output_folder import write_file
from tinyfuse.ir import Array, Tensor
from tinyfuse.options import RunOptions
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.run.arrays import output_file, read_inputs, runs_of

#: outputs with more elements are shown as a range
_SHOWN = 32


_EXAMPLES = """\b
Examples:
  tinyfuse run kws.tflite --target cortex-m4 --input x.npy --output y.npy
  tinyfuse run kws.tflite --target cortex-m4 --input audio=a.npy --input state=s.npy --output y.npz

\b
x.npy has the input's shape, or one more dimension in front, [runs, ...], for several inferences (of a model with
state: the frames of a stream). Integers are passed as they are. Floats for an integer input are real values, and are
quantized with the input's scale and zero point.
"""


@click.command("run", cls=FileCommand, epilog=_EXAMPLES)
@generation_flags
@click.option(
    "--input",
    "inputs",
    type=click.Path(),
    multiple=True,
    metavar="[NAME=]FILE",
    help="A .npy file for one input, or a .npz file with an array for each input. Repeat it for several inputs; leave "
    "it out for a model without inputs.",
)
@click.option(
    "--output",
    type=OutputFile(),
    metavar="FILE",
    help="Write the outputs to this file: .npy for one output, .npz for an array by each output's name.",
)
@add_flags(RunOptions)
def command(request: Request, as_json: bool, inputs: tuple[str, ...], output: str | None, how: RunOptions) -> int:
    """Run the generated code of MODEL on an emulated core, with your own inputs, and print the outputs."""
    return show(run(request, inputs, output, progress, how), as_json)


def run(request: Request, inputs: tuple[str, ...], output: str | None, progress: Progress, how: RunOptions) -> Answer:
    """Runs the module on the arrays that `inputs` name (run/arrays.py), on an emulated core, and writes the file
    `output`.

    Several runs of a model with state are the frames of a stream. Errors as in `verify`; UsageError if an array does
    not fit; EmulationFailed if the module wrote outside its arena.
    """
    machine, request, warnings = choose_machine(request, how.emulator, how.compiler)
    plan, tree = make_plan(request, progress, needs_tree=True)
    given = read_inputs(inputs, plan.source.inputs)
    tensors = plan.source.outputs
    if output is not None:  # refuses a wrong name before the run
        output_file(output, tensors, [np.zeros(0)] * len(tensors))
    found = run_plan(plan, tree, given, machine, how, progress)
    if output is not None:
        write_file(Path(output), output_file(output, tensors, found.in_order))
    data = plan_envelope(plan) | {
        "warnings": [*plan.warnings, *warnings],
        "notes": list(found.notes),
        "emulator": found.emulator,
        "compiler": found.compiler,
        "compiler_opt": found.compiler_opt,
        "runs": runs_of(given),
        "instructions": found.instructions,
        "arena_bytes": plan.arena_bytes,
        "output": output,
        "outputs": [_output_json(*each) for each in zip(tensors, tensor_symbols(tensors), found.in_order, strict=True)],
    }
    return Answer(data, _lines(data))


def _output_json(tensor: Tensor, symbol: str, array: Array) -> JsonObject:
    plain = tensor.quant is not None and not tensor.quant.per_channel and tensor.dtype != "float32"
    values = array.reshape(-1).tolist()
    return {
        "name": tensor.name,
        "symbol": symbol,
        "dtype": tensor.dtype,
        "shape": list(array.shape),
        "scale": tensor.scale if plain else None,
        "zero_point": tensor.zero_point if plain else None,
        # JSON has no infinity and no NaN
        "values": [v if np.isfinite(v) else str(v) for v in values] if array.dtype.kind == "f" else values,
    }


def _lines(data: JsonObject) -> list[str]:
    lines = []
    for output in data["outputs"]:
        values = output["values"]
        numbers = [float(v) for v in values]
        head = f"{output['symbol']}: {output['dtype']}{output['shape']}"
        if len(values) <= _SHOWN:
            lines.append(f"{head} = {' '.join(f'{v:g}' for v in numbers)}")
        else:
            lines.append(f"{head}, {min(numbers):g} to {max(numbers):g}")
        if output["scale"] is not None:
            lines.append(f"  real value = {output['scale']:g} * (value {-output['zero_point']:+d})")
    instructions = data["instructions"]
    counted = "" if instructions is None else f", {instructions:,} instructions per inference"
    lines.append(
        f"ran {data['runs']} on {data['emulator']}, compiled by {data['compiler']} -{data['compiler_opt']}{counted}"
    )
    lines += data["notes"] + [f"warning: {warning}" for warning in data["warnings"]]
    if data["output"]:
        lines.append(f"wrote {data['output']}")
    return lines
