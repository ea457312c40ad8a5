"""`tinyfuse profile`: counts the instructions of an inference by operator."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from tinyfuse.api.profiling import Planned, find_counting, profile_plan
from tinyfuse.cli.board_costs import read_validation
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import add_flags, generation_flags
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.emit.output_folder import write_file
from tinyfuse.options import ProfileOptions
from tinyfuse.profile.picture import profile_svg
from tinyfuse.profile.profile_json import add_board_cycles
from tinyfuse.profile.text import profile_text
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.targets import load_target

_EXAMPLES = """\b
Examples:
  tinyfuse profile kws.tflite --target cortex-m4
  tinyfuse profile kws.tflite --target cortex-m55 --svg kws.svg
  tinyfuse profile kws.tflite --target cortex-m4 --json | jq .groups[0].operators
  tinyfuse profile kws.tflite --target cortex-m4 --board kws.json     kws.json: from board validate --json
"""


@click.command("profile", cls=FileCommand, epilog=_EXAMPLES)
@generation_flags
@add_flags(ProfileOptions)
@click.option("--svg", type=OutputFile(), metavar="FILE", help="Also draw the profile as a picture.")
@click.option(
    "--board",
    type=click.Path(),
    metavar="FILE",
    help="Also show the cycles that a board counted. FILE is the output of `tinyfuse board validate --json` with the "
    "same options.",
)
def command(request: Request, as_json: bool, how: ProfileOptions, svg: str | None, board: str | None) -> int:
    """Count the instructions and the bytes read and written of one inference, by group, operator and function, on an
    emulated core. A build with --fusion none is counted too, for comparison. Cycles are estimated from the core's
    published instruction timings.
    """
    answer = None if board is None else read_validation(board)
    data = profile(request, progress, how)
    if board is not None and answer is not None:
        data = add_board_cycles(data, answer, board)
    if svg:
        write_file(Path(svg), profile_svg(data))
    if as_json:
        return show(Answer(data, []), as_json)
    console = Console(highlight=False)
    console.print(profile_text(data, console.width))
    return 0


def profile(request: Request, progress: Progress, how: ProfileOptions) -> JsonObject:
    """Profiles a model, and returns JSON (docs/json.md).

    ToolMissing without compiler, emulator or CMSIS-NN; EmulationFailed if the firmware crashed or hung; UsageError for
    a target that no emulator runs. Without a compiler for the host's plugin, and on Renode, figures that need counts of
    single instructions are None.
    """
    counting = find_counting(load_target(request.target), request.options.feeds_image, how.emulator, how.compiler)

    def planned(request: Request) -> Planned:
        return make_plan(request, progress, needs_tree=True)

    plain = request.replace(fusion="none", max_ram=None, max_step=None, max_flash=None, memory=())
    return profile_plan(planned(request), lambda: planned(plain), counting, how, progress)
