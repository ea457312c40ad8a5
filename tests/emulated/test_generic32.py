"""`--target generic32`: every kernel in portable C, exact on QEMU's RISC-V of 32 bits, compiled for Xtensa without a
warning."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from compiler_modules import modules
from host_program import WARNINGS, compile_c
from random_graphs import Sketch
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.emit import emit
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target
from tinyfuse.verify.selftest import embedded_selftest

RISCV = ["riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32"]
#: picolibc on QEMU's board "virt": flash and RAM are parts of its memory, the host prints
BOARD = [
    "--specs=picolibc.specs", "--oslib=semihost", "--crt0=semihost", "-Wl,--defsym=__flash=0x80000000",
    "-Wl,--defsym=__flash_size=8M", "-Wl,--defsym=__ram=0x80800000", "-Wl,--defsym=__ram_size=4M",
    "-Wl,--defsym=__stack_size=64K", "-lm",
]  # fmt: skip
QEMU = [
    "qemu-system-riscv32", "-M", "virt", "-bios", "none", "-nographic", "-monitor", "none", "-serial", "none",
    "-semihosting-config", "enable=on,target=native", "-kernel",
]  # fmt: skip
XTENSA = ["xtensa-lx106-elf-gcc", "-mlongcalls", "-ffreestanding"]
#: its package has no C library: what the modules take of one
STRING_H = """\
#include <stddef.h>
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
"""

_MAIN = """\
#include <stdint.h>
#include <stdio.h>
{includes}
static uint8_t arena[1 << 16] __attribute__((aligned(16))), state[1 << 14] __attribute__((aligned(16)));

int main(void)
{{
    (void)state;
{tests}
    puts("done");
    return 0;
}}
"""


def needs(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"needs {program}")


def convolution(target: str = "generic32") -> Plan:
    sketch = Sketch(5)
    x = sketch.value((1, 6, 6, 3))
    return tinyfuse.compile(sketch.build([x], [sketch.conv(x, 4, (3, 3))]), target, name="net").plan


def run(plans: list[Plan], folder: Path) -> str:
    """Builds firmware that runs the self-test of each module; returns its output: a line for each failure, then
    "done"."""
    includes, sources, tests = "", "", ""
    for plan in plans:
        name = plan.options.name
        for file, text in emit(plan, embedded_selftest(plan)).items():
            (folder / file).write_text(text)
        includes += f'#include "{name}.h"\n'
        sources += "".join(f'#include "{name}{part}.c"\n' for part in ("", "_weights", "_selftest"))
        state = ", state" if plan.state_bytes else ""
        tests += f'    if ({name}_selftest(arena, sizeof arena{state}) != 0) puts("{name} is wrong");\n'
    (folder / "main.c").write_text(_MAIN.format(includes=includes, tests=tests))
    (folder / "all.c").write_text(sources)
    compile_c([*RISCV, "-std=c99", "-O1", *WARNINGS, folder / "all.c", folder / "main.c", *BOARD, "-o", folder / "elf"])
    return printed(folder / "elf")


def printed(elf: Path) -> str:
    """Returns what firmware prints through semihosting; QEMU writes that to standard error."""
    return subprocess.run([*QEMU, elf], capture_output=True, text=True, timeout=120).stderr


@pytest.mark.emulated
def test_every_kernel_is_exact_on_riscv(tmp_path: Path) -> None:
    """The checksum in each module is that of our references, which are TFLM's arithmetic."""
    needs(RISCV[0], QEMU[0])
    plans = [plan for plan in modules("generic32") if not plan.awaits]  # those have no self-test
    assert len(plans) > 50
    assert run(plans, tmp_path) == "done\n"


@pytest.mark.emulated
def test_what_is_wrong_is_seen_on_riscv(tmp_path: Path) -> None:
    needs(RISCV[0], QEMU[0])
    right = convolution()
    assert run([right], tmp_path) == "done\n"
    weights = tmp_path / "net_weights.c"
    text = weights.read_text()
    weights.write_text(text.replace("    ", "    1 + ", 1))
    assert weights.read_text() != text
    compile_c([*RISCV, "-O1", tmp_path / "all.c", tmp_path / "main.c", *BOARD, "-o", tmp_path / "elf"])
    assert printed(tmp_path / "elf") == "net is wrong\ndone\n"


@pytest.mark.emulated
def test_a_self_test_takes_every_nan_for_one(tmp_path: Path) -> None:
    """RISC-V's and Arm's is positive, a PC's negative: the square root of what is less than zero."""
    needs(RISCV[0], QEMU[0])
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 40), "float32"), model.tensor("y", (1, 40), "float32")
    model.op("SQRT", [x], [y])
    assert run([tinyfuse.compile(model.build([x], [y]), "generic32", name="net").plan], tmp_path) == "done\n"


@pytest.mark.parametrize("level", ["-O0", pytest.param("-Os", marks=[pytest.mark.campaign])])
def test_every_kernel_compiles_for_xtensa(tmp_path: Path, level: str) -> None:
    needs(XTENSA[0])
    (tmp_path / "string.h").write_text(STRING_H)
    plans = modules("generic32")
    for plan in plans:
        for file, text in emit(plan).items():
            (tmp_path / file).write_text(text)
    names = [plan.options.name for plan in plans]
    (tmp_path / "all.c").write_text("".join(f'#include "{n}.c"\n#include "{n}_weights.c"\n' for n in names))
    flags = ["-std=c99", level, *WARNINGS, f"-I{tmp_path}"]
    compile_c([*XTENSA, *flags, "-c", tmp_path / "all.c", "-o", tmp_path / "all.o"])


@pytest.mark.parametrize(
    ("target", "define", "said"),
    [
        ("generic32", "-DINT_MAX=32767", "an int of 32 bits"),
        *(
            (target, "-mbig-endian", "the lowest byte first")
            for target in ("generic32", "cortex-m0plus", "cortex-m4", "cortex-m55", "host")
        ),
    ],
)
def test_cores_that_compute_otherwise_are_refused(target: str, define: str, said: str, tmp_path: Path) -> None:
    needs("arm-none-eabi-gcc")
    plan = convolution(target)
    for file, text in emit(plan).items():
        (tmp_path / file).write_text(text)
    if define.startswith("-D"):
        (tmp_path / "limits.h").write_text("#define INT_MAX 32767\n")
    core = load_target(target)
    flags = core.flags if (core.cpu or "").startswith("cortex") else ()
    command = [
        "arm-none-eabi-gcc",
        *flags,
        define if define.startswith("-m") else "-O0",
        f"-I{tmp_path}",
        "-fsyntax-only",
    ]
    done = subprocess.run([*command, tmp_path / f"{plan.options.name}.c"], capture_output=True, text=True)
    assert done.returncode and said in done.stderr
