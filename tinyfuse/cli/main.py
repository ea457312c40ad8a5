"""The command line: one file per command beside this one. Only this package prints, and only emit/output_folder.py
writes."""

from __future__ import annotations

from collections import UserDict

import click

from tinyfuse import __version__
from tinyfuse.cli.terminal import ErrorReportingGroup
from tinyfuse.resources import PACKAGE

_EXAMPLES = """\b
Examples:
  tinyfuse gen model.tflite --target cortex-m4          writes C to ./model_tinyfuse
  tinyfuse gen model.tflite --target cortex-m4 -o src/net --name net --force
  tinyfuse report model.tflite --target cortex-m4       prints RAM and flash, writes nothing
  tinyfuse verify model.tflite --target cortex-m4       compares all output bits on an emulated core
  tinyfuse verify model.tflite --target cortex-m55 --runs 20 --json
  tinyfuse profile model.tflite --target cortex-m4      counts the instructions of each operator
  tinyfuse run model.tflite --target cortex-m4 --input x.npy
  tinyfuse board validate model.tflite --target cortex-m4 --port /dev/ttyACM0

\b
Exit codes:
  0  success
  1  outputs differ or cannot be proven equal, or a limit such as --max-ram is exceeded
  2  wrong usage, or a model that is damaged or not supported
  3  a tool is missing
  4  the emulated run or the board crashed or timed out
  5  a bug in tinyfuse
"""


class _Commands(UserDict[str, click.Command | None]):
    """Commands by name. A command's file is imported when it is used, because all of them together take as long as
    planning a small model."""

    def __getitem__(self, name: str) -> click.Command:
        found = self.data[name]
        if found is None:
            found = self.data[name] = _load(name)
        return found


def _load(name: str) -> click.Command:
    command: click.Command
    if name == "gen":
        from tinyfuse.cli.gen import command
    elif name == "report":
        from tinyfuse.cli.report import command
    elif name == "explain":
        from tinyfuse.cli.explain import command
    elif name == "verify":
        from tinyfuse.cli.verify import command
    elif name == "run":
        from tinyfuse.cli.run import command
    elif name == "evaluate":
        from tinyfuse.cli.evaluate import command
    elif name == "profile":
        from tinyfuse.cli.profile import command
    elif name == "board":
        from tinyfuse.cli.board import command
    elif name == "quantize":
        from tinyfuse.cli.quantize import command
    elif name == "blame":
        from tinyfuse.cli.blame import command
    elif name == "diff":
        from tinyfuse.cli.diff import command
    elif name == "schema":
        from tinyfuse.cli.schema import command
    elif name == "targets":
        from tinyfuse.cli.targets import command
    elif name == "operators":
        from tinyfuse.cli.operators import command
    elif name == "front-end":
        from tinyfuse.cli.front_end import command
    elif name == "devices":
        from tinyfuse.cli.devices import command
    elif name == "cmsis-nn":
        from tinyfuse.cli.cmsis_nn import command
    else:
        from tinyfuse.cli.doctor import command
    return command


#: name -> line in the list of commands, in the order in which users need them
_COMMANDS = {
    "gen": "Write a model's C code, and print its RAM and flash.",
    "report": "Print a model's RAM, flash and instructions; write no code.",
    "explain": "Explain which layers are fused and why, and what would help.",
    "verify": "Prove on an emulated core that every output bit is right.",
    "run": "Compute a model's outputs for your own inputs.",
    "evaluate": "Measure the generated code's accuracy on your data set.",
    "profile": "Count the instructions and bytes of each operator.",
    "board": "Check and time the generated code on your own board.",
    "quantize": "Quantize a float model to int8, with sample inputs.",
    "blame": "Name the layers that cost a quantized model its accuracy.",
    "diff": "Compare two JSON results, and fail in CI if a figure grew.",
    "front-end": "Write a model that turns audio into a network's inputs.",
    "operators": "List the operators and dtypes that a model may have.",
    "targets": "List the cores that code can be generated for.",
    "devices": "List microcontrollers, with their memories.",
    "cmsis-nn": "Find or install CMSIS-NN's sources.",
    "schema": "Print the JSON Schema of a command's --json output.",
    "doctor": "Check which tools are installed, and how to get the others.",
}

#: commands of other tools -> ours
_OTHER_NAMES = {
    **dict.fromkeys(("generate", "codegen", "compile", "convert", "build"), "gen"),
    **dict.fromkeys(("analyze", "analyse", "info", "inspect", "stats", "summary"), "report"),
    **dict.fromkeys(("validate", "check", "test"), "verify"),
    **dict.fromkeys(("bench", "benchmark"), "profile"),
    **dict.fromkeys(("accuracy", "eval", "score"), "evaluate"),
    **dict.fromkeys(("infer", "invoke", "predict", "simulate"), "run"),
    **dict.fromkeys(("boards", "chips"), "devices"),
    **dict.fromkeys(("quantise", "calibrate"), "quantize"),
    **dict.fromkeys(("layerwise", "sensitivity", "snr"), "blame"),
    "compare": "diff", "cores": "targets", "ops": "operators",
}  # fmt: skip


class _Main(ErrorReportingGroup):
    """Command group that lists its commands without importing their files."""

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command; the error for another tool's command name says ours."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            meant = _OTHER_NAMES.get(args[0].lower())
            if meant is None:
                raise
            raise click.UsageError(f"No such command '{args[0]}'; did you mean '{meant}'?", context) from error

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Main,
    commands=_Commands(dict.fromkeys(_COMMANDS)),
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="tinyfuse", message="%(prog)s %(version)s")
def main() -> None:
    """Compile a quantized .tflite, .onnx or .pte model into C for Cortex-M. The C needs no interpreter, and computes
    the same output bits as one."""


@main.command("cmake-dir", hidden=True)
def cmake_dir() -> None:
    """Print the folder of tinyfuse.cmake, for include() in a CMakeLists.txt."""
    click.echo(PACKAGE / "cmake")
