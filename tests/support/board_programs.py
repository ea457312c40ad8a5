"""Programs that answer `tinyfuse board`: they serve generated modules on the host or in QEMU."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from docs_blocks import ROOT
from host_program import WARNINGS
from native_compiler import REPORTING

from tinyfuse.emit import emit, emit_weights
from tinyfuse.emit.forms import Delivery
from tinyfuse.plan import Plan
from tinyfuse.targets import Target

_BOARD = ROOT / "examples" / "digits" / "board"

#: `program INDEX` serves the module of that number, and counts the looks at its clock as cycles
_MAIN = """\
#include <stdlib.h>
#include <unistd.h>
{includes}
static uint32_t looks;
static uint32_t cycles(void) {{ return looks += 10u; }}
static int read_byte(void) {{ uint8_t byte; return read(0, &byte, 1) == 1 ? byte : -1; }}
static void write_bytes(const uint8_t *bytes, size_t count) {{ if (write(1, bytes, count) < 0) exit(1); }}
static int (*const serve[])(int (*)(void), void (*)(const uint8_t *, size_t), uint32_t (*)(void)) = {{{serve}}};
int main(int argc, char **argv)
{{
    {bind}
    return argc != 2 ? 2 : serve[atoi(argv[1])](read_byte, write_bytes, cycles);
}}
"""


def write_board_modules(folder: Path, plans: Sequence[Plan]) -> list[Path]:
    """Writes the modules of the plans under different names, with their NAME_board.c; returns their sources."""
    for plan in plans:
        for file, text in emit(plan, delivery=Delivery(board=True)).items():
            if file != "CMakeLists.txt":
                (folder / file).write_text(text)
        for file, data in emit_weights(plan).items():
            (folder / file).write_bytes(data)
    return [*folder.glob("*.c")]


def host_server(folder: Path, plans: Sequence[Plan], changed: Callable[[Path], None]) -> Path:
    """A host program, built without a warning, that serves modules under sanitizers. `changed` may alter the modules in
    their folder."""
    sources = write_board_modules(folder, plans)
    changed(folder)
    names = [plan.options.name for plan in plans]
    blobs = [name for plan, name in zip(plans, names, strict=True) if plan.options.weights_blob]
    includes = [f'#include "{name}.h"' for name in names] + [
        f"static {name.upper()}_ALIGNED({name.upper()}_WEIGHTS_ALIGN) const uint8_t {name}_blob[] = "
        f"{{{', '.join(map(str, (folder / f'{name}_weights.bin').read_bytes()))}}};"
        for name in blobs
    ]
    parts = {
        "includes": "\n".join(includes),
        "serve": ", ".join(f"{name}_board_serve" for name in names),
        "bind": " ".join(f"(void){name}_bind({name}_blob, sizeof {name}_blob);" for name in blobs),
    }
    (folder / "main.c").write_text(_MAIN.format(**parts))
    flags = ["-std=gnu99", "-DTINYFUSE_ANY_CPU", *(flag for flag in WARNINGS if flag != "-Wpedantic")]
    modules = [path for path in sources if not path.stem.endswith("_board")]
    servers = [path for path in sources if path not in modules]
    # kernels have sanitizers and levels of optimization in tests of their own, and would take most of the time here
    _gcc(folder, [*flags, "-c", *modules])
    objects = [path.with_suffix(".o") for path in modules]
    _gcc(folder, [*flags, *REPORTING, *servers, folder / "main.c", *objects, "-lm", "-o", folder / "server"])
    return folder / "server"


def _gcc(folder: Path, words: Sequence[object]) -> None:
    subprocess.run(["gcc", *map(str, words)], check=True, cwd=folder)


@contextmanager
def on_a_terminal(command: Sequence[str | Path]) -> Iterator[str]:
    """Name of a serial port that is connected to a program's input and output."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    process = subprocess.Popen(command, stdin=master, stdout=master)
    try:
        yield os.ttyname(slave)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def firmware(folder: Path, main: str, plan: Plan) -> Path:
    """An ELF file for the emulated board of the plan's target: the module, `main`, and the digits example's startup."""
    sources = write_board_modules(folder, [plan])
    (folder / "main.c").write_text(main)
    flags = [
        "-std=gnu99",
        "-O2",
        *plan.context.target.flags,
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        f"-I{folder}",
    ]
    layout = ["-nostartfiles", "--specs=nano.specs", "--specs=rdimon.specs", "-T", _BOARD / "mps2-an386.ld"]
    command = ["arm-none-eabi-gcc", *flags, *sources, folder / "main.c", _BOARD / "startup.c", *layout, "-lm"]
    subprocess.run([*map(str, command), "-o", str(folder / "board.elf")], check=True)
    return folder / "board.elf"


@contextmanager
def in_qemu(elf: Path, target: Target, *options: str) -> Iterator[str]:
    """Name of the terminal that QEMU creates for the pty in `options`."""
    log = elf.with_suffix(".log")
    machine = ["qemu-system-arm", "-machine", str(target.qemu_machine), "-display", "none", "-monitor", "none"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*machine, "-icount", "shift=0,align=off,sleep=off", "-kernel", str(elf), *options],
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not (found := re.search(r"/dev/pts/\d+", log.read_text())):
            assert time.monotonic() < deadline and process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield found[0]
    finally:
        process.kill()
        process.wait()
