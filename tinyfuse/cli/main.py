"""The command line: arguments, and what is shown of results. Only this package prints, and only
emit/output_folder.py writes."""

from __future__ import annotations

import functools
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from tinyfuse import __version__
from tinyfuse.cli import commands
from tinyfuse.cli.terminal import Ending, print_json, progress
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.options import CMSIS_NN_VERSIONS, COMPILER_OPTS, FUSION, KERNELS, OPTIMIZE, WEIGHTS
from tinyfuse.plugin import plugins
from tinyfuse.resources import PACKAGE
from tinyfuse.targets import all_targets

_EXAMPLES = """\b
Examples:
  tinyfuse gen model.tflite --target cortex-m4          C in ./model_tinyfuse
  tinyfuse gen model.tflite --target cortex-m4 -o src/net --name net --force
  tinyfuse report model.tflite --target cortex-m4       RAM and flash, nothing written
  tinyfuse verify model.tflite --target cortex-m4       proves it on an emulated core
  tinyfuse verify model.tflite --target cortex-m55 --runs 20 --json
  tinyfuse profile model.tflite --target cortex-m4      where the instructions go
  tinyfuse run model.tflite --target cortex-m4 --input x.npy

\b
Exit codes: 0 well; 1 differs, or does not fit; 2 usage, bad or unsupported model;
3 a tool is missing; 4 the emulated run crashed or timed out.
"""


@click.group(cls=Ending, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tinyfuse", message="%(prog)s %(version)s")
def main() -> None:
    """Turns a quantized TensorFlow Lite model into C for Cortex-M: fused, exact, no interpreter."""


def generation_options(command):
    """The arguments that `gen`, `report`, `verify` and `profile` share: all that changes the code."""

    @click.argument("model", type=click.Path())
    @click.option("--target", metavar="T", help="A core of `tinyfuse targets`.")
    @click.option(
        "--device",
        metavar="NAME",
        help="A microcontroller in the target's place: core, and limits of RAM and flash, from CMSIS-Packs.",
    )
    @click.option("--name", metavar="NAME", help="Prefix of the C names; default: the model file's name.")
    @click.option(
        "--kernels",
        type=click.Choice(KERNELS),
        default="auto",
        show_default=True,
        help="auto: the faster one; cmsis-nn: wherever it has one; tinyfuse: ours alone.",
    )
    @click.option(
        "--fusion",
        type=click.Choice(FUSION),
        default="rows",
        show_default=True,
        help="none: an operator a step; basic: activations, padding, batch normalization; "
        "rows: groups that stream rows.",
    )
    @click.option(
        "--optimize",
        type=click.Choice(OPTIMIZE),
        default="balanced",
        show_default=True,
        help="With --fusion rows: speed: the fewest instructions that --max-ram allows; ram: the least "
        "RAM; balanced: the least RAM within 7 % of the fewest instructions. With --kernels cmsis-nn, balanced "
        "and ram fuse every depthwise and pointwise pair.",
    )
    @click.option(
        "--weights",
        type=click.Choice(WEIGHTS),
        default="packed",
        show_default=True,
        help="unpacked: int16 in flash, twice the bytes and fewer instructions on cores with DSP extension.",
    )
    @click.option(
        "--feed-rows",
        is_flag=True,
        help="Generate NAME_begin, NAME_feed_rows and NAME_finish: the input image is never whole.",
    )
    @click.option(
        "--plugin",
        "plugins",
        type=click.Path(),
        multiple=True,
        metavar="FILE",
        help="Python that adds operators and patterns (docs/plugins.md); it is run.",
    )
    @click.option(
        "--cmsis-nn-version",
        type=click.Choice(list(CMSIS_NN_VERSIONS)),
        default=None,
        help="The API of CMSIS-NN that the code calls.  [default: 7.0, or that of the tree "
        "that verify and --bundle find]",
    )
    @click.option(
        "--cmsis-nn",
        "cmsis_nn_path",
        metavar="PATH",
        type=click.Path(),
        help="A CMSIS-NN source tree; else CMSIS_NN_PATH, the pack cache, PyPI's bakenn.",
    )
    @click.option("--max-ram", metavar="SIZE", help="Fail when arena and state are larger: 65536, 64K, 1M.")
    @click.option("--max-flash", metavar="SIZE", help="Fail when weights and code are larger.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON alone on stdout (docs/json.md).")
    @functools.wraps(command)
    def wrapped(*args, device, **kwargs):
        _take_device(device, kwargs)
        request = commands.Request(**{field: kwargs.pop(field) for field in commands.REQUEST_FIELDS})
        with plugins(request.plugins):
            return command(request, *args, **kwargs)

    return wrapped


def _take_device(name: str | None, arguments: dict) -> None:
    """What a device stands for goes into the arguments: target, and limits that were not given."""
    if name is None:
        if arguments["target"] is None:
            raise UsageError("Missing option '--target' (or '--device')")
        return
    if arguments["target"] is not None:
        raise UsageError("give --target or --device, not both")
    from tinyfuse.toolchain.devices import find_device

    device = find_device(name, progress)
    if not arguments["as_json"]:
        click.echo(device, err=True)
    arguments["target"] = device.target
    for option, limit in (("max_ram", device.ram), ("max_flash", device.flash)):
        if arguments[option] is None and limit:
            arguments[option] = str(limit)


#: of the commands that compile the module
compiler_opt = click.option(
    "--compiler-opt",
    "opt",
    type=click.Choice(COMPILER_OPTS),
    default="O2",
    show_default=True,
    help="The compiler's optimization level. On the host it is O1; CMSIS-NN has O1 at least.",
)


@main.command(
    epilog="""\b
Examples:
  tinyfuse gen kws.tflite --target cortex-m4
  tinyfuse gen kws.tflite --target cortex-m55 -o third_party/kws --bundle
  tinyfuse gen kws.tflite --target cortex-m4 --max-ram 20K --json | jq .arena_bytes
"""
)
@generation_options
@click.option("-o", "--output", type=click.Path(), metavar="DIR", help="Output folder; default: NAME_tinyfuse.")
@click.option("--bundle", is_flag=True, help="Copy the CMSIS-NN files it needs, with their licence.")
@click.option(
    "--selftest", is_flag=True, help="Embed an input and its outputs' checksum: NAME_selftest(), for the real board."
)
@click.option(
    "--force", is_flag=True, help="Write into a folder that tinyfuse did not make, and over files changed since."
)
@click.option(
    "--depfile",
    type=click.Path(),
    metavar="FILE",
    help="Also write what DIR/manifest.json, which every run replaces, depends on: for Make and Ninja.",
)
def gen(request, as_json, output, bundle, selftest, force, depfile):
    """Generate the C module of MODEL, and print a short report."""
    result = commands.generate(request, output, bundle, force, progress, selftest, depfile)
    if as_json:
        return print_json(result.data)
    for line in result.lines:
        click.echo(line)
    return 0


@main.command(
    epilog="""\b
Examples:
  tinyfuse report kws.tflite --target cortex-m4
  tinyfuse report kws.tflite --target cortex-m4 --fusion none --json
  tinyfuse report kws.tflite --target cortex-m4 --pareto
  tinyfuse report kws.tflite --target cortex-m4 --svg arena.svg --rows-svg rows.svg
"""
)
@generation_options
@click.option(
    "--pareto",
    is_flag=True,
    help="Also every plan that no other one beats in both RAM and instructions, and what --optimize takes.",
)
@click.option("--svg", type=click.Path(), metavar="FILE", help="Also draw the arena.")
@click.option("--rows-svg", type=click.Path(), metavar="FILE", help="Also draw how the largest group streams rows.")
def report(request, as_json, pareto, svg, rows_svg):
    """Say what MODEL will cost: arena, flash, MACs, groups; writes nothing but pictures."""
    from tinyfuse.arena.svg import arena_svg
    from tinyfuse.emit.output_folder import write_file
    from tinyfuse.report import rows_svg as rows_picture

    result = commands.report(request, progress=progress, pareto=pareto)
    plan = result.plan
    if svg:
        write_file(Path(svg), arena_svg(plan.buffers, plan.placement, plan.arena_bytes, plan.arena_lower_bound))
    if rows_svg:
        write_file(Path(rows_svg), rows_picture.rows_svg(plan))
    if as_json:
        return print_json(result.data)
    click.echo(result.text, nl=False)
    return 0


@main.command(
    epilog="""\b
Examples:
  tinyfuse explain kws.tflite --target cortex-m4
  tinyfuse explain kws.tflite --target cortex-m55 --optimize ram --json
"""
)
@generation_options
def explain(request, as_json):
    """Say why the plan of MODEL is as it is: each fusion taken or refused, with predicted costs both
    ways, and what the model's author could change."""
    result = commands.explain(request, progress=progress)
    if as_json:
        return print_json(result.data)
    click.echo(result.text, nl=False)
    return 0


@main.command(
    epilog="""\b
Examples:
  tinyfuse verify kws.tflite --target cortex-m4
  tinyfuse verify kws.tflite --target cortex-m4 --kernels cmsis-nn --runs 20 --seed 7
  tinyfuse verify kws.tflite --target cortex-m4 --emulator host
"""
)
@generation_options
@click.option(
    "--emulator",
    type=click.Choice(["auto", "renode", "qemu", "host"]),
    default="auto",
    show_default=True,
    help="Where the firmware runs; auto: QEMU, else Renode (RENODE_PATH may name it); host: natively, under "
    "sanitizers.",
)
@click.option(
    "--oracle",
    type=click.Choice(["auto", "tflm", "litert", "reference"]),
    default="auto",
    show_default=True,
    help="Who says what is right.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 10000),
    default=None,
    help="Inputs: all-min, all-max, all-zero-point, then random ones.  [default: 8; 64 for a model "
    "with state; four times as many where an output stays the same in those]",
)
@click.option(
    "--frames",
    type=click.IntRange(1),
    default=None,
    help="Runs from one reset of the state to the next.  [default: a quarter of --runs]",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random inputs.")
@compiler_opt
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Host time that the emulated run may take.",
)
def verify(request, as_json, **options):
    """Prove on an emulated core that the module computes what TensorFlow Lite Micro computes."""
    result = commands.verify(request, progress=progress, **options)
    if as_json:
        print_json(result.data)
    else:
        for line in result.lines:
            click.echo(line)
    return 0 if result.exact else 1


@main.command(
    epilog="""\b
Examples:
  tinyfuse run kws.tflite --target cortex-m4 --input x.npy --output y.npy
  tinyfuse run kws.tflite --target cortex-m4 --input audio=a.npy --input state=s.npy --output y.npz

\b
x.npy has the input's shape, or [runs, ...] for several inferences (the frames of a stream). Integers are taken as they are;
floats for an integer input are real values, and are quantized with the model's parameters.
"""
)
@generation_options
@click.option(
    "--input",
    "inputs",
    multiple=True,
    required=True,
    metavar="[NAME=]FILE",
    help="A .npy, or a .npz with an array for each input; repeat it for several inputs.",
)
@click.option("--output", type=click.Path(), metavar="FILE", help="Write the outputs: a .npy, or a .npz by name.")
@click.option(
    "--emulator",
    type=click.Choice(["auto", "renode", "qemu", "host"]),
    default="auto",
    show_default=True,
    help="Where the firmware runs; auto: QEMU, else Renode (RENODE_PATH may name it); host: natively, under "
    "sanitizers.",
)
@compiler_opt
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Host time that the emulated run may take.",
)
def run(request, as_json, inputs, output, **options):
    """Compute MODEL's outputs for your own inputs, with the generated code on an emulated core."""
    from tinyfuse.cli.run import run as run_module

    result = run_module(request, inputs, output, progress, **options)
    if as_json:
        return print_json(result.data)
    for line in result.lines:
        click.echo(line)
    return 0


@main.command(
    epilog="""\b
Examples:
  tinyfuse profile kws.tflite --target cortex-m4
  tinyfuse profile kws.tflite --target cortex-m55 --svg kws.svg
  tinyfuse profile kws.tflite --target cortex-m4 --json | jq .groups[0].operators
"""
)
@generation_options
@click.option(
    "--emulator",
    type=click.Choice(["auto", "qemu", "renode"]),
    default="auto",
    show_default=True,
    help="QEMU counts everything, Renode the total alone.",
)
@compiler_opt
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Host time that each emulated run may take.",
)
@click.option("--svg", type=click.Path(), metavar="FILE", help="Also draw it, for a README.")
def profile(request, as_json, svg, **options):
    """Say where the instructions and bytes of one inference go: by group, operator and function.

    Measures the inference that `verify` measures, beside the --fusion none build. Cycles are an
    estimate from the core's published timings.
    """
    from tinyfuse.cli.profile import profile as measure
    from tinyfuse.emit.output_folder import write_file
    from tinyfuse.profile.picture import profile_svg
    from tinyfuse.profile.text import profile_text

    data = measure(request, progress, **options)
    if svg:
        write_file(Path(svg), profile_svg(data))
    if as_json:
        return print_json(data)
    console = Console(highlight=False)
    console.print(profile_text(data, console.width))
    return 0


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone.")
def targets(as_json):
    """List the cores that code can be generated for."""
    known = all_targets()
    if as_json:
        return print_json(
            {
                "schema_version": 1,
                "tinyfuse_version": __version__,
                "targets": [asdict(t) for t in known.values()],
            }
        )
    width = max(map(len, known))
    for target in known.values():
        click.echo(f"{target.name:<{width}}  {target.description}")
    return 0


@main.command(
    epilog="""\b
Examples:
  tinyfuse operators
  tinyfuse operators CONV_2D ADD
  tinyfuse operators --json | jq .operators[].kind
"""
)
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone (docs/json.md).")
def operators(kinds, as_json):
    """List the operators that a model may have; of each KIND the rules, kernels and tested cases."""
    from tinyfuse.report.operators import operator_lines, operators_json, operators_lines

    data = operators_json()
    if kinds:
        known = {operator["kind"]: operator for operator in data["operators"]}
        unknown = [kind for kind in kinds if kind.upper() not in known]
        if unknown:
            raise UsageError(f"{', '.join(unknown)}: no supported operator; `tinyfuse operators` lists them")
        data["operators"] = [known[kind.upper()] for kind in kinds]
    if as_json:
        return print_json(data)
    shown = (
        operators_lines(data)
        if not kinds
        else [line for operator in data["operators"] for line in operator_lines(operator)]
    )
    for line in shown:
        click.echo(line)
    return 0


@main.command()
@click.argument("part", default="")
@click.option("--update", is_flag=True, help="Download newer data first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone.")
def devices(part, update, as_json):
    """List the microcontrollers whose name begins with PART, for --device.

    From the CMSIS-Pack data in cmsis-pack-manager's cache; it is downloaded where there is none.
    """
    from tinyfuse.toolchain.devices import all_devices

    found = all_devices(part, progress, update)
    if as_json:
        told = [asdict(device) for device in found]
        return print_json({"schema_version": 1, "tinyfuse_version": __version__, "devices": told})
    for device in found:
        click.echo(device)
    return 0


@main.group("cmsis-nn")
def cmsis_nn_group() -> None:
    """Find or install CMSIS-NN's sources, which verify and gen --bundle need."""


@cmsis_nn_group.command("where")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone.")
def cmsis_nn_where(as_json):
    """Say which CMSIS-NN is used without --cmsis-nn, its version, and what it lacks."""
    from tinyfuse.toolchain import cmsis_nn

    tree = cmsis_nn.find_cmsis_nn(None)
    if tree is None:
        raise ToolMissing("CMSIS-NN", cmsis_nn.HOW_TO_GET)
    return _show_tree(tree, as_json)


@cmsis_nn_group.command("install")
@click.option("--version", metavar="X.Y", help="4.0 to 7.0; default: the latest.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone.")
def cmsis_nn_install(version, as_json):
    """Download Arm's CMSIS-Pack of CMSIS-NN, through cmsis-pack-manager."""
    from tinyfuse.toolchain.cmsis_nn.install import install

    return _show_tree(install(version, progress), as_json)


def _show_tree(tree, as_json: bool) -> int:
    data = commands.tree_json(tree)
    if as_json:
        return print_json(data)
    click.echo(f"CMSIS-NN {data['version']} at {data['path']} ({data['found_by']})")
    if data["lacks"]:
        click.echo(f"it lacks {', '.join(data['lacks'])}: other kernels take their place")
    return 0


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone.")
def doctor(as_json):
    """Say which tools are here, where and which version, and how to get what is missing.

    Exit code 3 where `verify` can't work.
    """
    from tinyfuse.cli.doctor import doctor_lines, examine

    checks = examine()
    if as_json:
        told = [asdict(check) | {"good": check.good} for check in checks]
        print_json({"schema_version": 1, "tinyfuse_version": __version__, "checks": told})
    else:
        for line in doctor_lines(checks):
            click.echo(line)
    return 0 if all(check.good for check in checks if check.required) else 3


@main.command("cmake-dir", hidden=True)
def cmake_dir():
    """Print the folder of tinyfuse.cmake, for include() in a CMakeLists.txt."""
    click.echo(PACKAGE / "cmake")
