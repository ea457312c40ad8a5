"""Runs our kernels of the operator families but the convolutions': C programs of many calls, built for
the host (under sanitizers) or an emulated core.

A program takes every buffer from a pool, with bytes between them that nothing may touch, calls a
kernel in one of the ways that a plan may, and compares with the reference, byte for byte.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cases.common import references
from overlaps import least_distance

from tinyfuse.emit.functions import CTYPE
from tinyfuse.emit.weights import scalar
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.base import CallSite, Context, Kernel, Let, Loop, Statement, TensorAccess
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.ops import FAMILIES
from tinyfuse.resources import resource_dir
from tinyfuse.targets import Target

#: where the named cases run
TARGETS = ("host", "cortex-m4", "cortex-m55")

_FIRMWARE = Path(__file__).resolve().parents[2] / "tinyfuse" / "verify" / "emulation" / "firmware"
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")


@dataclass(frozen=True)
class Case:
    """`how`: "whole"; "rows": one call a row; "rings": so that the inputs are rings just large
    enough. `over`: the index of the input over which it writes, as near as its access order allows."""

    op: Op
    kernel: Kernel
    inputs: list[np.ndarray]
    how: str
    over: int | None = None

    def __str__(self) -> str:
        shapes = [t.shape for t in (*self.op.inputs, self.op.output)]
        return f"{self.kernel.name} {self.how} over {self.over} {shapes} {self.op.attributes}"


def cases_of(op: Op, context: Context, inputs: list[np.ndarray]) -> Iterator[Case]:
    """Every kernel of ours that accepts `op`, in every way that it offers."""
    family = FAMILIES[op.kind]
    streams = all(family.row_window(op, i) is not None for i, t in enumerate(op.inputs) if t in op.activations)
    for kernel in kernels_for(op):
        if kernel.library != "tinyfuse" or not kernel.accepts(op, context):
            continue
        loops = ["whole"] * kernel.whole + ["rows"] * (kernel.by_row and streams)
        assert loops or not kernel.whole, kernel.name
        for how in loops:
            yield Case(op, kernel, inputs, how)
            for i in kernel.access_orders(op):
                if not op.inputs[i].is_constant:
                    yield Case(op, kernel, inputs, how, i)
        if "rows" in loops and kernel.takes_rings(op):
            yield Case(op, kernel, inputs, "rings")


def assert_exact(cases: list[Case], target: Target, folder: Path) -> None:
    """Every case computes the reference's bytes on the target."""
    assert cases
    verdicts = _run(cases, target, folder)
    wrong = [str(case) for case, verdict in zip(cases, verdicts, strict=True) if verdict != "."]
    assert not wrong, "\n".join(wrong)


def _run(cases: list[Case], target: Target, folder: Path) -> str:
    """One character a case: "." where it was right."""
    context = Context(target, kernels="tinyfuse")
    (folder / "cases_weights.c").write_text(_program(cases, context))
    common = ["-std=gnu99", "-I", str(resource_dir("runtime_c")), "-I", str(_FIRMWARE), *target.flags]
    if target.cpu is None:
        # the sanitizers' checks are many: kernels in one copy, not optimized, compile ten times as fast
        _build(["gcc", "-O0", "-DTINYFUSE_INLINE=static inline", *common, *_WARNINGS, "-g1",
                "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "cases_weights.c",
                str(_FIRMWARE / "port_host.c"), "-o", "cases.elf"], folder)  # fmt: skip
        command = ["./cases.elf"]
    else:
        (folder / "memory.ld").write_text(
            f"MEMORY {{ FLASH (rx) : ORIGIN = {target.flash[0]}, LENGTH = {target.flash[1]}\n"
            f"RAM (rwx) : ORIGIN = {target.ram[0]}, LENGTH = {target.ram[1]} }}\n"
            'REGION_ALIAS("CONSTANTS", RAM)\n'
        )
        compiler = ["arm-none-eabi-gcc", "-O1", *common]
        _build([*compiler, *_WARNINGS, "-c", "cases_weights.c"], folder)
        _build([*compiler, "-w", "cases_weights.o", str(_FIRMWARE / "port_cortex_m.c"), "-nostartfiles",
                "--specs=nano.specs", "-T", str(_FIRMWARE / "sections.ld"), "-L", str(folder),
                "-o", "cases.elf"], folder)  # fmt: skip
        command = ["qemu-system-arm", "-machine", target.qemu_machine, "-display", "none", "-monitor",
                   "none", "-serial", "none", "-semihosting-config", "enable=on,target=native",
                   "-kernel", "cases.elf"]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0 and len(done.stdout) == len(cases), done.stdout[-4000:]
    return done.stdout


def _build(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


# --- the program -----------------------------------------------------------------------------

_PRELUDE = """\
#include <string.h>
#include "port.h"

enum { ROOM = 1 << 17, GAP = 64, POISON = 0x5A };
static uint8_t pool[ROOM] __attribute__((aligned(16)));
static size_t used;

/* Forgets every buffer and forbids the pool. */
static void start(void)
{
    port_allow(pool, sizeof pool);
    memset(pool, POISON, sizeof pool);
    port_forbid(pool, sizeof pool);
    used = GAP;
}

static void *take(size_t bytes)
{
    uint8_t *const taken = pool + used;
    used += (bytes + 15u) / 16u * 16u + GAP;
    if (used > sizeof pool) {
        port_exit(1);
    }
    port_allow(taken, bytes);
    return taken;
}

static int same(const void *got, const void *expected, size_t bytes)
{
    return memcmp(got, expected, bytes) == 0;
}"""


def _program(cases: list[Case], context: Context) -> str:
    headers = sorted({header for case in cases for header in case.kernel.headers})
    calls = "".join(f"    case_{i}();\n" for i in range(len(cases)))
    return "\n\n".join([
        *(f'#include "{header}"' for header in headers),
        _PRELUDE,
        *(_case(i, case, context) for i, case in enumerate(cases)),
        f"int main(void)\n{{\n{calls}    port_exit(0);\n}}\n",
    ])  # fmt: skip


def _bytes(name: str, data: np.ndarray) -> str:
    numbers = np.ascontiguousarray(data).reshape(-1).view(np.uint8).tolist()
    return f"static const uint8_t {name}[] __attribute__((aligned(16))) = {{{','.join(map(str, numbers))}}};"


def _case(index: int, case: Case, context: Context) -> str:
    op, kernel = case.op, case.kernel
    by_row = case.how in ("rows", "rings")
    rows = op.output.shape[1] if by_row else 1
    lines = [_bytes(f"expected_{index}_{o}", data) for o, data in enumerate(references(op, case.inputs))]
    for constant in kernel.constants(op, context):
        numbers = ",".join(map(_element, constant.data.tolist()))
        attribute = f"__attribute__((aligned({constant.align})))"
        lines.append(f"static const {constant.ctype} k{index}_{constant.name}[] {attribute} = {{{numbers}}};")
    body: list[str] = []
    fill: list[str] = []
    views: dict[Tensor, TensorAccess] = {}
    covered = None if case.over is None else op.inputs[case.over]
    for i, (tensor, data) in enumerate(zip(op.activations, case.inputs, strict=True)):
        name, ctype = f"input_{index}_{i}", CTYPE[tensor.dtype]
        lines.append(_bytes(name, data))
        height = tensor.shape[1] if len(tensor.shape) == 4 else 1
        ring = height
        if case.how == "rings":
            window = FAMILIES[op.kind].row_window(op, op.inputs.index(tensor))
            ring = min(height, -(-window.kernel // window.spread))
            fill += _fill(f"in{i}", name, tensor.bytes // height, ring, window, height)
        if tensor is covered:
            distance = least_distance(op, kernel, case.over, by_row)
            body.append(f"uint8_t *const both = take({max(distance + tensor.bytes, op.output.bytes)});")
            place = f"(void *)(both + {distance})"
        else:
            place = f"take({ring * tensor.bytes // height})"
        body.append(f"{ctype} *const in{i} = ({ctype} *){place};")
        if case.how != "rings":
            body.append(f"memcpy(in{i}, {name}, {tensor.bytes});")
        views[tensor] = TensorAccess(tensor, f"((const {ctype} *)in{i})", ring)
    for o, tensor in enumerate(op.outputs):
        ctype = CTYPE[tensor.dtype]
        place = f"take({tensor.bytes})" if covered is None else "(void *)both"
        body.append(f"{ctype} *const out{o} = ({ctype} *){place};")
    scratch = kernel.scratch(op, context)
    body.append(f"uint8_t *const scratch = (uint8_t *)take({scratch});" if scratch else "")
    pointer = f"out0 + y * {op.output.elements // rows}" if by_row else "out0"
    outputs = [TensorAccess(t, f"out{o}", 1) for o, t in enumerate(op.outputs)]
    outputs[0] = TensorAccess(op.output, pointer, rows if by_row else 1)
    site = CallSite(
        inputs=tuple(views.get(t) for t in op.inputs),
        outputs=tuple(outputs),
        row="y" if by_row else None,
        scratch="scratch" if scratch else "NULL",
        constant=lambda name: f"k{index}_{name}",
    )
    call = [*fill, *(_statement(s) for s in kernel.call(op, site, context))]
    loop = f"for (y = 0; y < {rows}; ++y) " if by_row else ""
    text = "\n    ".join([*(line for line in body if line), f"{loop}{{", *(f"    {line}" for line in call), "}"])
    counter = "    int32_t y;\n" if by_row else ""
    checks = [f"same(out{o}, expected_{index}_{o}, {t.bytes})" for o, t in enumerate(op.outputs)]
    lines.append(
        f"static void case_{index}(void)\n{{\n{counter}    start();\n    {{\n    {text}\n"
        f'    port_write({" && ".join(checks)} ? "." : "x", 1);\n    }}\n}}'
    )
    return "\n".join(lines)


def _fill(memory: str, data: str, row_bytes: int, ring: int, window, height: int) -> list[str]:
    """C that puts the rows which output row y needs into the ring, and nothing else."""
    return [
        f"memset({memory}, POISON, {ring * row_bytes});",
        f"for (int32_t r = 0, start = y * {window.stride} - {window.pad_top}; r < {height}; ++r) {{",
        f"    if (r * {window.spread} >= start && r * {window.spread} < start + {window.kernel}) {{",
        f"        memcpy((uint8_t *){memory} + r % {ring} * {row_bytes}, {data} + r * {row_bytes}, {row_bytes});",
        "    }",
        "}",
    ]


def _statement(statement: Statement) -> str:
    if isinstance(statement, Let):
        return f"const {statement.ctype} {statement.name} = {_initializer(statement.value)};"
    if isinstance(statement, Loop):
        body = " ".join(map(_statement, statement.body))
        return f"for (int32_t {statement.counter} = 0; {statement.counter} < {statement.count}; ++{statement.counter}) {{ {body} }}"
    call = f"{statement.function}({', '.join(map(_initializer, statement.args))})"
    if statement.status is None:
        return f"{call};"
    return f'if ({call} != {statement.status}) {{ port_write("e", 1); return; }}'


def _element(value) -> str:
    """A constant's element: a number, or the fields of a struct."""
    return f"{{{','.join(map(scalar, value))}}}" if isinstance(value, tuple) else scalar(value)


def _initializer(value) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f".{name} = {_initializer(v)}" for name, v in value.items()) + "}"
    return value if isinstance(value, str) else scalar(value)
