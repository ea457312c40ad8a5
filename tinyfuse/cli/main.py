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
  tinyfuse gen model.tflite --target cortex-m4          C in ./model_tinyfuse
  tinyfuse gen model.tflite --target cortex-m4 -o src/net --name net --force
  tinyfuse report model.tflite --target cortex-m4       RAM and flash, nothing written
  tinyfuse verify model.tflite --target cortex-m4       proof on an emulated core
  tinyfuse verify model.tflite --target cortex-m55 --runs 20 --json
  tinyfuse profile model.tflite --target cortex-m4      instructions by operator
  tinyfuse run model.tflite --target cortex-m4 --input x.npy
  tinyfuse board validate model.tflite --target cortex-m4 --port /dev/ttyACM0

\b
Exit codes: 0 success; 1 differs, is unproven, or does not fit; 2 wrong usage, bad or unsupported
model; 3 a tool is missing; 4 the emulated run or the board crashed or timed out; 5 a fault of tinyfuse itself.
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
    "gen": "Write the C module of a model.",
    "report": "Print arena, flash, MACs and groups; write nothing.",
    "explain": "Explain a plan, and what would improve it.",
    "verify": "Prove on an emulated core that the module is exact.",
    "run": "Compute a model's outputs for your own inputs.",
    "evaluate": "Measure accuracy over your data set.",
    "profile": "Count instructions and bytes by operator.",
    "board": "Compare and time the module on your real board.",
    "quantize": "Make an int8 model from a float one and data.",
    "blame": "Name the layers that spoil a quantized model.",
    "diff": "Compare figures of two answers; a gate for CI.",
    "front-end": "Write a model that computes features of audio.",
    "operators": "List the operators and dtypes that a model may have.",
    "targets": "List the cores that code can be generated for.",
    "devices": "List microcontrollers, with their memories.",
    "cmsis-nn": "Find or install CMSIS-NN's sources.",
    "schema": "Print the JSON Schema of a command's answer.",
    "doctor": "Check which tools are here, and how to get others.",
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
            raise click.UsageError(f"No such command '{args[0]}'; here it is '{meant}'", context) from error

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
    """Compile a quantized .tflite, .onnx or .pte model into C for Cortex-M: fused, exact, no interpreter."""


@main.command("cmake-dir", hidden=True)
def cmake_dir() -> None:
    """Print the folder of tinyfuse.cmake, for include() in a CMakeLists.txt."""
    click.echo(PACKAGE / "cmake")
