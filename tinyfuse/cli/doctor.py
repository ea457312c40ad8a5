"""`tinyfuse doctor`: checks which tools this machine has."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.terminal import Answer, show, versioned
from tinyfuse.errors import TinyfuseError
from tinyfuse.targets import all_targets
from tinyfuse.toolchain import cmsis_nn
from tinyfuse.toolchain.extras import PACKAGES
from tinyfuse.toolchain.packages import how_to_get
from tinyfuse.toolchain.programs import find_program
from tinyfuse.verify.emulation.process import ELSEWHERE, NOT_HERE, runs_modules_here
from tinyfuse.verify.emulation.renode import Renode

#: seconds that an external program may take to print its version
_PATIENCE = 20


@dataclass(frozen=True)
class Check:
    """Result for one tool.

    place, version  None if it was not found
    problem         fault of the tool; None without one
    install         how to install or repair it
    required        `verify` needs it
    """

    name: str
    purpose: str
    required: bool
    place: str | None
    version: str | None
    problem: str | None
    install: str

    @property
    def good(self) -> bool:
        return self.place is not None and self.problem is None


@click.command("doctor")
@json_flag()
def command(as_json: bool) -> int:
    """Print which tools are installed, their versions and places, and how to get the missing ones. The exit code is 3
    if a tool is missing that `verify` needs.
    """
    checks = examine()
    told = [asdict(check) | {"good": check.good} for check in checks]
    show(Answer(versioned(checks=told), doctor_lines(checks)), as_json)
    return 0 if all(check.good for check in checks if check.required) else 3


def examine() -> list[Check]:
    """Checks every tool in the same way as the commands that use it. Downloads nothing."""
    renode = _renode()
    return [
        _system(),
        Check("python", "everything", True, sys.executable, platform.python_version(), None, "Python 3.11 or later"),
        _program("arm-none-eabi-gcc", "verify, run, profile: compiles for the target", required=True),
        _newlib(),
        _package("elftools", "verify, run, profile: reads the firmware", required=True),
        _qemu(required=not renode.good),
        renode,
        _package("tflite_micro", "verify: TensorFlow Lite Micro's results", required=True),
        _package("ai_edge_litert", "verify: results for what TensorFlow Lite Micro lacks, such as uint8 models"),
        _cmsis_nn(),
        _package("cmsis_pack_manager", "cmsis-nn install: downloads packs"),
        _package("ai_edge_quantizer", "quantize; blame: what int16 costs"),
        _package("PIL", "evaluate: pictures as data"),
        _package("soundfile", "evaluate: sounds as data"),
        _package("serial", "board validate: the serial line to a board"),
        _host_compiler(),
        _program("cmake", "tinyfuse_add_model in a CMake project"),
    ]  # fmt: skip


def _system() -> Check:
    problem = None if runs_modules_here() else NOT_HERE
    return Check("system", "verify, run, profile", True, platform.system() or sys.platform, None, problem, ELSEWHERE)


def _first_line(*command: str) -> str | None:
    """First line that a program prints; None if it does not run."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next(iter(done.stdout.splitlines()), "") if done.returncode == 0 else None


def _program(
    name: str, purpose: str, required: bool = False, problem: Callable[[str], str | None] = lambda path: None
) -> Check:
    path = find_program(name)
    said = _first_line(path, "--version") if path else None
    wrong = None if path is None else "it does not run" if said is None else problem(path)
    return Check(name, purpose, required, path, said, wrong, how_to_get(name))


def _package(module: str, purpose: str, required: bool = False) -> Check:
    name, install = PACKAGES[module].name, PACKAGES[module].install
    spec = importlib.util.find_spec(module)
    try:
        installed = version(name) if spec else None
    except PackageNotFoundError:  # importable, but not installed as a package
        installed = None
    place = str(Path(spec.origin).parent) if spec and spec.origin else None
    return Check(name, purpose, required, place, installed, None, install)


def _newlib() -> Check:
    """Checks the target's C library: the compiler prints an absolute path only if it has the file."""
    compiler = find_program("arm-none-eabi-gcc")
    specs = _first_line(compiler, "-print-file-name=nano.specs") if compiler else None
    place = specs if specs and os.path.isabs(specs) else None
    return Check(
        "newlib", "verify, run, profile: the C library to link with", True, place, None, None, how_to_get("newlib")
    )


def _qemu(required: bool) -> Check:
    def lacking(path: str) -> str | None:
        try:
            text = subprocess.run(
                [path, "-machine", "help"], capture_output=True, encoding="utf-8", errors="replace", timeout=_PATIENCE
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return "it does not run"
        wanted = {target.qemu_machine for target in all_targets().values() if target.qemu_machine}
        missing = sorted(wanted - set(re.findall(r"^\S+", text, re.M)))
        return f"it has no board {', '.join(missing)}" if missing else None

    return _program(
        "qemu-system-arm",
        "verify, run, profile: emulates the core (7.2 or later; tested with 7.2 and 10.0)",
        required,
        lacking,
    )


def _renode() -> Check:
    purpose = "verify, run: emulates the core, instead of QEMU"
    place, said, wrong = os.environ.get("RENODE_PATH"), None, None
    try:
        renode = Renode()
        place = str(renode.program)
        said = renode.version
    except TinyfuseError as error:
        wrong = str(error) if place else None
    return Check("renode", purpose, False, place, said, wrong, "https://renode.io (RENODE_PATH may name it)")


def _cmsis_nn() -> Check:
    purpose = "verify and gen --bundle of code that calls CMSIS-NN"
    try:
        tree = cmsis_nn.find_cmsis_nn(None)
    except TinyfuseError as error:
        return Check("CMSIS-NN", purpose, False, None, None, str(error), cmsis_nn.HOW_TO_GET)
    if tree is None:
        return Check("CMSIS-NN", purpose, False, None, None, None, cmsis_nn.HOW_TO_GET)
    found = f"{tree.version[0]}.{tree.version[1]} ({tree.found_by})"
    return Check("CMSIS-NN", purpose, False, str(tree.path), found, None, cmsis_nn.HOW_TO_GET)


def _host_compiler() -> Check:
    """Checks the C compiler that profile's plugin and verify --emulator host use."""
    path = find_program(os.environ.get("CC", ""), "gcc", "clang")
    said = _first_line(path, "--version") if path else None
    return Check("gcc", "verify --emulator host; profile's counters", False, path, said, None, how_to_get("gcc"))


def doctor_lines(checks: list[Check]) -> list[str]:
    """Lines for a terminal: one per tool, and below a bad one how to repair it."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        mark = "ok" if check.good else "MISSING" if check.required else "absent"
        shown = " at ".join(part for part in (check.version, check.place) if part) if check.good else check.purpose
        lines.append(f"{mark:<7}  {check.name:<{width}}  {shown}")
        if not check.good:
            lines += [f"{'':<{width + 11}}{text}" for text in (check.problem, check.install) if text]
    lacking = [check.name for check in checks if check.required and not check.good]
    lines.append(f"verify still needs: {', '.join(lacking)}" if lacking else "all that verify needs is installed")
    return lines
