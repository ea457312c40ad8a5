"""Runs a generated module on an emulated Cortex-M, or on this machine, and returns its outputs.

emulator = find_tools("auto", target, "gcc")
firmware = build_firmware(module, inputs, target, ..., emulator.name)
outcome = emulator.run(firmware, time_limit=60)
"""

from __future__ import annotations

from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.options import EMULATORS
from tinyfuse.targets import Target
from tinyfuse.toolchain.extras import require_package
from tinyfuse.verify.emulation.build import BuildOptions, ModuleFiles, build_firmware
from tinyfuse.verify.emulation.compilers import find_compiler
from tinyfuse.verify.emulation.host import Host
from tinyfuse.verify.emulation.process import ELSEWHERE, NOT_HERE, runs_modules_here
from tinyfuse.verify.emulation.qemu import Qemu
from tinyfuse.verify.emulation.renode import Renode
from tinyfuse.verify.emulation.result import Emulator, Firmware, Outcome

__all__ = [
    "BuildOptions",
    "Emulator",
    "Firmware",
    "ModuleFiles",
    "Outcome",
    "build_firmware",
    "find_emulator",
    "find_tools",
]


def find_tools(kind: str, target: Target, compiler: str) -> Emulator:
    """Finds an emulator like find_emulator, and checks that the compiler (one of COMPILERS) and pyelftools are there.

    pyelftools is not needed on the host. ToolMissing names everything that is missing. UsageError on a system that
    cannot run modules.
    """
    if not runs_modules_here():
        raise UsageError(f"{NOT_HERE} (hint: {ELSEWHERE})")
    found, missing = None, []
    try:
        found = find_emulator(kind, target)
    except ToolMissing as error:
        missing.append(error)
    try:
        find_compiler(target, found.name if found else "qemu", "O2", compiler)
    except ToolMissing as error:
        missing.append(error)
    if found is None or found.name != "host":
        try:
            require_package("elftools")
        except ToolMissing as error:
            missing.append(error)
    if found is None or missing:
        raise missing[0].add_others(missing[1:])
    return found


def find_emulator(kind: str, target: Target) -> Emulator:
    """Finds the emulator of that kind, one of EMULATORS.

    "auto" is this machine for the target "host", else QEMU, which faults on an access outside every memory, else
    Renode, which only logs it, if QEMU is not installed or has no board with the target's core. ToolMissing says how to
    get the program. UsageError if the emulator cannot run the target.
    """
    if kind not in EMULATORS:
        raise UsageError(f"unknown emulator {kind!r}; known: {', '.join(EMULATORS)}")
    if kind == "host" or (kind == "auto" and target.cpu is None):
        return Host()
    if kind == "auto":
        try:
            return find_emulator("qemu", target)
        except (ToolMissing, UsageError) as no_qemu:
            try:
                return find_emulator("renode", target)
            except (ToolMissing, UsageError):
                raise no_qemu from None
    if kind == "renode":
        emulator = Renode()
        emulator.check(target)
        return emulator
    if target.qemu_machine is None:
        raise UsageError(f"QEMU has no board for {target.name}; use another --emulator")
    return Qemu()
