"""Builds a plan's module, runs it on an emulated core, and compares its outputs with the oracle."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tinyfuse.api.results import Outputs, Verification, VerifiedBuild
from tinyfuse.api.writing import check_flash
from tinyfuse.errors import EmulationFailed, RunTimeout, UsageError
from tinyfuse.ir import Graph, Tensor, Window
from tinyfuse.options import BoardOptions, RunOptions, VerifyOptions
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.run.arrays import ModelInput, runs_of
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.bounds import check_operators, has_bounds
from tinyfuse.verify.comparison import Comparison, compare, problems
from tinyfuse.verify.emulation import Emulator, Firmware, Outcome
from tinyfuse.verify.emulation.code_size import add_helpers
from tinyfuse.verify.emulation.host import Host
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.result import running_inference
from tinyfuse.verify.level_coverage import level_coverage
from tinyfuse.verify.oracle import InterpreterOracle, Oracle, ReferenceOracle, make_oracle
from tinyfuse.verify.streams import (
    INSTANCES,
    count_results,
    default_frames,
    join_streams,
    split_streams,
    steps_for,
    steps_in_streams,
    stream_until,
)
from tinyfuse.verify.varying_inputs import Arrays, unchanging_warnings, varying_inputs
from tinyfuse.verify.windows import WindowOracle

#: inferences that a verification compares by default, and those for a model with state
RUNS, STREAM_RUNS = 8, 64

#: optimization levels that a thorough verification adds, its factor for the default number of inferences, and that for
#: the search of inputs
THOROUGH_OPTS, THOROUGH_FACTOR, THOROUGH_EFFORT = ("O0", "Os", "O3"), 4, 30


def verify_plan(
    plan: Plan, tree: Tree | None, model: bytes, machine: Emulator, how: VerifyOptions, progress: Progress
) -> Verification:
    """Runs the module on the machine, and compares every output element with the oracle.

    `model` is the file's content, for the oracle. `runs` defaults to RUNS, or STREAM_RUNS for a model with state, and
    to more if outputs stay the same; `frames` to two streams for each of two instances (tinyfuse/verify/streams.py).
    With --slide, `runs` counts steps that have a result. Errors as in `Module.verify`.
    """
    asked = ask_oracle(plan, model, how, progress)
    covered = level_coverage(plan.source, split_streams(asked.inputs, asked.frames))
    found = replace(_verify_build(plan, tree, asked, machine, how, progress), levels=covered)
    if not how.thorough:
        return found
    others = [
        _verify_build(plan, tree, asked, other, replace(how, compiler_opt=opt), progress)
        for other, opt in _other_builds(plan, machine, how)
    ]
    return _combine_builds([found, *others])


def _other_builds(plan: Plan, machine: Emulator, how: VerifyOptions) -> list[tuple[Emulator, str]]:
    """Builds that a thorough verification adds: other levels, and the portable form, which CMSIS-NN lacks, on this
    machine."""
    if machine.name == "host":
        return []
    levels: list[tuple[Emulator, str]] = [(machine, opt) for opt in THOROUGH_OPTS if opt != how.compiler_opt]
    return levels if plan.cmsis_nn_functions else [*levels, (Host(), how.compiler_opt)]


def _combine_builds(found: list[Verification]) -> Verification:
    """Verification of several builds, with the figures of the first."""
    return replace(
        found[0],
        exact=all(each.exact for each in found),
        unproven=any(each.unproven for each in found) and all(each.exact or each.unproven for each in found),
        within_bound=all(each.within_bound for each in found),
        elements=sum(each.elements for each in found),
        mismatches=sum(each.mismatches for each in found),
        max_ulp=max(each.max_ulp for each in found),
        max_step=max(each.max_step for each in found),
        first_mismatch=next((each.first_mismatch for each in found if each.first_mismatch), None),
        problems=tuple(
            f"{each.compiler_opt} on {each.emulator.split()[0]}: {text}" for each in found for text in each.problems
        ),
        builds=tuple(build for each in found for build in each.builds),
    )


def _verify_build(
    plan: Plan, tree: Tree | None, asked: OracleAnswer, machine: Emulator, how: VerifyOptions, progress: Progress
) -> Verification:
    """Builds the module, runs it on the machine, and compares its outputs with the oracle's answer."""
    firmware, outcome = _build_and_run(
        plan, tree, asked.inputs, machine, how, asked.frames or 1, len(asked.inputs), progress,
        spread=plan.source.window is None,
    )  # fmt: skip
    found = judge_outputs(plan, asked, outcome.outputs, problems(plan, firmware, outcome), progress)
    comparison, ran = found.comparison, f"{machine.name} {machine.version}".strip()
    build = VerifiedBuild(
        ran, firmware.compiler, firmware.opt, asked.results, comparison.elements, comparison.mismatches,
        found.within_bound, found.problems, outcome.stack_bytes,
    )  # fmt: skip
    return Verification(
        exact=found.exact,
        unproven=found.unproven,
        within_bound=found.within_bound,
        elements=comparison.elements,
        mismatches=comparison.mismatches,
        max_ulp=comparison.max_ulp,
        max_step=comparison.max_step,
        operator_bounds=found.operator_bounds,
        first_mismatch=comparison.first,
        problems=found.problems,
        warnings=(*asked.warnings, *firmware.unchecked),
        runs=asked.results,
        frames=asked.frames,
        seed=how.seed,
        instructions=outcome.instructions,
        instructions_mean=outcome.instructions_mean,
        least_instructions=outcome.spread[0] if outcome.spread else None,
        most_instructions=outcome.spread[1] if outcome.spread else None,
        longest_step_instructions=outcome.longest_step,
        stack_bytes=outcome.stack_bytes,
        ram_bytes=firmware.ram_bytes,
        code_bytes=firmware.code_bytes,
        weight_bytes=firmware.weight_bytes,
        kernel_symbols=firmware.kernel_symbols,
        emulator=ran,
        oracle=asked.oracle,
        compiler=firmware.compiler,
        compiler_opt=firmware.opt,
        levels=None,
        builds=(build,),
    )


@dataclass(frozen=True)
class OracleAnswer:
    """Inputs of a verification, and the oracle's outputs.

    inputs, expected   arrays as [run][index]
    frames   runs of a stream (tinyfuse/verify/streams.py); None for a model without state
    results  number of runs that have a result; fewer than all with --slide
    """

    judge: Oracle
    inputs: Arrays
    expected: Arrays
    frames: int | None
    results: int
    warnings: tuple[str, ...]

    @property
    def oracle(self) -> str:
        """Name and version of the oracle."""
        return f"{self.judge.name} {self.judge.version}".strip()


def ask_oracle(plan: Plan, model: bytes, how: VerifyOptions | BoardOptions, progress: Progress) -> OracleAnswer:
    """Draws the inputs of a verification, and gets the oracle's outputs; `runs` and `frames` as in `verify_plan`."""
    judge, window = make_oracle(how.oracle, model, _interpreted(plan)), plan.source.window
    given = how.runs is not None or how.frames is not None
    runs, frames = _runs_and_frames(plan, how)
    progress(f"computing {runs if window is None else _results(window, runs, frames)} results with {judge.name}")
    oracle = judge if window is None else WindowOracle(window, judge, progress)
    effort = THOROUGH_EFFORT if isinstance(how, VerifyOptions) and how.thorough else 1
    inputs, expected, frames = varying_inputs(plan.source, oracle, runs, frames, how.seed, given, effort)
    results = len(inputs) if window is None else _results(window, len(inputs), frames)
    return OracleAnswer(
        judge, inputs, expected, frames, results, (*judge.warnings, *unchanging_warnings(plan.source, expected))
    )


@dataclass(frozen=True)
class Verdict:
    """Verdict on a module's outputs; the fields are those of Verification."""

    comparison: Comparison
    exact: bool
    unproven: bool
    within_bound: bool
    operator_bounds: dict[str, tuple[int, int]]
    problems: tuple[str, ...]


def judge_outputs(
    plan: Plan, asked: OracleAnswer, outputs: list[list[bytes]], broken: Sequence[str], progress: Progress
) -> Verdict:  # fmt: skip
    """Compares outputs, by [run][index], with the oracle's. `broken` has a sentence for each broken promise."""
    comparison, judge = compare(plan, asked.expected, outputs), asked.judge
    agrees = comparison.mismatches == 0 and not broken
    exact = agrees and not isinstance(judge, ReferenceOracle)
    checks, broken = None, list(broken)
    if comparison.mismatches and isinstance(judge, InterpreterOracle) and has_bounds(plan.source):
        progress(f"computing each operator's results with {judge.name}")
        layouts = plan.source.layouts
        checks = check_operators(layouts.file if layouts else plan.source, judge, asked.inputs)
        broken += [*_unlike_reference(plan, asked, outputs), *checks.broken]
    return Verdict(
        comparison,
        exact,
        unproven=agrees and not exact,
        within_bound=exact or (checks is not None and not broken),
        operator_bounds={b.operator: (b.ulp, b.bound) for b in checks.bounds} if checks else {},
        problems=tuple(broken),
    )


def _interpreted(plan: Plan) -> Graph:
    """Return the graph that the oracle runs: that of the file."""
    return plan.source if plan.source.window is None else plan.source.window.whole


def _runs_and_frames(plan: Plan, how: VerifyOptions | BoardOptions) -> tuple[int, int | None]:
    """Number of inferences to compare (steps with --slide), and of those from one reset to the next; the second is None
    for a model without state."""
    if how.frames is not None and not plan.states:
        raise UsageError(
            "--frames is for models with state, and this one keeps nothing between inferences; leave it out"
        )
    usual = STREAM_RUNS if plan.states else RUNS
    if isinstance(how, VerifyOptions) and how.thorough:
        usual = _thorough_runs(plan, usual * THOROUGH_FACTOR)
    runs, window = how.runs or usual, plan.source.window
    if window is not None:
        steps, frames = steps_for(runs, window.steps_to_fill)
        if how.frames is None:
            return steps, frames
        if how.frames < window.steps_to_fill:
            fill = f"{window.steps_to_fill} steps fill the window of {window.frames} frames"
            raise UsageError(f"--frames {how.frames}: no step would have a result; {fill}")
        return steps_in_streams(runs, how.frames, window.steps_to_fill), how.frames
    return runs, default_frames(runs) if plan.states and how.frames is None else how.frames


def _thorough_runs(plan: Plan, runs: int) -> int:
    """Return `runs` or, for a small model with states, a larger number: then a stream is so long that an 8-bit counter
    in the model wraps."""
    bytes_of_run = sum(tensor.bytes for tensor in plan.source.inputs)
    while plan.states and runs < 1024 and 2 * runs * bytes_of_run <= 1 << 20 and 2 * runs * plan.macs <= 1 << 30:
        runs *= 2
    return runs


def _results(window: Window, steps: int, frames: int | None) -> int:
    return count_results(steps, frames or steps, window.steps_to_fill)


def _unlike_reference(plan: Plan, asked: OracleAnswer, outputs: list[list[bytes]]) -> list[str]:
    """Sentence about elements that differ from our own references; empty if none does."""
    wanted = join_streams(
        ReferenceOracle(plan.source).run_streams(split_streams(asked.inputs, asked.frames)), asked.frames
    )
    found = compare(plan, wanted, outputs)
    if found.mismatches == 0:
        return []
    return [f"{found.mismatches:,} elements differ from our own references; {found.first}"]


def run_plan(
    plan: Plan, tree: Tree | None, given: Sequence[ModelInput], machine: Emulator, how: RunOptions, progress: Progress
) -> Outputs:
    """Runs the module on these inputs, one for each of the model's.

    Several runs of a model with state are frames of a stream. EmulationFailed if the module broke a promise of its
    header.
    """
    runs = runs_of(given)
    fed = [[i.values[number] for i in given] for number in range(runs)]
    if plan.states:  # a single stream; the firmware's two instances take turns, so both get it
        fed = [run for run in fed for _ in range(INSTANCES)]
    firmware, outcome = _build_and_run(plan, tree, fed, machine, how, runs, runs, progress)
    broken = problems(plan, firmware, outcome)
    if broken:
        raise EmulationFailed("\n".join(broken))
    results = outcome.outputs[:: INSTANCES if plan.states else 1]
    tensors = plan.source.outputs
    arrays = tuple(_stack_runs(tensor, [run[i] for run in results]) for i, tensor in enumerate(tensors))
    return Outputs(
        arrays={tensor.name: array for tensor, array in zip(tensors, arrays, strict=True)},
        in_order=arrays,
        notes=(*(i.note for i in given if i.note), *_without_result(plan, runs)),
        instructions=outcome.instructions,
        emulator=f"{machine.name} {machine.version}".strip(),
        compiler=firmware.compiler,
        compiler_opt=firmware.opt,
    )


def _without_result(plan: Plan, steps: int) -> list[str]:
    """Sentence about the steps of a sliding window that have no result; empty if all have one."""
    window = plan.source.window
    if window is None or window.steps_to_fill == 1:
        return []
    count, filled = min(steps, window.steps_to_fill - 1), f"{window.steps_to_fill} steps fill the window"
    return [f"the first {count} of {steps} steps have no result, zeros are shown: {filled} of {window.frames} frames"]


def _build_and_run(
    plan: Plan, tree: Tree | None, inputs: list[list[np.ndarray]], machine: Emulator, how: VerifyOptions | RunOptions,
    frames: int, runs: int, progress: Progress, spread: bool = False,
) -> tuple[Firmware, Outcome]:  # fmt: skip
    """Builds firmware for these inputs, in streams of `frames`, and runs it. `runs` is for the progress line."""
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
        progress(f"compiling for {plan.context.target.name}")
        firmware = build_module(
            plan, tree, inputs, machine.name, how.compiler_opt, Path(work), frames,
            spread=spread, compiled_by=how.compiler,
        )  # fmt: skip
        check_flash(plan, add_helpers(plan, tree, firmware.code_bytes, Path(work) / "size"))
        progress(f"running {runs} inferences on {machine.name}")
        try:
            return firmware, machine.run(firmware, how.timeout)
        except RunTimeout as late:
            late.stream = stream_until(inputs, frames if plan.states else None, running_inference(late.log))
            late.emulator, late.opt = machine.name, how.compiler_opt
            raise


def _stack_runs(tensor: Tensor, runs: list[bytes]) -> np.ndarray:
    """Array of an output over several runs: one run has the tensor's shape; several runs become the batch dimension."""
    array = np.stack([np.frombuffer(data, tensor.dtype).reshape(tensor.shape) for data in runs])
    if len(runs) == 1:
        return np.asarray(array[0])
    return np.asarray(array[:, 0]) if tensor.shape[:1] == (1,) else array
