"""What the examples' run.py have in common: a firmware is built by CMake and run on an emulated Cortex-M4."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

TARGET = "cortex-m4"
TOOLS = {
    "cmake": "cmake",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
}
RUN_SECONDS = 300  # the emulated run takes a few


class Failed(Exception):
    """A message for the user, and the exit status."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def ended(run: Callable[[], int]) -> int:
    """The exit status of `run`, which may raise Failed: its message is printed."""
    try:
        return run()
    except Failed as failure:
        print(failure, file=sys.stderr)
        return failure.status


def need_tools() -> None:
    """Failed, with what to install, where one is missing."""
    for tool, packages in TOOLS.items():
        if shutil.which(tool) is None:
            raise Failed(f"{tool} was not found: apt-get install {packages}", 3)


def built(source: Path, folder: Path, name: str, variables: Mapping[str, str]) -> Path:
    """Configures and builds `source` in `folder`, with CMake's variables; NAME_firmware.elf."""
    print(f"building the firmware in {folder}", flush=True)
    configured = (folder / "CMakeCache.txt").exists()  # it keeps its generator
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not configured else []
    defined = {"Python3_EXECUTABLE": sys.executable, **variables}
    for command in (
        ["cmake", "-S", str(source), "-B", str(folder), *generator, *(f"-D{k}={v}" for k, v in defined.items())],
        ["cmake", "--build", str(folder)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}", 4)
    return folder / f"{name}_firmware.elf"


def emulated(firmware: Path, shift: int = 0) -> str:
    """What the firmware prints on QEMU's MPS2 board with the AN386 image, a Cortex-M4. An instruction takes 2 ** shift
    ns of the board's time, so that runs are repeatable."""
    print("running it on an emulated Cortex-M4 (QEMU, mps2-an386)", flush=True)
    command = [
        *("qemu-system-arm", "-machine", "mps2-an386", "-kernel", str(firmware)),
        *("-display", "none", "-monitor", "none", "-serial", "none"),
        *("-semihosting-config", "enable=on,target=native"),
        *("-icount", f"shift={shift},align=off,sleep=off"),
    ]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=RUN_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Failed(f"the firmware did not end within {RUN_SECONDS} s", 4) from late
    if done.returncode:
        raise Failed(f"{done.stdout}the firmware ended with status {done.returncode}", 4)
    return done.stdout


def reported(model: Path, *options: str) -> int:
    """The status of `tinyfuse report`, with options of `gen`."""
    planning = [option for option in options if option != "--bundle"]  # which only `gen` knows
    command = ["report", str(model), "--target", TARGET, *planning]
    return subprocess.run([sys.executable, "-P", "-m", "tinyfuse", *command]).returncode
