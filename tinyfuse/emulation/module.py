"""From a plan to verification firmware: emits the module into a folder and builds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tinyfuse.cmsis_nn import Tree
from tinyfuse.emit import emit
from tinyfuse.emulation.build import ModuleFiles, build_firmware
from tinyfuse.emulation.result import Firmware
from tinyfuse.output_folder import write_folder
from tinyfuse.plan import Plan


def build_module(
    plan: Plan, tree: Tree | None, inputs: list[list[np.ndarray]], emulator: str, opt: str, work: Path
) -> Firmware:
    """The firmware that runs the plan's module on inputs[run][index], built in the folder `work`.

    `tree` is the CMSIS-NN that the plan was made for, None where it calls none; the emulator "host"
    runs plans for the target "host" alone (scratch may hold pointers). Errors as build_firmware.
    """
    assert (emulator == "host") == (plan.context.target.cpu is None)
    name = plan.options.name
    folder = work / "module"
    write_folder(folder, {file: text.encode() for file, text in emit(plan).items()}, force=False)
    return build_firmware(
        ModuleFiles(name, name.upper(), folder, (f"{name}.c", f"{name}_weights.c")),
        inputs,
        plan.context.target,
        tree.closure(plan.cmsis_nn_functions) if tree else [],
        tree.include_dirs if tree else [],
        work / "build",
        emulator,
        f"-{opt}",
    )
