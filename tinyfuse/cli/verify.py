"""`tinyfuse verify`: proves that a module computes the interpreter's outputs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from tinyfuse.api.measuring import verify_plan
from tinyfuse.cli.compared import comparison_json
from tinyfuse.cli.flags import add_flags, generation_flags
from tinyfuse.cli.machine import choose_machine
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request, command_line
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import EmulationFailed, RunTimeout
from tinyfuse.options import RunOptions, VerifyOptions
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject, verdict
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.run.arrays import output_file
from tinyfuse.verify.comparison import Mismatch

_EXAMPLES = """\b
Examples:
  tinyfuse verify kws.tflite --target cortex-m4
  tinyfuse verify kws.tflite --target cortex-m4 --kernels cmsis-nn --runs 20 --seed 7
  tinyfuse verify kws.tflite --target cortex-m4 --emulator host
  tinyfuse verify kws.tflite --target cortex-m4 --thorough
"""


@click.command("verify", epilog=_EXAMPLES)
@generation_flags
@add_flags(VerifyOptions)
def command(request: Request, as_json: bool, how: VerifyOptions) -> int:
    """Run the generated code on an emulated core, and prove that every output bit equals that of the runtime that MODEL
    was made for: TensorFlow Lite Micro, onnxruntime or ExecuTorch.
    """
    return show(verify(request, progress, how), as_json)


def verify(request: Request, progress: Progress, how: VerifyOptions) -> Answer:
    """Runs the module on an emulated core, and compares every output element with the oracle.

    ToolMissing without compiler, emulator, CMSIS-NN or oracle; EmulationFailed if the firmware crashed or hung (the
    input of an inference that does not end is saved as NAME_timeout.npz);
    UsageError for a combination that cannot run.
    """
    machine, run, warnings = choose_machine(request, how.emulator, how.compiler)
    plan, tree = make_plan(run, progress, needs_tree=True)
    try:
        found = verify_plan(plan, tree, request.data, machine, how, progress)
    except RunTimeout as late:
        raise EmulationFailed(f"{late}\n{_save_input(late, plan, request, how)}") from None
    data = plan_envelope(plan) | {
        "warnings": [*plan.warnings, *warnings, *found.warnings],
        "emulator": found.emulator,
        **comparison_json(found),
        "instructions": found.instructions,
        "instructions_mean": found.instructions_mean,
        "least_instructions": found.least_instructions,
        "most_instructions": found.most_instructions,
        "longest_step_instructions": found.longest_step_instructions,
        "macs": plan.macs,
        "arena_bytes": plan.arena_bytes,
        "state_bytes": plan.state_bytes,
        "ram_bytes": found.ram_bytes,
        "stack_bytes": found.stack_bytes,
        "flash_code_bytes": found.code_bytes,
        "flash_weight_bytes": found.weight_bytes,
        "kernel_symbols": found.kernel_symbols,
        "cmsis_nn": {"path": str(tree.path), "version": ".".join(map(str, tree.version))} if tree else None,
        "compiler": found.compiler,
        "compiler_opt": found.compiler_opt,
        "levels": None if found.levels is None else [asdict(layer) for layer in found.levels],
        "builds": [asdict(build) for build in found.builds],
        "command": command_line("verify", request, how),
    }
    return Answer(data, _verify_lines(data, found.first_mismatch), exact=found.within_bound)


def _save_input(late: RunTimeout, plan: Plan, request: Request, how: VerifyOptions) -> str:
    """Writes the inputs that a firmware did not end with, and returns how to run them again."""
    if not late.stream:
        return "all inferences ended, but a check after them did not"
    path = f"{plan.options.name}_timeout.npz"
    arrays = [np.stack(frames) for frames in zip(*late.stream, strict=True)]
    if not arrays:
        return "the model has no inputs"
    write_file(Path(path), output_file(path, plan.source.inputs, arrays))
    options = RunOptions(late.emulator, how.compiler, late.opt, how.timeout)
    return f"its input is in {path}; repeat with: {command_line('run', request, options)} --input {path}"


def _verify_lines(data: JsonObject, first: Mismatch | None) -> list[str]:
    def figure(key: str) -> str:
        return "not measured" if data[key] is None else f"{data[key]:,}"

    lines = [
        f"{verdict(data)}: {data['mismatches']:,} of {data['outputs']:,} output elements differ in "
        f"{data['runs']} runs{_streams(data)} ({data['emulator']} against {data['oracle']})",
        f"instructions  {figure('instructions')}{_mean(data)}{_spread(data)}",
        f"arena         {figure('arena_bytes')} bytes, {_state(data)}stack {figure('stack_bytes')}",
        f"flash         code {figure('flash_code_bytes')}, weights {figure('flash_weight_bytes')}",
        f"compiler      {data['compiler']} -{data['compiler_opt']}",
    ]
    if data["longest_step_instructions"] is not None:
        lines.insert(2, f"longest step  {figure('longest_step_instructions')} instructions")
    lines[1:1] = _bound_lines(data)
    lines += _level_lines(data)
    if len(data["builds"]) > 1:
        lines += [_build_line(build) for build in data["builds"]]
    if data["cmsis_nn"]:
        lines.append(f"CMSIS-NN      {data['cmsis_nn']['version']} at {data['cmsis_nn']['path']}")
    lines += [f"warning: {warning}" for warning in data["warnings"]]
    if first:
        lines.append(str(first))
    lines += data["problems"]
    if not data["within_bound"] and not data["unproven"]:
        lines.append(f"repeat with: {data['command']}")
    return lines


def _build_line(build: JsonObject) -> str:
    found = f"{build['mismatches']:,} of {build['elements']:,} differ"
    broken = len(build["problems"])
    return f"build -{build['compiler_opt']:<3}    {found}, {broken} problems ({build['emulator'].split()[0]})"


def _bound_lines(data: JsonObject) -> list[str]:
    """Lines about differences of operators that call functions of libm, and about what is proven nevertheless."""
    if data["exact"] or not data["operator_bounds"]:
        return []
    steps = (
        f"; integers by at most {data['max_step']}, because a rounded value may change by one"
        if data["max_step"]
        else ""
    )
    lines = [f"differences   floats differ by at most {data['max_ulp']:,} ulp{steps}"]
    lines += [
        f"libm          {name} calls the C library: for the same inputs {found['ulp']} ulp from the interpreter's "
        f"result, allowed are {found['bound']}"
        for name, found in data["operator_bounds"].items()
    ]
    if data["within_bound"]:
        lines.append(
            "proven        every output bit equals tinyfuse's reference, which for all other operators equals the "
            "interpreter"
        )
    return lines


def _level_lines(data: JsonObject) -> list[str]:
    """Line that says how many layers and channels reached both ends of their output range; empty without layers."""
    layers = data["levels"]
    if not layers:
        return []
    complete = [layer for layer in layers if layer["reached"] == layer["channels"]]
    reached, channels = (sum(layer[key] for layer in layers) for key in ("reached", "channels"))
    return [
        f"coverage      {reached:,} of {channels:,} channels reached the least and the largest value of their range, "
        f"in {len(complete)} of {len(layers)} layers all channels"
    ]


def _spread(data: JsonObject) -> str:
    """Words about the range of instructions over all inputs; empty if they are equal."""
    least, most = data["least_instructions"], data["most_instructions"]
    return "" if least is None or least == most else f" for the second input; {least:,} to {most:,} over all inputs"


def _streams(data: JsonObject) -> str:
    return f" in streams of {data['frames']}" if data["frames"] else ""


def _mean(data: JsonObject) -> str:
    mean = data["instructions_mean"]
    return "" if mean is None else f" in the slowest step, {mean:,} on average"


def _state(data: JsonObject) -> str:
    return f"state {data['state_bytes']:,}, " if data["state_bytes"] else ""
