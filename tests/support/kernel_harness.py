"""Runs kernels alone: C programs of many calls, built for the host or an emulated core.

Every case is one operator with one kernel and one input. The program calls the kernel as a row
group would (a ring of rows, if asked for, is filled just in time and otherwise poisoned), compares
with the reference's output, and checks guard bytes around output and scratch.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from conv_cases import FAMILIES
from cross_compilers import cross_compiler
from overlaps import least_distance

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Let, Loop, Statement, TensorAccess
from tinyfuse.resources import resource_dir
from tinyfuse.targets import Target

_FIRMWARE = Path(__file__).resolve().parents[2] / "tinyfuse" / "verify" / "emulation" / "firmware"
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")


@dataclass(frozen=True)
class Case:
    """`ring`: inputs of a call by rows lie in rings just large enough. `shift` moves input and
    output off word alignment by that many bytes. `over`: the output is written over the input,
    as near as the kernel's access order allows."""

    op: Op
    kernel: Kernel
    data: np.ndarray
    ring: bool = False
    shift: int = 0
    over: bool = False


@dataclass(frozen=True)
class Result:
    """Wrong output bytes, damaged guard bytes, and instructions (None on the host)."""

    wrong: int
    damaged: int
    instructions: int | None


def run_cases(
    cases: list[Case], target: Target, folder: Path, flags: str = "-O2", compiler: str = "gcc", **choices: str
) -> list[Result]:
    """Builds one program of all cases in `folder` and runs it; AssertionError where it crashes. `flags` and
    `compiler` are those of the kernels on emulated cores. `choices` are fields of Context."""
    context = Context(target, kernels="tinyfuse", **choices)
    (folder / "cases.c").write_text(program(cases, context))
    core = context.target
    runtime = resource_dir("runtime_c")
    common = ["-std=gnu99", "-I", str(runtime), "-I", str(_FIRMWARE)]
    elf = folder / "cases.elf"
    if core.cpu is None:
        # the sanitizers' checks are many: kernels in one copy, not optimized, compile ten times as fast
        sanitized = ["-O0", "-DTINYFUSE_INLINE=static inline", "-g1", "-fsanitize=address,undefined",
                     "-fno-sanitize-recover=all"]  # fmt: skip
        _build(["gcc", *common, *sanitized, *_WARNINGS, "cases.c", str(_FIRMWARE / "port_host.c"),
                "-o", str(elf)], folder)  # fmt: skip
        command = [str(elf)]
    else:
        (folder / "memory.ld").write_text(
            f"MEMORY {{ FLASH (rx) : ORIGIN = {core.flash[0]}, LENGTH = {core.flash[1]}\n"
            f"RAM (rwx) : ORIGIN = {core.ram[0]}, LENGTH = {core.ram[1]} }}\n"
            'REGION_ALIAS("CONSTANTS", RAM)\n'
        )
        _build([*cross_compiler(compiler, core), *flags.split(), *common, *_WARNINGS, "-c", "cases.c",
                "-o", "cases_weights.o"], folder)  # fmt: skip
        _build([*cross_compiler("gcc", core), "-O2", *common, "-w", "cases_weights.o",
                str(_FIRMWARE / "port_cortex_m.c"), "-nostartfiles", "--specs=nano.specs",
                "-T", str(_FIRMWARE / "sections.ld"), "-L", str(folder), "-o", str(elf)], folder)  # fmt: skip
        command = ["qemu-system-arm", "-machine", core.qemu_machine, "-display", "none",
                   "-monitor", "none", "-serial", "none", "-semihosting-config",
                   "enable=on,target=native", "-icount", "shift=0,align=off,sleep=off",
                   "-kernel", str(elf)]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, timeout=300,
    )  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("case ")]
    assert len(lines) == len(cases), done.stdout[-4000:]
    return [Result(int(w), int(d), _instructions(int(t), core)) for _, w, d, t in lines]


def _instructions(ticks: int, core: Target) -> int | None:
    # SysTick has 24 bits; a difference of two short readings may wrap once
    return None if core.cpu is None else round(ticks % (1 << 24) * core.qemu_tick_ns)


def _build(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


# --- the program -----------------------------------------------------------------------------


def program(cases: list[Case], context: Context) -> str:
    headers = sorted({h for case in cases for h in case.kernel.headers})
    parts = [f'#include "{header}"' for header in headers] + [_PRELUDE]
    parts += [_case(index, case, context) for index, case in enumerate(cases)]
    calls = "\n".join(f"    case_{i}();" for i in range(len(cases)))
    parts.append(f"int main(void)\n{{\n{calls}\n    port_exit(0);\n}}")
    return "\n\n".join(parts) + "\n"


_PRELUDE = """\
#include "port.h"

#if (defined(__ARM_FEATURE_DSP) && !TINYFUSE_DSP) || (defined(__ARM_FEATURE_MVE) && !TINYFUSE_MVE)
#error "the kernels give instructions up that the core has"
#endif

enum { GUARD = 64 };
static uint8_t scratch_memory[GUARD + 65536 + GUARD] __attribute__((aligned(16)));
static uint8_t output_memory[GUARD + 131072 + GUARD] __attribute__((aligned(16)));
static uint8_t ring_memory[131072] __attribute__((aligned(16)));

static void write_number(int64_t value)
{
    char text[24];
    int at = 24;
    const int negative = value < 0;
    uint64_t rest = negative ? 0u - (uint64_t)value : (uint64_t)value;

    do {
        text[--at] = (char)('0' + (int)(rest % 10u));
        rest /= 10u;
    } while (rest != 0);
    if (negative) {
        text[--at] = '-';
    }
    text[--at] = ' ';
    port_write(text + at, (size_t)(24 - at));
}

static void paint(int32_t scratch_bytes, int32_t output_bytes)
{
    memset(scratch_memory, 0xA5, (size_t)(2 * GUARD + scratch_bytes));
    memset(output_memory, 0xA5, (size_t)(2 * GUARD + output_bytes));
}

/* `used` bytes from `got` on are the output's, or those of the input that it is written over. */
static void finish(const int8_t *got, const int8_t *expected, int32_t bytes, int32_t used,
                   int32_t scratch_bytes, int64_t ticks)
{
    int32_t wrong = 0, damaged = 0, i;

    for (i = 0; i < bytes; ++i) {
        wrong += got[i] != expected[i];
    }
    for (i = 0; i < GUARD; ++i) {
        damaged += scratch_memory[i] != 0xA5;
        damaged += scratch_memory[GUARD + scratch_bytes + i] != 0xA5;
        damaged += &output_memory[i] < (const uint8_t *)got && output_memory[i] != 0xA5;
        damaged += ((const uint8_t *)got)[used + i] != 0xA5;
    }
    port_write("case", 4);
    write_number(wrong);
    write_number(damaged);
    write_number(ticks);
    port_write("\\n", 1);
}"""


def scalar(value: int) -> str:
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)


def _array(ctype: str, name: str, data: np.ndarray, align: int) -> str:
    flat = np.ascontiguousarray(data).reshape(-1)
    rows = flat.tolist()
    if data.dtype.names:
        text = ", ".join("{" + ", ".join(scalar(v) for v in row) + "}" for row in rows)
    else:
        text = ",".join(scalar(v) for v in rows)
    return f"static const {ctype} {name}[] __attribute__((aligned({align}))) = {{{text}}};"


def _case(index: int, case: Case, context: Context) -> str:
    op, kernel = case.op, case.kernel
    by_row = kernel.by_row and (case.ring or not kernel.whole)
    rank4 = len(op.output.shape) == 4
    rows = op.output.shape[1] if rank4 else 1
    row_out = op.output.elements // rows
    in_rows = op.input.shape[1] if rank4 else 1
    row_in = op.input.elements // in_rows
    (expected,) = FAMILIES[op.kind].reference(op, case.data, *(t and t.data for t in op.inputs[1:]))
    window = FAMILIES[op.kind].row_window(op, 0)
    ring = in_rows
    if case.ring:
        ring = min(in_rows, window.kernel)
    scratch = kernel.scratch(op, context)
    place, used = "ring_memory", op.output.elements  # where the input lies
    if case.over:
        distance = least_distance(op, kernel, 0, by_row)
        place = f"output_memory + GUARD + {distance}"
        used = max(used, distance + op.input.bytes)
    assert scratch <= 65536 and used + 4 <= 131072 and ring * row_in + 4 <= 131072
    lines = [_array(c.ctype, f"k{index}_{c.name}", c.data, c.align) for c in kernel.constants(op, context)]
    lines.append(_array("int8_t", f"input_{index}", case.data, 4))
    lines.append(_array("int8_t", f"expected_{index}", expected, 4))
    site = CallSite(
        inputs=(TensorAccess(op.input, "in", ring), *(None for _ in op.inputs[1:])),
        outputs=(TensorAccess(op.output, f"(out + y * {row_out})" if by_row else "out", rows),),
        row="y" if by_row else None,
        scratch="scratch" if scratch else "NULL",
        constant=lambda name: f"k{index}_{name}",
    )
    body = [_statement(statement) for statement in kernel.call(op, site, context)]
    lines += [
        f"static int run_{index}(void *memory)\n{{",
        f"    const int8_t *const in = (const int8_t *){place} + {case.shift};",
        f"    int8_t *const out = (int8_t *)output_memory + GUARD + {case.shift};",
        "    uint8_t *const scratch = scratch_memory + GUARD;",
        "    (void)memory;",
        "    (void)scratch;",
    ]
    text = "\n        ".join(body)
    if not by_row:
        lines.append(f"    {{\n        {text}\n    }}")
    else:
        lines.append(f"    int32_t y;\n    for (y = 0; y < {rows}; ++y) {{")
        if case.ring:
            # fill just in time; rows that this one no longer needs are poisoned
            lines.append(
                f"        int32_t r;\n"
                f"        memset(ring_memory, 0x5A, {ring * row_in + 4});\n"
                f"        for (r = 0; r < {in_rows}; ++r) {{\n"
                f"            const int32_t first = y * {window.stride} - {window.pad_top};\n"
                f"            if (r >= first && r < first + {window.kernel}) {{\n"
                f"                memcpy(ring_memory + {case.shift} + (r % {ring}) * {row_in},"
                f" input_{index} + r * {row_in}, {row_in});\n            }}\n        }}"
            )
        lines.append(f"        {{\n        {text}\n        }}\n    }}")
    lines.append("    return 0;\n}")
    load = "" if case.ring else f"    memcpy({place} + {case.shift}, input_{index}, sizeof input_{index});\n"
    lines.append(
        f"static void case_{index}(void)\n{{\n    int64_t ticks;\n"
        f"    paint({scratch}, {used + case.shift});\n{load}"
        f"    (void)port_run_for_ticks(run_{index}, NULL, &ticks);\n"
        f"    finish((const int8_t *)output_memory + GUARD + {case.shift}, expected_{index},"
        f" {op.output.elements}, {used}, {scratch}, ticks);\n}}"
    )
    return "\n".join(lines)


def _statement(statement: Statement) -> str:
    if isinstance(statement, Let):
        fields = ", ".join(f".{k} = {v}" for k, v in statement.value.items())
        return f"const {statement.ctype} {statement.name} = {{{fields}}};"
    if isinstance(statement, Loop):
        body = " ".join(map(_statement, statement.body))
        return f"for (int32_t {statement.counter} = 0; {statement.counter} < {statement.count}; ++{statement.counter}) {{ {body} }}"
    assert isinstance(statement, Call)
    return f"{statement.function}({', '.join(map(str, statement.args))});"
