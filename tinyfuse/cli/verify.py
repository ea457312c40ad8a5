"""`tinyfuse verify`: proves that a module computes what the interpreter computes."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from tinyfuse.cli.flags import flags_of, generation_flags
from tinyfuse.cli.machine import machine_for
from tinyfuse.cli.planning import check_flash, make_plan
from tinyfuse.cli.request import Request, command_line
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.errors import UsageError
from tinyfuse.options import VerifyOptions
from tinyfuse.report.report_json import Facts, plan_envelope
from tinyfuse.schedule.progress import Progress
from tinyfuse.verify.comparison import Comparison, compare, problems
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.oracle import make_oracle
from tinyfuse.verify.streams import default_frames
from tinyfuse.verify.telling_inputs import doubts, telling_inputs

#: inferences that `verify` compares by default, and of a model with state
RUNS, STREAM_RUNS = 8, 64

_EXAMPLES = """\b
Examples:
  tinyfuse verify kws.tflite --target cortex-m4
  tinyfuse verify kws.tflite --target cortex-m4 --kernels cmsis-nn --runs 20 --seed 7
  tinyfuse verify kws.tflite --target cortex-m4 --emulator host
"""


@click.command("verify", epilog=_EXAMPLES)
@generation_flags
@flags_of(VerifyOptions)
def command(request: Request, as_json: bool, how: VerifyOptions) -> int:
    """Prove on an emulated core that the module computes what TensorFlow Lite Micro computes."""
    return show(verify(request, progress, how), as_json)


def verify(request: Request, progress: Progress, how: VerifyOptions) -> Answer:
    """Runs the module on an emulated core and compares every output element with the oracle.

    Without `runs`: RUNS, or STREAM_RUNS for a model with state; without `frames`: two streams for each of two
    instances (tinyfuse/verify/streams.py).

    ToolMissing without compiler, emulator, CMSIS-NN or oracle; EmulationFailed where the firmware
    crashed or hung; UsageError for a combination that can't run.
    """

    machine, run, warnings = machine_for(request, how.emulator)
    plan, tree = make_plan(run, progress, needs_tree=True)
    judge = make_oracle(how.oracle, Path(request.model).read_bytes(), plan.source)
    given = how.runs is not None or how.frames is not None
    runs, frames = how.runs, how.frames
    if runs is None:
        runs = STREAM_RUNS if plan.states else RUNS
    if frames is not None and not plan.states:
        raise UsageError("--frames is for models with state; this one keeps nothing between inferences")
    if frames is None and plan.states:
        frames = default_frames(runs)
    progress(f"asking {judge.name} for {runs} results")
    inputs, expected, frames = telling_inputs(plan.source, judge, runs, frames, how.seed, fixed=given)
    runs = len(inputs)
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
        progress(f"compiling for {plan.context.target.name}")
        firmware = build_module(plan, tree, inputs, machine.name, how.compiler_opt, Path(work), frames or 1)
        check_flash(plan, firmware.code_bytes)
        progress(f"running {runs} inferences on {machine.name}")
        outcome = machine.run(firmware, how.timeout)
    comparison = compare(plan, expected, outcome.outputs)
    broken = problems(plan, firmware.opt, outcome)
    exact = comparison.mismatches == 0 and not broken
    data = plan_envelope(plan) | {
        "warnings": [*plan.warnings, *warnings, *judge.warnings, *doubts(plan.source, expected)],
        "emulator": f"{machine.name} {machine.version}".strip(),
        "oracle": f"{judge.name} {judge.version}".strip(),
        "runs": runs,
        "frames": frames,
        "seed": how.seed,
        "outputs": comparison.elements,
        "mismatches": comparison.mismatches,
        "first_mismatch": asdict(comparison.first) if comparison.first else None,
        "problems": broken,
        "exact": exact,
        "instructions": outcome.instructions,
        "macs": plan.macs,
        "arena_bytes": plan.arena_bytes,
        "state_bytes": plan.state_bytes,
        "ram_bytes": firmware.ram_bytes,
        "stack_bytes": outcome.stack_bytes,
        "flash_code_bytes": firmware.code_bytes,
        "flash_weight_bytes": firmware.weight_bytes,
        "kernel_symbols": firmware.kernel_symbols,
        "cmsis_nn": {"path": str(tree.path), "version": ".".join(map(str, tree.version))} if tree else None,
        "compiler": firmware.compiler,
        "compiler_opt": firmware.opt,
        "command": command_line("verify", request, how),
    }
    return Answer(data, _verify_lines(data, comparison), exact=exact)


def _verify_lines(data: Facts, comparison: Comparison) -> list[str]:
    def figure(key: str) -> str:
        return "not measured" if data[key] is None else f"{data[key]:,}"

    verdict = "exact" if data["exact"] else "NOT EXACT"
    lines = [
        f"{verdict}: {data['mismatches']:,} of {data['outputs']:,} output elements differ in "
        f"{data['runs']} runs{_streams(data)} ({data['emulator']} against {data['oracle']})",
        f"instructions  {figure('instructions')}",
        f"arena         {figure('arena_bytes')} bytes, {_state(data)}stack {figure('stack_bytes')}",
        f"flash         code {figure('flash_code_bytes')}, weights {figure('flash_weight_bytes')}",
        f"compiler      {data['compiler']} -{data['compiler_opt']}",
    ]
    if data["cmsis_nn"]:
        lines.append(f"CMSIS-NN      {data['cmsis_nn']['version']} at {data['cmsis_nn']['path']}")
    lines += [f"warning: {warning}" for warning in data["warnings"]]
    if comparison.first:
        lines.append(str(comparison.first))
    lines += data["problems"]
    if not data["exact"]:
        lines.append(f"repeat with: {data['command']}")
    return lines


def _streams(data: Facts) -> str:
    return f" in streams of {data['frames']}" if data["frames"] else ""


def _state(data: Facts) -> str:
    return f"state {data['state_bytes']:,}, " if data["state_bytes"] else ""
