"""Renode: a platform made from the target's description, and a UART as the console.

Renode's exit code says nothing, and RunFor does not return after a CPU abort. So the result is what the firmware wrote,
and the host's clock limits the run. An access outside every memory does not fault: Renode logs it and goes on, so its
log is read too.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from tinyfuse.errors import EmulationFailed, ToolMissing, UsageError
from tinyfuse.targets import Target
from tinyfuse.toolchain.programs import find_program
from tinyfuse.verify.emulation.process import run_limited
from tinyfuse.verify.emulation.result import Firmware, Outcome, emulation_failure, parse_outcome

# One instruction takes one tick of the SysTick.
_PLATFORM = """\
nvic: IRQControllers.NVIC @ sysbus 0xE000E000
    priorityMask: 0xF0
    systickFrequency: 100000000
    IRQ -> cpu@0

cpu: CPU.CortexM @ sysbus
    cpuType: "{target.renode_cpu}"
    nvic: nvic
    PerformanceInMips: 100

flash: Memory.MappedMemory @ sysbus {target.flash[0]:#010x}
    size: {target.flash[1]:#x}

ram: Memory.MappedMemory @ sysbus {target.ram[0]:#010x}
    size: {target.ram[1]:#x}

uart0: UART.TrivialUart @ sysbus 0x40000000
"""

_BULK = """
bulk: Memory.MappedMemory @ sysbus {target.bulk[0]:#010x}
    size: {target.bulk[1]:#x}
"""

# RunFor takes seconds of virtual time; the firmware ends long before, in test_exit.
_SCRIPT = """\
mach create "tinyfuse"
machine LoadPlatformDescription {platform}
uart0 CreateFileBackend {uart} true
sysbus LoadELF {elf}
cpu VectorTableOffset {vectors:#010x}
cpu AddHook `sysbus GetSymbolAddress "test_exit"` "self.IsHalted = True"
emulation RunFor "100000"
quit
"""


#: characters that end a path in the Monitor, or that it would interpret (Renode's Tokenizer.cs)
_NO_PATH = re.compile(r"[;\\]|(?! )\s")

#: line of an exception that ends Renode, above its call stack
_THROWN = re.compile(r"^(?!\s+at |.*\[(?:NOISY|DEBUG|INFO|WARNING)\]).*\b[A-Z]\w*Exception\b.*$", re.M)

#: record that ends the firmware
_ENDED = re.compile(r"^(result|error|crash|wrong) .*\n", re.M)

#: Renode's log of an access outside every memory, or of code that leaves them
_STRAYED = re.compile(r"^.*(non existing peripheral|CPU abort).*$", re.M)

_GET = (
    "https://renode.io, or pip install git+https://github.com/antmicro/renode-run and"
    " renode-run download; RENODE_PATH may name it"
)


def platform_description(target: Target) -> str:
    """Platform (.repl) with the target's core and memories."""
    return (_PLATFORM + (_BULK if target.bulk else "")).format(target=target)


def script(target: Target, elf: Path, platform: Path, uart: Path) -> str:
    """Script (.resc) that runs `elf` and writes its console to the new file `uart`."""
    assert target.flash is not None
    return _SCRIPT.format(platform=_path(platform), uart=_path(uart), elf=_path(elf), vectors=target.flash[0])


def _path(path: Path) -> str:
    """Path in the Monitor's notation: absolute, spaces escaped. UsageError if it has no notation."""
    text = str(path.resolve())
    found = _NO_PATH.search(text)
    if found:
        raise UsageError(
            f"Renode's Monitor can't read {text!r}, because it contains {found[0]!r}; set TMPDIR to another folder,"
            " or use --emulator qemu"
        )
    return "@" + text.replace(" ", "\\ ")


class Renode:
    """Renode, which has boards that QEMU lacks; its log is searched for accesses outside every memory."""

    name = "renode"

    def __init__(self, path: str | None = None):
        """Finds Renode at `path`, at RENODE_PATH (both a program or its folder), on PATH, or in renode-run's folder.
        ToolMissing if it is nowhere."""
        self.program = _find(path)

    @cached_property
    def version(self) -> str:
        """Version and build in one line. ToolMissing if the program does not run."""
        try:
            code, said = self._call(["--version"], 60)
        except EmulationFailed as error:
            raise self._broken(str(error)) from None
        if code != 0 or not said.strip():
            first = said.strip().partition("\n")[0]
            raise self._broken(f"--version ended with code {code}" + (f": {first}" if first else ""))
        build = re.search(r"^ *build: (\S+)", said, re.M)
        return said.strip().split("\n")[0].rstrip() + (f", build {build[1]}" if build else "")

    def _broken(self, reason: str) -> ToolMissing:
        return ToolMissing("a Renode that runs", f"{self.program}: {reason}; {_GET}")

    def check(self, target: Target) -> None:
        """Checks, before anything is built, that Renode can run the target.

        UsageError if it has no such core, or cannot read the paths of its files; ToolMissing if it does not run. The
        firmware itself tries Helium's instructions (check_core in firmware/port_cortex_m.c), because a version does not
        tell whether they are computed correctly.
        """
        if target.renode_cpu is None:
            raise UsageError(f"Renode has no {target.name}; use another --emulator")
        assert self.version  # it runs
        _path(Path(tempfile.gettempdir()))

    def run(self, firmware: Firmware, time_limit: float) -> Outcome:
        """See `Emulator.run`."""
        folder = firmware.elf.parent
        uart, platform = folder / "uart.txt", folder / "platform.repl"
        resc = folder / "verify.resc"
        uart.unlink(missing_ok=True)
        platform.write_text(platform_description(firmware.target), encoding="utf-8")
        resc.write_text(script(firmware.target, firmware.elf, platform, uart), encoding="utf-8")

        def console() -> str:
            return uart.read_text(errors="replace") if uart.exists() else ""

        ended = False

        def done(log: str) -> bool:
            nonlocal ended
            # Another thread writes the log, and has time until the next call.
            before, ended = ended, _ENDED.search(console()) is not None
            return before or _STRAYED.search(log) is not None or _THROWN.search(log) is not None

        try:
            _, log = self._call(
                ["--disable-gui", "--console", "--plain", "-e", f"include {_path(resc)}"], time_limit, done
            )
        except EmulationFailed as error:
            raise emulation_failure(str(error), console()) from None
        strayed = _STRAYED.search(log)
        if strayed:
            raise emulation_failure(
                "an access or a jump outside every memory of the board, by Renode's log", strayed[0]
            )
        thrown = _THROWN.search(log)
        if thrown and not _ENDED.search(console()):
            raise emulation_failure(f"Renode threw an exception: {thrown[0].strip()}", console())
        if not console():
            raise emulation_failure("the firmware wrote nothing under Renode", log)
        return parse_outcome(console(), firmware, tick_ns=1)

    def _call(
        self, arguments: list[str], time_limit: float, done: Callable[[str], bool] | None = None
    ) -> tuple[int, str]:
        """Calls run_limited(), and removes temporary files, which a killed Renode would leave."""
        with tempfile.TemporaryDirectory(prefix="tinyfuse-renode-") as folder:
            return run_limited([self.program, *arguments], time_limit, {"TMPDIR": folder}, done)


def _find(path: str | None) -> Path:
    given = path or os.environ.get("RENODE_PATH")
    if given:
        program = Path(given, "renode") if Path(given).is_dir() else Path(given)
        if not (program.is_file() and os.access(program, os.X_OK)):
            raise UsageError(f"{given} is not Renode's program or folder")
        return program
    found = find_program("renode")
    if found:
        return Path(found)
    installer = find_program("renode-run")
    if installer:
        # "exec" would download Renode unasked; "default" prints its folder, if it has one.
        code, output = run_limited([installer, "default"], 60)
        program = Path(output.strip().rpartition("\n")[2], "renode")
        if code == 0 and program.is_file():
            return program
    raise ToolMissing("Renode", _GET)
