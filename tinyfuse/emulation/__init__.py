"""Runs a generated module on an emulated Cortex-M, or on this machine, and returns its outputs."""

from __future__ import annotations

from tinyfuse.emulation.build import ModuleFiles, build_firmware
from tinyfuse.emulation.host import Host
from tinyfuse.emulation.qemu import Qemu
from tinyfuse.emulation.result import Emulator, Firmware, Outcome

__all__ = ["Emulator", "Firmware", "ModuleFiles", "Outcome", "build_firmware"]
