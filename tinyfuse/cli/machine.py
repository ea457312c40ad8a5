"""Which emulator runs a request."""

from __future__ import annotations

from tinyfuse.cli.request import Request
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import Emulator, find_tools


def choose_machine(request: Request, emulator: str, compiler: str) -> tuple[Emulator, Request, list[str]]:
    """The emulator for a request, the request for what it runs, and warnings: this machine runs a core's
    module, too, but without CMSIS-NN."""
    target = load_target(request.target)
    machine = find_tools(emulator, target, compiler)
    if emulator == "auto" and machine.name == "renode":
        return machine, request, ["run on Renode, as QEMU is not installed or has no board with this core"]
    if machine.name != "host" or target.cpu is None:
        return machine, request, []
    warning = f"the module for {target.name}, with the portable forms of our kernels, on this machine"
    return machine, request.replace(kernels="tinyfuse"), [warning]
