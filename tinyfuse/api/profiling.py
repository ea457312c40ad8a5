"""Measures the instructions and bytes of a plan's module."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tinyfuse.api.writing import check_flash
from tinyfuse.cost.cycles import timing_of
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.options import ProfileOptions
from tinyfuse.plan import Plan
from tinyfuse.profile.cycles import core as core_of
from tinyfuse.profile.image import arena_columns, read_image
from tinyfuse.profile.instruction_kinds import explained_multiple
from tinyfuse.profile.measure import measure
from tinyfuse.profile.plugin import build_plugin, run_counted
from tinyfuse.profile.profile_json import Measured, profile_json
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.targets import Target
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.emulation import Emulator, find_tools
from tinyfuse.verify.emulation.code_size import add_helpers
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.qemu import Qemu
from tinyfuse.verify.streams import INSTANCES, steps_for
from tinyfuse.verify.varying_inputs import Arrays

#: steps with a result that are run for a sliding window
_STEPS = 32
#: every fifth run of a sliding window isn't timed (`is_timed` in firmware/verify.c)
_UNTIMED = 5
#: number of inputs drawn; the second is measured, so it is that of `verify` without options
_INPUTS = 8


@dataclass(frozen=True)
class Counting:
    """Machine that runs a module, with its counter.

    counter   plugin that counts single instructions; None if there is none
    warnings  reason why there is no counter
    """

    machine: Emulator
    counter: Path | None
    warnings: tuple[str, ...]


def find_counting(target: Target, feeds_image: bool, emulator: str, compiler: str) -> Counting:
    """Finds a machine and a counter for the target. UsageError if none can count, ToolMissing without the emulator or
    the compiler."""
    if target.cpu is None:
        raise UsageError(
            "instructions are counted on an emulated core; give a --target of `tinyfuse targets` other than host"
        )
    if feeds_image:
        raise UsageError(
            "instructions of NAME_run are counted, which a module with --feed-rows does not have; leave out --feed-rows"
        )
    machine = find_tools(emulator, target, compiler)
    try:
        if isinstance(machine, Qemu):
            return Counting(machine, build_plugin(machine.version), ())
        reason = f"{machine.name} has no counter of single instructions"
    except ToolMissing as missing:
        reason = str(missing)
    return Counting(machine, None, (f"only totals were counted: {reason}",))


#: a plan, and the CMSIS-NN tree that it is built with
Planned = tuple[Plan, Tree | None]


def profile_plan(
    planned: Planned, make_unfused: Callable[[], Planned], counting: Counting, how: ProfileOptions, progress: Progress
) -> JsonObject:
    """JSON of `tinyfuse profile` (docs/json.md), for the plan and for the same model with --fusion none.

    `make_unfused` is called if that is another plan. Errors as in `Module.profile`.
    """
    plan, machine = planned[0], counting.machine
    measured = measure_plan(planned, counting, how, progress)
    unfused = None
    if plan.options.fusion != "none":
        unfused = profile_json(measure_plan(make_unfused(), counting, how, progress))
        del unfused["groups"], unfused["outside_groups"], unfused["board_cycles"]
    return plan_envelope(plan) | {
        "warnings": [*plan.warnings, *counting.warnings],
        "emulator": f"{machine.name} {machine.version}".strip(),
        "compiler": measured.firmware.compiler,
        "compiler_opt": measured.firmware.opt,
        "far_above_floor": explained_multiple(plan.context.target),
        **profile_json(measured),
        "unfused": unfused,
    }


def _inputs(plan: Plan) -> tuple[Arrays, int, int]:
    """Inputs of the runs, runs per stream, and the number (from 1) of the run that is measured: the second one, or the
    first with a result of a sliding window."""
    window = plan.source.window
    if window is None:
        # with --step, only the timed inference calls NAME_run
        return input_set(plan.source, _INPUTS, 0)[:2], 1, 1 if plan.options.step else 2
    steps, frames = steps_for(_STEPS, window.steps_to_fill)
    number = INSTANCES * (window.steps_to_fill - 1) + 1
    if window.rows and (number - 1) % _UNTIMED == 0:
        number += 1  # the untimed run brings all rows at once
    return input_set(plan.source, steps, 0), frames, number


def measure_plan(planned: Planned, counting: Counting, how: ProfileOptions, progress: Progress) -> Measured:
    """Builds a plan's module, and runs it with random inputs; one inference is measured. Errors as in
    `Module.profile`."""
    (plan, tree), machine = planned, counting.machine
    name, core = plan.options.name, plan.context.target
    inputs, frames, inference = _inputs(plan)
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work = Path(folder)
        progress(f"compiling for {core.name}, --fusion {plan.options.fusion}")
        firmware = build_module(
            plan, tree, inputs, machine.name, how.compiler_opt, work, frames, compiled_by=how.compiler, checked=False
        )
        check_flash(plan, add_helpers(plan, tree, firmware.code_bytes, work / "size"))
        progress(f"running the firmware on {machine.name}")
        if counting.counter is None or not isinstance(machine, Qemu):
            return Measured(plan, firmware, machine.run(firmware, how.timeout), None, None)
        source = (work / "module" / f"{name}.c").read_text(encoding="utf-8")
        banks = [bank.name for bank in plan.memory.banks] if plan.memory else []
        image = read_image(firmware.elf, name, source, arena_columns(plan), core.mve, banks)
        pipeline, board = core_of(core.cpu), timing_of(core, plan.options)
        outcome, counts = run_counted(machine, firmware, image, counting.counter, pipeline, how.timeout, inference)
        found = measure(counts, image, pipeline is not None, board)
        return Measured(plan, firmware, outcome, found, pipeline.source if pipeline else None)
