"""What `tinyfuse profile` does, without printing."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from tinyfuse.cli import commands
from tinyfuse.cli.commands import Progress, Request
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.profile.cycles import timing
from tinyfuse.profile.image import read_image
from tinyfuse.profile.measure import measure
from tinyfuse.profile.plugin import build_plugin, run_counted
from tinyfuse.profile.profile_json import Measured, profile_json
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import Emulator, find_emulator
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.qemu import Qemu

#: `verify` without options measures the second of this many inputs
_INPUTS = 8


def profile(request: Request, progress: Progress, emulator: str, opt: str, timeout: float) -> dict:
    """The JSON of docs/json.md. ToolMissing without compiler, emulator or CMSIS-NN; EmulationFailed
    where the firmware crashed or hung; UsageError for a target that no emulator runs.

    Without a compiler for the host's plugin, and on Renode, what needs single instructions is None.
    """
    target = load_target(request.target)
    if target.cpu is None:
        raise UsageError("profile counts on an emulated core; give a --target of `tinyfuse targets` other than host")
    if request.feed_rows:
        raise UsageError("profile measures NAME_run, which a module with --feed-rows does not have; leave it out")
    machine = find_emulator(emulator, target)
    plugin, warning = None, []
    if isinstance(machine, Qemu):
        try:
            plugin = build_plugin()
        except ToolMissing as missing:
            warning = [f"only totals were counted: {missing}"]
    else:
        warning = [f"only totals were counted: {machine.name} has no counter of single instructions"]
    measured = _measure(request, progress, machine, plugin, opt, timeout)
    unfused = None
    if request.fusion != "none":
        plain = replace(request, fusion="none", max_ram=None, max_flash=None)
        unfused = profile_json(_measure(plain, progress, machine, plugin, opt, timeout))
        del unfused["groups"], unfused["outside_groups"]
    return plan_envelope(measured.plan) | {
        "warnings": [*measured.plan.warnings, *warning],
        "emulator": f"{machine.name} {machine.version}".strip(),
        "compiler": measured.firmware.compiler,
        "compiler_opt": measured.firmware.opt,
        **profile_json(measured),
        "unfused": unfused,
    }


def _measure(
    request: Request, progress: Progress, machine: Emulator, plugin: Path | None, opt: str, timeout: float
) -> Measured:
    plan, tree = commands.make_plan(request, progress, needs_tree=True)
    name, core = plan.options.name, plan.context.target
    inputs = input_set(plan.source, _INPUTS, 0)[:2]
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work = Path(folder)
        progress(f"compiling for {core.name}, --fusion {request.fusion}")
        firmware = build_module(plan, tree, inputs, machine.name, opt, work)
        commands.check_flash(plan, firmware.code_bytes)
        progress(f"running it on {machine.name}")
        if plugin is None or not isinstance(machine, Qemu):
            return Measured(plan, firmware, machine.run(firmware, timeout), None, None)
        source = (work / "module" / f"{name}.c").read_text()
        image = read_image(firmware.elf, name, source, plan.arena_bytes, core.mve)
        outcome, counts = run_counted(machine, firmware, image, plugin, timeout)
        times = timing(core.cpu)
        counted = measure(counts, image, times)
        return Measured(plan, firmware, outcome, counted, times.source if times else None)
