"""`tinyfuse run`: builds the firmware that `verify` builds, gives it the user's inputs, shows the outputs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tinyfuse.cli.commands import Answer, Progress, Request, check_flash, machine_for, make_plan
from tinyfuse.emit.header import tensor_symbols
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import EmulationFailed
from tinyfuse.ir import Tensor
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.run.arrays import output_file, read_inputs
from tinyfuse.verify.comparison import problems
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.streams import INSTANCES

#: outputs with more elements are shown by their range
_SHOWN = 32


def run(
    request: Request,
    inputs: tuple[str, ...],
    output: str | None,
    progress: Progress,
    emulator: str,
    opt: str,
    timeout: float,
) -> Answer:
    """The outputs of the module for the arrays that `inputs` name (run/arrays.py), on an emulated core; several
    runs of a model with state are the frames of a stream.

    Writes the file `output`, if any. Errors as `verify`; UsageError where an array doesn't fit; EmulationFailed
    where the module wrote outside its arena.
    """
    machine, request, warnings = machine_for(request, emulator)
    plan, tree = make_plan(request, progress, needs_tree=True)
    given = read_inputs(inputs, plan.source.inputs)
    runs = len(given[0].values)
    if output is not None:  # a name that can't be is told before the run
        output_file(output, plan.source.outputs, [np.zeros(0)] * len(plan.source.outputs))
    fed = [[i.values[number] for i in given] for number in range(runs)]
    if plan.states:  # one stream; the firmware has two instances that take turns, so both get it
        fed = [run for run in fed for _ in range(INSTANCES)]
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
        progress(f"compiling for {plan.context.target.name}")
        firmware = build_module(plan, tree, fed, machine.name, opt, Path(work), frames=runs)
        check_flash(plan, firmware.code_bytes)
        progress(f"running {runs} inferences on {machine.name}")
        outcome = machine.run(firmware, timeout)
    broken = problems(plan, firmware.opt, outcome)
    if broken:
        raise EmulationFailed("\n".join(broken))
    tensors = plan.source.outputs
    results = outcome.outputs[:: INSTANCES if plan.states else 1]
    arrays = [_joined(tensor, [run[i] for run in results]) for i, tensor in enumerate(tensors)]
    if output is not None:
        write_file(Path(output), output_file(output, tensors, arrays))
    data = plan_envelope(plan) | {
        "warnings": [*plan.warnings, *warnings],
        "notes": [i.note for i in given if i.note],
        "emulator": f"{machine.name} {machine.version}".strip(),
        "compiler": firmware.compiler,
        "compiler_opt": firmware.opt,
        "runs": runs,
        "instructions": outcome.instructions,
        "arena_bytes": plan.arena_bytes,
        "output": output,
        "outputs": [_output_json(*each) for each in zip(tensors, tensor_symbols(tensors), arrays, strict=True)],
    }
    return Answer(data, _lines(data))


def _joined(tensor: Tensor, runs: list[bytes]) -> np.ndarray:
    """One array of an output: of the tensor's shape for one run, with the runs as the batch for more."""
    array = np.stack([np.frombuffer(data, tensor.dtype).reshape(tensor.shape) for data in runs])
    if len(runs) == 1:
        return array[0]
    return array[:, 0] if tensor.shape[:1] == (1,) else array


def _output_json(tensor: Tensor, symbol: str, array: np.ndarray) -> dict:
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


def _lines(data: dict) -> list[str]:
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
    counted = "" if instructions is None else f", {instructions:,} instructions an inference"
    lines.append(f"ran {data['runs']} on {data['emulator']}, compiled at -{data['compiler_opt']}{counted}")
    lines += data["notes"] + [f"warning: {warning}" for warning in data["warnings"]]
    if data["output"]:
        lines.append(f"wrote {data['output']}")
    return lines
