"""`tinyfuse profile`: where the instructions of an inference go."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console

from tinyfuse.cli.flags import flags_of, generation_flags
from tinyfuse.cli.planning import check_flash, make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.options import ProfileOptions
from tinyfuse.profile.cycles import timing
from tinyfuse.profile.image import read_image
from tinyfuse.profile.measure import measure
from tinyfuse.profile.picture import profile_svg
from tinyfuse.profile.plugin import build_plugin, run_counted
from tinyfuse.profile.profile_json import Measured, profile_json
from tinyfuse.profile.text import profile_text
from tinyfuse.report.report_json import Facts, plan_envelope
from tinyfuse.schedule.progress import Progress
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import Emulator, find_emulator
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.qemu import Qemu

#: `verify` without options measures the second of this many inputs
_INPUTS = 8


_EXAMPLES = """\b
Examples:
  tinyfuse profile kws.tflite --target cortex-m4
  tinyfuse profile kws.tflite --target cortex-m55 --svg kws.svg
  tinyfuse profile kws.tflite --target cortex-m4 --json | jq .groups[0].operators
"""


@click.command("profile", epilog=_EXAMPLES)
@generation_flags
@flags_of(ProfileOptions)
@click.option("--svg", type=click.Path(), metavar="FILE", help="Also draw it, for a README.")
def command(request: Request, as_json: bool, how: ProfileOptions, svg: str | None) -> int:
    """Say where the instructions and bytes of one inference go: by group, operator and function.

    Measures the inference that `verify` measures, beside the --fusion none build. Cycles are an
    estimate from the core's published timings.
    """
    data = profile(request, progress, how)
    if svg:
        write_file(Path(svg), profile_svg(data))
    if as_json:
        return show(Answer(data, []), as_json)
    console = Console(highlight=False)
    console.print(profile_text(data, console.width))
    return 0


def profile(request: Request, progress: Progress, how: ProfileOptions) -> Facts:
    """The JSON of docs/json.md. ToolMissing without compiler, emulator or CMSIS-NN; EmulationFailed
    where the firmware crashed or hung; UsageError for a target that no emulator runs.

    Without a compiler for the host's plugin, and on Renode, what needs single instructions is None.
    """
    target = load_target(request.target)
    if target.cpu is None:
        raise UsageError("profile counts on an emulated core; give a --target of `tinyfuse targets` other than host")
    if request.options.feed_rows:
        raise UsageError("profile measures NAME_run, which a module with --feed-rows does not have; leave it out")
    machine = find_emulator(how.emulator, target)
    plugin, warning = None, []
    if isinstance(machine, Qemu):
        try:
            plugin = build_plugin()
        except ToolMissing as missing:
            warning = [f"only totals were counted: {missing}"]
    else:
        warning = [f"only totals were counted: {machine.name} has no counter of single instructions"]
    measured = _measure(request, progress, machine, plugin, how)
    unfused = None
    if request.options.fusion != "none":
        plain = request.but(fusion="none", max_ram=None, max_flash=None)
        unfused = profile_json(_measure(plain, progress, machine, plugin, how))
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
    request: Request, progress: Progress, machine: Emulator, plugin: Path | None, how: ProfileOptions
) -> Measured:
    plan, tree = make_plan(request, progress, needs_tree=True)
    name, core = plan.options.name, plan.context.target
    inputs = input_set(plan.source, _INPUTS, 0)[:2]
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work = Path(folder)
        progress(f"compiling for {core.name}, --fusion {plan.options.fusion}")
        firmware = build_module(plan, tree, inputs, machine.name, how.compiler_opt, work)
        check_flash(plan, firmware.code_bytes)
        progress(f"running it on {machine.name}")
        if plugin is None or not isinstance(machine, Qemu):
            return Measured(plan, firmware, machine.run(firmware, how.timeout), None, None)
        source = (work / "module" / f"{name}.c").read_text()
        image = read_image(firmware.elf, name, source, plan.arena_bytes, core.mve)
        outcome, counts = run_counted(machine, firmware, image, plugin, how.timeout)
        times = timing(core.cpu)
        counted = measure(counts, image, times)
        return Measured(plan, firmware, outcome, counted, times.source if times else None)
