"""Builds the QEMU plugin (plugin.c), once, and runs firmware with it."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tinyfuse.errors import EmulationFailed, ToolMissing
from tinyfuse.profile.cycles import Core
from tinyfuse.profile.image import COLUMNS, Image
from tinyfuse.resources import cache_folder
from tinyfuse.toolchain.packages import how_to_get
from tinyfuse.toolchain.programs import find_program
from tinyfuse.verify.emulation.qemu import Qemu
from tinyfuse.verify.emulation.result import Firmware, Outcome

_SOURCE = Path(__file__).resolve().parent / "plugin.c"
_INCLUDED = _SOURCE.with_name("scoreboard.h")
_FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")


@dataclass(frozen=True)
class Count:
    """Counts of the instruction at `address` while image.parts[part] of `group` (or NONE) ran.

    executed  number of executions
    jumps     how often another instruction than the following one came next
    cycles    cycles until the next instruction issued; 0 without a core
    lowest    lowest stack address that it wrote; None if it wrote none
    loaded, stored   bytes, by column (image.py)
    """

    group: int
    part: int
    address: int
    executed: int
    jumps: int
    cycles: int
    lowest: int | None
    loaded: tuple[int, ...]
    stored: tuple[int, ...]


def api_version(qemu_version: str) -> int:
    """Version of the plugin API that a QEMU loads, by the first line of its --version: 1 before QEMU 9.0, else 2, which
    does not load version 1. A line without a number counts as a newer QEMU."""
    number = re.search(r"version (\d+)\.", qemu_version)
    return 1 if number and int(number[1]) < 9 else 2


def build_plugin(qemu_version: str) -> Path:
    """Builds the plugin for a QEMU of that version (`Qemu.version`), a shared object in the user's cache.

    If the cache cannot be written, as in some containers, it is in a folder that is removed when this process ends.
    ToolMissing without a host compiler, EmulationFailed if that cannot compile the plugin.
    """
    compiler = find_program(os.environ.get("CC", ""), "cc", "gcc", "clang")
    if compiler is None:
        raise ToolMissing("a C compiler for this machine", how_to_get("gcc"))
    flags = (*_FLAGS, f"-DAPI_VERSION={api_version(qemu_version)}")
    key = hashlib.sha256(
        repr((compiler, flags, os.uname().machine)).encode() + _SOURCE.read_bytes() + _INCLUDED.read_bytes()
    )
    folder = cache_folder("plugins")
    path = folder / f"{key.hexdigest()}.so"
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="tinyfuse-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = folder / path.name
        partial = f"{path}.partial"
    done = subprocess.run(
        [compiler, *flags, _SOURCE, "-o", partial], capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode != 0:
        Path(partial).unlink(missing_ok=True)
        raise EmulationFailed(f"{compiler} failed on the QEMU plugin:\n  {done.stderr[:800]}")
    os.replace(partial, path)  # atomic, because other processes read here
    return path


def run_counted(
    qemu: Qemu, firmware: Firmware, image: Image, plugin: Path, core: Core | None, time_limit: float, inference: int = 2
) -> tuple[Outcome, list[Count]]:
    """Runs a firmware; returns its outcome and the counts of one inference, numbered from 1, with cycles on `core`.
    Errors as in `Emulator.run`."""
    folder = firmware.elf.parent.resolve()
    output, settings = folder / "counts.txt", folder / "plugin.txt"
    lines = [f"output {output}", f"entry {image.entry:x} {inference}"]
    lines += [f"region {index} {start:x} {size:x}" for index, start, size in image.regions]
    lines += [f"border {address:x} {group}" for address, group in image.borders.items()]
    lines += [f"part {address:x} {part}" for address, part in image.part_at.items()]
    lines += core.settings(image.instructions.values()) if core else ()
    settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    output.unlink(missing_ok=True)
    # QEMU splits a plugin's arguments at commas; a doubled comma is a literal one
    plugin_option = ",".join(str(p).replace(",", ",,") for p in (plugin, f"settings={settings}"))
    outcome = qemu.run(firmware, time_limit, ("-plugin", plugin_option))
    if not output.exists():
        raise EmulationFailed("QEMU's plugin wrote no counts")
    return outcome, [_count(line) for line in output.read_text(encoding="utf-8").splitlines()]


def _count(line: str) -> Count:
    group, part, address, executed, jumps, cycles, lowest, *accesses = line.split()
    loaded, stored = [0] * COLUMNS, [0] * COLUMNS
    for region, read, written in zip(*[iter(map(int, accesses))] * 3, strict=True):
        loaded[region], stored[region] = read, written
    return Count(
        int(group),
        int(part),
        int(address, 16),
        int(executed),
        int(jumps),
        int(cycles),
        None if set(lowest) == {"f"} else int(lowest, 16),
        tuple(loaded),
        tuple(stored),
    )
