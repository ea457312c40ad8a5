"""QEMU's system emulator: semihosting console, and a SysTick that counts instructions (-icount)."""

from __future__ import annotations

import subprocess
from functools import cached_property

from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.toolchain.packages import how_to_get
from tinyfuse.toolchain.programs import find_program
from tinyfuse.verify.emulation.process import run_limited
from tinyfuse.verify.emulation.result import Firmware, Outcome, parse_outcome


class Qemu:
    """qemu-system-arm with its counter of instructions. ToolMissing if it is not installed."""

    name = "qemu"

    def __init__(self) -> None:
        program = find_program("qemu-system-arm")
        if program is None:
            raise ToolMissing("qemu-system-arm", how_to_get("qemu-system-arm"))
        self.program = program

    @cached_property
    def version(self) -> str:
        text = subprocess.run(
            [self.program, "--version"], capture_output=True, encoding="utf-8", errors="replace"
        ).stdout
        return text.split("\n", 1)[0]

    def run(self, firmware: Firmware, time_limit: float, options: tuple[str, ...] = ()) -> Outcome:
        """See `Emulator.run`. `options` are extra options of QEMU."""
        target = firmware.target
        if target.qemu_machine is None or target.qemu_tick_ns is None:
            raise UsageError(f"QEMU has no board for {target.name}; use another --emulator")
        # With shift=0 an instruction takes 1 ns of virtual time, so a tick of the board's SysTick is as many
        # instructions as it has nanoseconds.
        _, log = run_limited(
            [
                self.program,
                *("-machine", target.qemu_machine),
                *("-display", "none", "-monitor", "none", "-serial", "none"),
                *("-semihosting-config", "enable=on,target=native"),
                *("-icount", "shift=0,align=off,sleep=off"),
                *("-kernel", str(firmware.elf)),
                *options,
            ],
            time_limit,
        )
        return parse_outcome(log, firmware, target.qemu_tick_ns)
