"""The command line: every command is a file beside this one. Only this package prints, and only
emit/output_folder.py writes."""

from __future__ import annotations

import click

from tinyfuse import __version__
from tinyfuse.cli import (
    cmsis_nn,
    devices,
    doctor,
    explain,
    front_end,
    gen,
    operators,
    profile,
    report,
    run,
    targets,
    verify,
)
from tinyfuse.cli.terminal import Ending
from tinyfuse.resources import PACKAGE

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
3 a tool is missing; 4 the emulated run crashed or timed out; 5 a fault of tinyfuse itself.
"""


@click.group(cls=Ending, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tinyfuse", message="%(prog)s %(version)s")
def main() -> None:
    """Turns a quantized TensorFlow Lite model into C for Cortex-M: fused, exact, no interpreter."""


for module in (gen, report, explain, verify, run, profile, targets, operators, front_end, devices, cmsis_nn, doctor):
    main.add_command(module.command)


@main.command("cmake-dir", hidden=True)
def cmake_dir() -> None:
    """Print the folder of tinyfuse.cmake, for include() in a CMakeLists.txt."""
    click.echo(PACKAGE / "cmake")
