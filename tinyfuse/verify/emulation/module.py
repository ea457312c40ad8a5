"""Emits a plan's module into a folder and builds verification firmware from it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from tinyfuse.emit import emit, emit_weights
from tinyfuse.emit.output_folder import write_folder
from tinyfuse.plan import Plan
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.emulation.banks import board_banks
from tinyfuse.verify.emulation.board import check_board, room_for_inputs
from tinyfuse.verify.emulation.build import BuildOptions, ModuleFiles, build_firmware
from tinyfuse.verify.emulation.interface import interface
from tinyfuse.verify.emulation.result import Firmware
from tinyfuse.verify.runnable import check_runs_here

#: label, without an instruction, that group hooks put into the code for `tinyfuse profile`
_LABEL = re.compile(r"tinyfuse_group_(begin|end)_(\d+)_\d+")

_NO_ROOM = "the emulated board has no room for a second arena, so no interrupt made an inference of its own"

#: more bytes than the guards of an arena and a state that an interrupt uses
_GUARDS = 64 << 10

#: assembly that includes a blob of weights in the firmware's flash
_BLOB = """\
    .section .rodata.tinyfuse_blob, "a"
    .balign 16
    .globl tinyfuse_blob, tinyfuse_blob_end
tinyfuse_blob:
    .incbin "{name}_weights.bin"
tinyfuse_blob_end:
    .section .note.GNU-stack, "", %progbits
"""


def group_hooks(plan: Plan) -> tuple[str, ...]:
    """Compiler flags that label the begin and end of each group."""
    prefix = plan.options.name.upper()
    return tuple(
        f'-D{prefix}_GROUP_{hook.upper()}(index)=__asm volatile("tinyfuse_group_{hook}_" #index "_%=:" : )'
        for hook in ("begin", "end")
    )


def group_border(symbol: str) -> tuple[str, int] | None:
    """("begin" or "end", number of the group) for a symbol that a group hook made; None for other symbols."""
    match = _LABEL.fullmatch(symbol)
    return (match[1], int(match[2])) if match else None


def build_module(
    plan: Plan,
    tree: Tree | None,
    inputs: list[list[np.ndarray]],
    emulator: str,
    opt: str,
    work: Path,
    frames: int = 1,
    debug: bool = True,
    spread: bool = False,
    compiled_by: str = "gcc",
    checked: bool = True,
) -> Firmware:
    """Builds, in the folder `work`, firmware that runs the plan's module on inputs[run][index].

    tree         CMSIS-NN that the plan was made for; None if it calls none
    emulator     "host" runs plans for any target that call no CMSIS-NN
    frames       runs of a stream, for a model with state
    spread       counts the instructions of every input
    debug        adds debug information, which kernel_symbols need; a build without it is faster
    compiled_by  one of COMPILERS
    checked      as in BuildOptions

    Errors as build_firmware. UsageError before compiling if the board lacks memory, CompileError if only other hardware
    can run the model.
    """
    check_runs_here(plan.source)
    assert emulator == "host" or plan.context.target.cpu is not None
    within = emulator != "host" and _has_room_within(plan, len(inputs))
    flags = ("-DTINYFUSE_ANY_CPU",) if emulator == "host" else group_hooks(plan)
    if plan.memory and plan.memory.copied and emulator != "host":  # the host checks the copies by memcpy
        flags += (f"-D{plan.options.name.upper()}_STAGE",)
    firmware = build_firmware(
        write_module(plan, work / "module", flags),
        inputs,
        plan.context.target,
        tree.closure(plan.cmsis_nn_functions) if tree else [],
        tree.include_dirs if tree else [],
        work / "build",
        emulator,
        BuildOptions(
            opt,
            frames=frames if plan.states else None,
            debug=debug,
            interface=interface(plan),
            awaits=plan.awaits,
            spread=spread,
            compiled_by=compiled_by,
            checked=checked,
            within=within,
        ),
    )
    return firmware if within or not checked or emulator == "host" else replace(firmware, unchecked=(_NO_ROOM,))


def _has_room_within(plan: Plan, runs: int) -> bool:
    """Tells whether the board has room for an inference that an interrupt makes. UsageError if it lacks memory without
    one."""
    run_bytes = sum(tensor.bytes for tensor in plan.source.inputs)
    # in steps, the arena alternates between two places
    ram = (2 if plan.options.step else 1) * plan.arena_bytes + 5 * plan.state_bytes
    # a copy of the weights is damaged, and one of the inputs is lent
    weights, lent = (2 if plan.options.weights_blob else 1) * plan.weight_bytes, 1
    check_board(plan.context.target, weights, ram, run_bytes, runs + lent)
    apart = plan.arena_bytes + plan.state_bytes + _GUARDS
    return (runs + lent) * run_bytes <= room_for_inputs(plan.context.target, weights, ram + apart)


def write_module(plan: Plan, folder: Path, flags: tuple[str, ...]) -> ModuleFiles:
    """Emits a plan's module into a new folder, to be compiled with these flags."""
    files = {file: text.encode() for file, text in emit(plan).items()} | emit_weights(plan)
    name = plan.options.name
    weights = f"{name}_weights.c"
    if plan.options.weights_blob:
        weights = f"{name}_weights.S"
        files[weights] = _BLOB.format(name=name).encode()
    write_folder(folder, files, force=False)
    parts = tuple(part.bytes for part in plan.arena_parts)
    return ModuleFiles(name, name.upper(), folder, (f"{name}.c", weights), flags, board_banks(plan), parts)
