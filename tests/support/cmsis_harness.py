"""Runs CMSIS-NN's functions on emulated cores: as tinyfuse's kernels call them, and its getters.

One program holds many cases. Around every output and scratch lie guard bytes, around every input
bytes that a kernel must not use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from cases import RANDOM
from contexts import context_of
from hypothesis import HealthCheck, Phase, given, settings

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import SEVERAL_ROWS
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel, TensorAccess
from tinyfuse.kernels.core.statements import Call, Let, Loop, Statement
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.resources import resource_dir
from tinyfuse.targets import Target, load_target
from tinyfuse.toolchain.cmsis_nn import Tree, find_cmsis_nn
from tinyfuse.verify.emulation.cache import ObjectCache

_FIRMWARE = Path(__file__).resolve().parents[2] / "tinyfuse" / "verify" / "emulation" / "firmware"
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
#: room for the largest input, output and scratch of a case
_ROOM = 1 << 17


def tree_or_skip(wanted: str) -> Tree:
    """The CMSIS-NN tree to test with: "4.0" is bakenn's copy, "newest" is in CMSIS_NN_PATH."""
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    if wanted == "newest":
        if not os.environ.get("CMSIS_NN_PATH"):
            pytest.skip("needs a CMSIS-NN tree: CMSIS_NN_PATH is not set")
        return find_cmsis_nn(None)
    package = pytest.importorskip("bakenn", reason="needs the PyPI package bakenn")
    return find_cmsis_nn(str(Path(package.__file__).parent / "backend" / "cmsis_nn" / "vendor"))


@dataclass(frozen=True)
class Case:
    """One operator and kernel with its inputs. `by_row`: one call a row. `ring`: the input passes through a ring of one
    row, which suffices for each output row."""

    op: Op
    kernel: Kernel
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    window: RowWindow | None = None
    by_row: bool = False
    ring: bool = False


@dataclass(frozen=True)
class Result:
    """Numbers of wrong output bytes, damaged guard bytes and failed calls, and bytes of stack."""

    wrong: int
    damaged: int
    failed: int
    stack: int

    @property
    def good(self) -> bool:
        return (self.wrong, self.damaged, self.failed) == (0, 0, 0)


def run_cases(cases: list[Case], context: Context, tree: Tree, folder: Path) -> list[Result]:
    """Builds and runs one program for all cases; AssertionError if it crashes."""
    functions = {case.kernel.name for case in cases}
    headers = {header for case in cases for header in case.kernel.headers}
    text = _program(headers, [_case(i, case, context) for i, case in enumerate(cases)])
    lines = run_program(text, functions, context.target, tree, folder)
    assert len(lines) == len(cases), lines[-3:]
    return [Result(*line) for line in lines]


def run_program(
    text: str, functions: set[str], target: Target, tree: Tree, folder: Path, flags: tuple[str, ...] = ()
) -> list[list[int]]:
    """Runs a C program with `functions` of CMSIS-NN on the target; returns the numbers of its "case" lines."""
    folder.mkdir(parents=True, exist_ok=True)
    # sections.ld takes *_weights.o to CONSTANTS: the RAM, as the M55's flash is small
    (folder / "cases_weights.c").write_text(text)
    (folder / "memory.ld").write_text(
        f"MEMORY {{ FLASH (rx) : ORIGIN = {target.flash[0]}, LENGTH = {target.flash[1]}\n"
        f"RAM (rwx) : ORIGIN = {target.ram[0]}, LENGTH = {target.ram[1]} }}\n"
        'REGION_ALIAS("CONSTANTS", RAM)\nREGION_ALIAS("BULK", RAM)\n'
    )
    common = ["arm-none-eabi-gcc", "-O2", *target.flags, "-ffunction-sections", "-fdata-sections"]
    include = [option for path in tree.include_dirs for option in ("-isystem", str(path))]
    include += ["-I", str(resource_dir("runtime_c")), "-I", str(_FIRMWARE)]
    _build([*common, *flags, "-std=gnu99", *_WARNINGS, *include, "-c", "cases_weights.c"], folder)
    library = _library(tree.closure(functions), common, tree, folder)
    _build(
        [*common, "-w", "-std=gnu99", *include, "cases_weights.o", *library, str(_FIRMWARE / "port_cortex_m.c"),
         "-nostartfiles", "--specs=nano.specs", "-T", str(_FIRMWARE / "sections.ld"),
         "-Wl,--gc-sections", "-L", str(folder), "-o", "cases.elf", "-lm"],
        folder,
    )  # fmt: skip
    done = subprocess.run(
        ["qemu-system-arm", "-machine", target.qemu_machine, "-display", "none", "-monitor", "none",
         "-serial", "none", "-semihosting-config", "enable=on,target=native", "-kernel", "cases.elf"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    return [[int(n) for n in line.split()[1:]] for line in done.stdout.splitlines() if line.startswith("case")]


def _library(sources: list[Path], common: list[str], tree: Tree, folder: Path) -> list[str]:
    """Objects of CMSIS-NN's files, compiled once on each machine."""
    version = subprocess.run([common[0], "--version"], capture_output=True, text=True).stdout
    cache = ObjectCache([version, *common], tree.include_dirs)
    objects = []
    for number, source in enumerate(sources):
        path = folder / f"{number}_{source.stem}.o"
        if not cache.fetch(source, ["tests"], path):
            include = [option for d in tree.include_dirs for option in ("-isystem", str(d))]
            _build([*common, "-w", *include, "-c", str(source), "-o", str(path)], folder)
            cache.store(source, ["tests"], path)
        objects.append(str(path))
    return objects


def _build(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def context_for(target: str, tree: Tree) -> Context:
    return context_of(load_target(target), cmsis_nn=tree.version, kernels="cmsis-nn", at_once=max(SEVERAL_ROWS))


def cases_of(op: Op, inputs: tuple[np.ndarray, ...], context: Context) -> list[Case]:
    """Cases of `op` with every CMSIS-NN kernel that accepts it: whole, by rows, through a ring of one row, and with
    several rows a call in one form, which depends on the tensors' sizes."""
    family, given = FAMILIES[op.kind], iter(inputs)
    if any(rule.problem(op) for rule in family.rules):
        return []
    values = {tensor: next(given) for tensor in op.activations}
    operands = [None if t is None else t.data if t.is_constant else values[t] for t in op.inputs]
    (expected,) = family.reference(op, *operands)
    cases = []
    accepted = [k for k in kernels_for(op) if k.library == "cmsis-nn" and k.accepts(op, context)]
    several = [kernel for kernel in accepted if kernel.rows_a_call > 1]
    elements = op.output.elements + sum(tensor.elements for tensor in op.activations)
    chosen = several[elements % len(several)] if several else None
    for kernel in accepted:
        window = family.row_window(op, 0)
        if kernel is chosen and window is not None:
            cases.append(Case(op, kernel, inputs, expected, window, by_row=True))
        elif kernel.rows_a_call == 1:
            cases.append(Case(op, kernel, inputs, expected, window))
            if kernel.by_row and window is not None:
                ring = window.kernel == 1 and len(op.activations) == 1
                cases.append(Case(op, kernel, inputs, expected, window, by_row=True, ring=ring))
    return cases


def drawn(kind: str, count: int) -> list[Op]:
    """The first `count` random cases of a kind, with a fixed seed."""
    found: list[Op] = []

    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate], deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(RANDOM[kind])
    def collect(op: Op) -> None:
        found.append(op)

    collect()
    return found


# --- C ---------------------------------------------------------------------------------------

PRELUDE = """\
#include "port.h"
#include <string.h>

static void write_number(int64_t value)
{
    char text[24];
    int at = 24;
    uint64_t rest = (uint64_t)(value < 0 ? -value : value);

    do {
        text[--at] = (char)('0' + (int)(rest % 10u));
        rest /= 10u;
    } while (rest != 0);
    if (value < 0) {
        text[--at] = '-';
    }
    text[--at] = ' ';
    port_write(text + at, (size_t)(24 - at));
}
"""

_CASES = f"""\
enum {{ GUARD = 64, ROOM = {_ROOM}, POISON = 0xA5 }};
static uint8_t input_memory[2][GUARD + ROOM + GUARD] __attribute__((aligned(16)));
static uint8_t output_memory[GUARD + ROOM + GUARD] __attribute__((aligned(16)));
static uint8_t scratch_memory[GUARD + ROOM + GUARD] __attribute__((aligned(16)));
static uint8_t ring_memory[GUARD + ROOM + GUARD] __attribute__((aligned(16)));
static int failed;

static void paint(void)
{{
    memset(input_memory, POISON, sizeof input_memory);
    memset(output_memory, POISON, sizeof output_memory);
    memset(scratch_memory, POISON, sizeof scratch_memory);
    memset(ring_memory, POISON, sizeof ring_memory);
    failed = 0;
}}

static int damage(const uint8_t *memory, int32_t bytes)
{{
    int damaged = 0, i;

    for (i = 0; i < GUARD; ++i) {{
        damaged += memory[i] != POISON;
        damaged += memory[GUARD + bytes + i] != POISON;
    }}
    return damaged;
}}

static void finish(const int8_t *expected, int32_t bytes, int32_t scratch_bytes, int64_t stack)
{{
    int32_t wrong = 0, i;

    for (i = 0; i < bytes; ++i) {{
        wrong += (int8_t)output_memory[GUARD + i] != expected[i];
    }}
    port_write("case", 4);
    write_number(wrong);
    write_number(damage(output_memory, bytes) + damage(scratch_memory, scratch_bytes));
    write_number(failed);
    write_number(stack);
    port_write("\\n", 1);
}}
"""


def _program(headers: set[str], cases: list[str]) -> str:
    includes = [f'#include "{header}"' for header in sorted(headers)]
    calls = "".join(f"    case_{i}();\n" for i in range(len(cases)))
    main = f"int main(void)\n{{\n{calls}    port_exit(0);\n}}\n"
    return "\n".join([*includes, PRELUDE, _CASES, *cases, main])


def array(ctype: str, name: str, data: np.ndarray, align: int = 4) -> str:
    numbers = ",".join(scalar(v) for v in np.ascontiguousarray(data).reshape(-1).tolist())
    return f"static const {ctype} {name}[] __attribute__((aligned({align}))) = {{{numbers}}};"


def scalar(value) -> str:
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)


def statement_text(statement: Statement) -> str:
    if isinstance(statement, Let):
        value = statement.value
        return f"const {statement.ctype} {statement.name} = {_initializer(value)};"
    if isinstance(statement, Loop):
        body = " ".join(map(statement_text, statement.body))
        return f"for (int32_t {statement.counter} = 0; {statement.counter} < {statement.count}; ++{statement.counter}) {{ {body} }}"
    assert isinstance(statement, Call)
    call = f"{statement.function}({', '.join(map(scalar, statement.args))})"
    return f"failed += {call} != {statement.status};" if statement.status else f"{call};"


def _initializer(value) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f".{name} = {_initializer(v)}" for name, v in value.items()) + "}"
    return scalar(value)


def _case(index: int, case: Case, context: Context) -> str:
    op, kernel = case.op, case.kernel
    rows = op.output.shape[1] if case.by_row else 1
    step = kernel.rows_a_call if case.by_row else 1
    scratch = kernel.scratch(op, context)
    assert max(scratch, op.output.bytes, *(t.bytes for t in op.activations)) <= _ROOM
    constants = kernel.constants(op, context)
    lines = [array(c.ctype, f"k{index}_{c.name}", c.data, c.align) for c in constants]
    lines.append(array(CTYPE[op.output.dtype], f"expected_{index}", case.expected))
    views: list[TensorAccess | None] = []
    fill = []
    for i, tensor in enumerate(op.inputs):
        if tensor is None or tensor.is_constant:
            views.append(None)
            continue
        place = op.activations.index(tensor)
        ctype = CTYPE[tensor.dtype]
        lines.append(array(ctype, f"input_{index}_{i}", case.inputs[place]))
        fill.append(f"memcpy(input_memory[{place}] + GUARD, input_{index}_{i}, {tensor.bytes});")
        height = tensor.shape[1] if len(tensor.shape) == 4 else 1
        memory, ring = ("ring_memory", 1) if case.ring else (f"input_memory[{place}]", height)
        views.append(TensorAccess(tensor, f"((const {ctype} *)(const void *)({memory} + GUARD))", ring))
    site = CallSite(
        inputs=tuple(views),
        outputs=(
            TensorAccess(
                op.output,
                f"(({CTYPE[op.output.dtype]} *)(void *)(output_memory + GUARD + y * {op.output.bytes // rows}))",
                rows,
            ),
        ),
        row="y" if case.by_row else None,
        scratch="(scratch_memory + GUARD)" if scratch else "NULL",
        constant=lambda name: f"k{index}_{name}",
    )
    body = [statement_text(s) for s in kernel.call(op, site, context)]
    if case.ring:
        row_bytes = op.input.bytes // op.input.shape[1]
        body.insert(0, f"const int32_t r = y * {case.window.stride} - {case.window.pad_top};")
        body.insert(1, f"if (r >= 0 && r < {op.input.shape[1]}) {{ memcpy(ring_memory + GUARD, "
                       f"input_memory[0] + GUARD + r * {row_bytes}, {row_bytes}); }}")  # fmt: skip
    newline = "\n        "
    lines.append(
        f"static int run_{index}(void *unused)\n{{\n    int32_t y;\n    (void)unused;\n"
        f"    for (y = 0; y < {rows}; y += {step}) {{\n        {newline.join(body)}\n    }}\n    return 0;\n}}"
    )
    lines.append(
        f"static void case_{index}(void)\n{{\n    int64_t stack = 0;\n    paint();\n    "
        + "\n    ".join(fill)
        + f"\n    (void)port_run_for_stack(run_{index}, NULL, &stack);\n"
        f"    finish((const int8_t *)expected_{index}, {op.output.bytes}, {scratch}, stack);\n}}"
    )
    return "\n".join(lines)
