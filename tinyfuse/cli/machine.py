"""Chooses the emulator for a request."""

from __future__ import annotations

from tinyfuse.cli.request import Request
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import Emulator, find_tools


def choose_machine(request: Request, emulator: str, compiler: str) -> tuple[Emulator, Request, list[str]]:
    """Emulator for a request, the request to be run on it, and warnings. The host also runs modules for a core, but
    without CMSIS-NN."""
    target = load_target(request.target)
    machine = find_tools(emulator, target, compiler)
    if emulator == "auto" and machine.name == "renode":
        return machine, request, ["run on Renode, because QEMU is not installed or has no board with this core"]
    if machine.name != "host" or target.cpu is None:
        return machine, request, []
    warning = f"run on this machine: the module for {target.name}, with the portable forms of our kernels"
    return machine, request.replace(kernels="tinyfuse"), [warning]
