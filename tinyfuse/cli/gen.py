"""`tinyfuse gen`: writes the module's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from tinyfuse.api.measured_choice import measured_lines
from tinyfuse.api.results import Verification
from tinyfuse.api.writing import bundled_files, module_files
from tinyfuse.cli.files import FileCommand, OutputFile, OutputFolder
from tinyfuse.cli.flags import generation_flags
from tinyfuse.cli.machine import choose_machine
from tinyfuse.cli.measured import measure_flag, measured_request
from tinyfuse.cli.planning import make_plan, plan_json
from tinyfuse.cli.request import Request, command_line
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.emit.depfile import depfile_text
from tinyfuse.emit.forms import FORMS, PLAIN, Delivery, make_delivery
from tinyfuse.emit.forms.base import About
from tinyfuse.emit.manifest import MANIFEST, digest
from tinyfuse.emit.output_folder import check_writable, write_file, write_folder
from tinyfuse.errors import UsageError
from tinyfuse.evidence.folder import evidence_files
from tinyfuse.evidence.tables import evidence_tables
from tinyfuse.options import VerifyOptions
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.report.text import summary_lines
from tinyfuse.report.wrapping import wrap_text
from tinyfuse.toolchain.cmsis_nn import Tree

_EXAMPLES = """\b
Examples:
  tinyfuse gen kws.tflite --target cortex-m4
  tinyfuse gen kws.tflite --target cortex-m55 -o third_party/kws --bundle
  tinyfuse gen kws.tflite --target cortex-m33 --format zephyr -o modules/kws
  tinyfuse gen kws.tflite --target generic32 --format arduino --format platformio --about version=1.2.0
  tinyfuse gen project.cbuild-mlops.yml               the layer that CMSIS-Toolbox requests
  tinyfuse gen float.tflite --target cortex-m4 --quantize-with x.npy
  tinyfuse gen kws.tflite --target cortex-m4 --measure           runs up to three plans in QEMU, and takes the best
  tinyfuse gen kws.tflite --target cortex-m4 --max-ram 20K --json | jq .arena_bytes
"""


#: other names of build systems -> advice
_OTHER_BUILDS = {
    **dict.fromkeys(("keil", "mdk", "uvision", "iar", "ewarm"),
                    "give cmsis-pack, a pack that it installs, or csolution, for projects of Keil Studio and cbuild"),
    **dict.fromkeys(("stm32cubeide", "cubeide", "stm32cube", "eclipse", "mcuxpresso", "e2studio", "ccs", "simplicity"),
                    "leave it out: the folder of C goes into the project as a source folder and an include path"),
    **dict.fromkeys(("nrf-connect", "nrfconnect", "ncs", "west"), "give zephyr"),
    **dict.fromkeys(("espidf", "idf", "esp32"), "give esp-idf"),
    **dict.fromkeys(("makefile", "gnumake"), "give make"),
    **dict.fromkeys(("pio", "platform-io"), "give platformio"),
}  # fmt: skip


class _Form(click.Choice[str]):
    """Type of the flag --format. For the name of another build system, its error tells which format serves it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        way = _OTHER_BUILDS.get(str(value).lower().replace("_", "-"))
        if way is not None:
            self.fail(f"{value!r} is not a value of --format: {way} (docs/firmware-projects.md)", param, ctx)
        return super().convert(value, param, ctx)


@click.command("gen", cls=FileCommand, epilog=_EXAMPLES)
@generation_flags
@click.option("-o", "--output", type=OutputFolder(), metavar="DIR", help="Output folder.  [default: NAME_tinyfuse]")
@click.option("--bundle", is_flag=True, help="Also copy the CMSIS-NN files that the code needs, with their licence.")
@click.option(
    "--selftest",
    is_flag=True,
    help="Also generate NAME_selftest(), which runs a built-in input and compares a checksum of the outputs, so that "
    "the firmware can check itself on the board.",
)
@click.option(
    "--board",
    is_flag=True,
    help="Also generate NAME_board.c, which answers `tinyfuse board validate` over a serial line. The module then "
    "counts the cycles of each group of operators (docs/board.md).",
)
@click.option(
    "--format",
    "formats",
    type=_Form(tuple(FORMS)),
    multiple=True,
    help="Also write the files that a build system or package manager needs (docs/forms.md), with README and licence. "
    "Repeat it for several.  [default: only CMakeLists.txt]",
)
@click.option(
    "--about",
    metavar="KEY=VALUE",
    multiple=True,
    help=f"Metadata for the packages of --format; KEY is {', '.join(each.name for each in fields(About))}. Repeat it "
    "for several.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Write even into a folder that tinyfuse did not make, and over files that somebody edited.",
)
@click.option(
    "--evidence",
    type=OutputFolder(),
    metavar="DIR",
    help="Also verify the module thoroughly, and write evidence for a safety file: traceability, bounds, results "
    "(docs/safety.md).",
)
@measure_flag
@click.option(
    "--depfile",
    type=OutputFile(),
    metavar="FILE",
    help="Also write a dependency file for Make and Ninja. Its target is DIR/manifest.json, which every run writes.",
)
def command(
    request: Request, as_json: bool, output: str | None, bundle: bool, selftest: bool, board: bool, force: bool,
    depfile: str | None, formats: tuple[str, ...], about: tuple[str, ...], evidence: str | None, measure: bool,
) -> int:  # fmt: skip
    """Write the C code of MODEL into a folder, and print its RAM, flash and predicted instructions."""
    layer = None
    if request.layer is not None:
        formats, layer = (*formats, "csolution"), request.layer.name
        output = str(request.layer.parent) if output is None else output
    delivery = make_delivery(formats, _keys_and_values(about), layer, board)
    answer = generate(request, output, bundle, force, progress, selftest, depfile, delivery, evidence, measure)
    return show(answer, as_json)


def _keys_and_values(about: tuple[str, ...]) -> dict[str, str]:
    for word in about:
        if "=" not in word:
            raise UsageError(f"--about {word!a}: write KEY=VALUE")
    return dict(word.split("=", 1) for word in about)


def generate(
    request: Request, output: str | None, bundle: bool, force: bool, progress: Progress, selftest: bool = False,
    depfile: str | None = None, delivery: Delivery = PLAIN, evidence: str | None = None,
    measure: bool = False,
) -> Answer:  # fmt: skip
    """Writes the module's folder, and then its depfile and the folder of its evidence. Raises DoesNotFit, before
    anything is written, if a limit is exceeded. `measure`: chooses the plan by measurements (cli/measured.py)."""
    if output == "":
        raise UsageError("-o '' names no folder; leave it out for NAME_tinyfuse")
    folder = Path(f"{request.options.name}_tinyfuse" if output is None else output)
    if depfile is not None:
        check_writable(Path(depfile), folder)
    request, measured = measured_request(request, progress) if measure else (request, None)
    plan, tree = make_plan(request, progress, needs_tree=bundle or evidence is not None)
    data = plan_envelope(plan) | plan_json(plan, tree, progress, request.device)
    bundled = bundled_files(plan, tree if bundle else None)
    files = module_files(plan, data["unfused_arena_bytes"], bundled, selftest, delivery)
    # everything that may be refused is checked before anything is written
    rules = None if depfile is None else _depfile(request, folder, bundled.values())
    found = None if evidence is None else _verify(plan, tree, request, progress)
    progress(f"writing {folder}")
    write_folder(folder, files, force)
    if depfile is not None and rules is not None:
        write_file(Path(depfile), rules)
    if evidence is not None and found is not None:
        write_folder(Path(evidence), evidence_files(evidence_tables(plan, data, files, found)), force)
    hashes = {name: digest(data) for name, data in sorted(files.items())}
    lines = [f"{folder}: {len(files)} files for {plan.context.target.name}", *summary_lines(data)]
    if measured is not None:
        lines += measured_lines(measured, plan.options.count)
    for warning in plan.warnings:
        lines += wrap_text(f"warning: {warning}", "  ")
    if found is not None:
        lines.append(f"{evidence}: evidence; verified {len(found.builds)} builds, {found.mismatches:,} elements differ")
    if request.layer is None:  # CMSIS-Toolbox needs no advice
        lines.append(f"next: {command_line('verify', request)}")
        if "CMakeLists.txt" in files:
            lines.append(f'or in your CMakeLists.txt: add_subdirectory("{folder.as_posix()}")')
    data |= {"output": str(folder), "files": hashes, "evidence": evidence, "measured": measured}
    return Answer(data, lines, exact=found is None or found.within_bound)


def _verify(plan: Plan, tree: Tree | None, request: Request, progress: Progress) -> Verification:
    """Thorough verification of a plan. ToolMissing without compilers, emulator or oracle."""
    from tinyfuse.api.measuring import verify_plan  # numpy's and the emulators' modules take time to load

    machine, _, _ = choose_machine(request, "auto", "gcc")
    return verify_plan(plan, tree, request.data, machine, VerifyOptions(thorough=True), progress)


def _data_files(request: Request) -> Iterator[Path]:
    """The files of the calibration data."""
    for given in request.quantize_with:
        _, equals, after = given.partition("=")
        path = Path(after if equals and not Path(given).exists() else given)
        yield from sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]


def _depfile(request: Request, folder: Path, bundled: Iterable[Path]) -> str:
    front = [request.front_end] if request.front_end else []
    sources = [*map(Path, (request.model, *front, *request.plugins, *request.labels)), *_data_files(request), *bundled]
    return depfile_text(folder / MANIFEST, sources)
