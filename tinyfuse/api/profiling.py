"""Where the instructions and bytes of a plan's module go."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinyfuse.api.writing import check_flash
from tinyfuse.compiler import compile_graph
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.plan import Plan
from tinyfuse.profile.cycles import timing
from tinyfuse.profile.image import read_image
from tinyfuse.profile.measure import measure
from tinyfuse.profile.plugin import build_plugin, run_counted
from tinyfuse.profile.profile_json import Measured, profile_json
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.schedule.progress import Progress
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.emulation import Emulator, find_emulator
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.qemu import Qemu

#: `verify` without options measures the second of this many inputs
_INPUTS = 8


def profile_plan(
    plan: Plan, tree_of: Callable[[Plan], Tree | None], emulator: str, opt: str, timeout: float, progress: Progress
) -> dict[str, Any]:
    """The JSON of `tinyfuse profile` (docs/json.md), of the plan and of the same model under --fusion none;
    `tree_of` gives the CMSIS-NN that a plan calls. Errors as `Module.profile`."""
    target, options = plan.context.target, plan.options
    if target.cpu is None:
        raise UsageError("profile counts on an emulated core; give a --target of `tinyfuse targets` other than host")
    if options.feed_rows:
        raise UsageError("profile measures NAME_run, which a module with --feed-rows does not have; leave it out")
    machine = find_emulator(emulator, target)
    counter: Path | None = None
    warning = []
    if isinstance(machine, Qemu):
        try:
            counter = build_plugin()
        except ToolMissing as missing:
            warning = [f"only totals were counted: {missing}"]
    else:
        warning = [f"only totals were counted: {machine.name} has no counter of single instructions"]
    measured = _measure(plan, tree_of(plan), machine, counter, opt, timeout, progress)
    unfused = None
    if options.fusion != "none":
        plain = compile_graph(plan.source, target, replace(options, fusion="none", max_ram=None, max_flash=None))
        unfused = profile_json(_measure(plain, tree_of(plain), machine, counter, opt, timeout, progress))
        del unfused["groups"], unfused["outside_groups"]
    return plan_envelope(plan) | {
        "warnings": [*plan.warnings, *warning],
        "emulator": f"{machine.name} {machine.version}".strip(),
        "compiler": measured.firmware.compiler,
        "compiler_opt": measured.firmware.opt,
        **profile_json(measured),
        "unfused": unfused,
    }


def _measure(
    plan: Plan, tree: Tree | None, machine: Emulator, counter: Path | None, opt: str, timeout: float, progress: Progress
) -> Measured:
    name, core = plan.options.name, plan.context.target
    inputs = input_set(plan.source, _INPUTS, 0)[:2]
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work = Path(folder)
        progress(f"compiling for {core.name}, --fusion {plan.options.fusion}")
        firmware = build_module(plan, tree, inputs, machine.name, opt, work)
        check_flash(plan, firmware.code_bytes)
        progress(f"running it on {machine.name}")
        if counter is None or not isinstance(machine, Qemu):
            return Measured(plan, firmware, machine.run(firmware, timeout), None, None)
        source = (work / "module" / f"{name}.c").read_text()
        image = read_image(firmware.elf, name, source, plan.arena_bytes, core.mve)
        outcome, counts = run_counted(machine, firmware, image, counter, timeout)
        times = timing(core.cpu)
        return Measured(plan, firmware, outcome, measure(counts, image, times), times.source if times else None)
