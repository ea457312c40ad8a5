"""C programs that call kernels alone, many in one: built for the host (under sanitizers) or an emulated core.

    verdicts = run_program(cases, context, folder)      # one character a case: "." where it was right

Cases are rows of a table. Where several call a kernel alike (with other values, over an input, into another place)
they share one function, and the same values lie in the program once: most of a test's time is the compiler's.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import native_compiler
import numpy as np
from cases.common import references
from cross_compilers import cross_compiler
from overlaps import least_distance

from tinyfuse.emit.weights import scalar
from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel, TensorAccess
from tinyfuse.kernels.core.statements import Let, Loop, NoInlineCall, PreprocessorIf, Statement
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.planes import in_memory
from tinyfuse.plan import tensor_align
from tinyfuse.resources import resource_dir
from tinyfuse.targets import Target

_FIRMWARE = Path(__file__).resolve().parents[2] / "tinyfuse" / "verify" / "emulation" / "firmware"
_INCLUDES = (
    "-std=gnu99", "-I", str(resource_dir("runtime_c")), "-I", str(_FIRMWARE), "-I", str(Path(__file__).resolve().parent)
)  # fmt: skip
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")
#: kernels in one copy, not optimized, compile five to ten times as fast
_SWIFT = ("-O0", "-DTINYFUSE_INLINE=static inline")


@dataclass(frozen=True)
class Case:
    """`how`: "whole"; "rows": one call a row; "rings": so that the inputs are rings just large
    enough. `over`: the index of the input over which it writes, as near as its access order allows.
    `shift` moves inputs and outputs off alignment by that many bytes. `context`: where it isn't the program's."""

    op: Op
    kernel: Kernel
    inputs: list[np.ndarray]
    how: str
    over: int | None = None
    shift: int = 0
    context: Context | None = None

    def __str__(self) -> str:
        shapes = [t.shape for t in (*self.op.inputs, self.op.output) if t is not None]
        place = f"over {self.over} shift {self.shift}"
        return f"{self.kernel.name} {self.how} {place} {shapes} {self.op.attributes}"

    @property
    def by_row(self) -> bool:
        return self.how != "whole"

    @property
    def rows(self) -> int:
        """Number of rows that the calls compute."""
        return self.op.output.shape[1] if self.by_row else 1

    @property
    def at_once(self) -> int:
        """Number of rows that each call computes; the last call computes the remaining ones."""
        return self.kernel.rows_a_call if self.by_row else 1


def run_program(cases: list[Case], context: Context, folder: Path, flags: str = "", compiler: str = "gcc") -> str:
    """A character a case: "." right, "x" wrong bytes, "i" an input written, "g" a byte written that is nobody's, "e" a
    status. Each case runs with its buffers apart, and side by side in every order that an arena may have them in.

    `flags` and `compiler` are those of the kernels on emulated cores; without flags they are not optimized, as assembly
    and intrinsics are with any (test_conv_kernels.py's HARD_FLAGS), and modules with every level (test_compiler_opt.py).
    On the host `flags` are other sanitizers than native_compiler.SANITIZERS."""
    program = _Program(context)
    for case in cases:
        program.add(case)
    (folder / "cases_weights.c").write_text(program.text())
    (folder / "values.bin").write_bytes(program.values)
    target = context.target
    if target.cpu is None:
        sanitizers = flags.split() or native_compiler.SANITIZERS
        _build([native_compiler.COMPILER, *_SWIFT, *sanitizers, *_INCLUDES, *_WARNINGS, "cases_weights.c",
                str(_FIRMWARE / "port_host.c"), "-o", "cases.elf"], folder)  # fmt: skip
        command = ["./cases.elf"]
    else:
        (folder / "memory.ld").write_text(_memory(target))
        chosen = flags.split() or _SWIFT
        _build([*cross_compiler(compiler, target), *chosen, *_INCLUDES, *_WARNINGS, "-c", "cases_weights.c"],
               folder)  # fmt: skip
        _build([*cross_compiler("gcc", target), "cases_weights.o", str(_port(target)), "-nostartfiles",
                "--specs=nano.specs", "-T", str(_FIRMWARE / "sections.ld"), "-L", str(folder), "-o", "cases.elf"],
               folder)  # fmt: skip
        command = ["qemu-system-arm", "-machine", target.qemu_machine, "-display", "none", "-monitor",
                   "none", "-serial", "none", "-semihosting-config", "enable=on,target=native",
                   "-kernel", "cases.elf"]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0 and len(done.stdout) == len(cases), native_compiler.report(done.returncode, done.stdout)
    return done.stdout


def _memory(target: Target) -> str:
    (flash, flash_bytes), (ram, ram_bytes) = target.flash, target.ram
    return (
        f"MEMORY {{ FLASH (rx) : ORIGIN = {flash}, LENGTH = {flash_bytes}\n"
        f"RAM (rwx) : ORIGIN = {ram}, LENGTH = {ram_bytes} }}\n"
        'REGION_ALIAS("CONSTANTS", RAM)\nREGION_ALIAS("BULK", RAM)\n'
    )


@cache
def _port(target: Target) -> Path:
    """Everything that every program for the target contains besides its cases, compiled once."""
    folder = Path(_folder().name) / target.name
    folder.mkdir()
    source = str(_FIRMWARE / "port_cortex_m.c")
    _build([*cross_compiler("gcc", target), "-O2", *_INCLUDES, "-w", "-c", source, "-o", "port.o"], folder)
    return folder / "port.o"


@cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="tinyfuse-test-")  # it goes with the process


def _build(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


# --- the program -----------------------------------------------------------------------------

_MAIN = ("int main(void)", "{", "    run_tests(tests, sizeof tests / sizeof *tests);", "    port_exit(0);", "}", "")


@dataclass
class _Program:
    """Parts of the program while cases are added."""

    context: Context
    values: bytes = b""
    _headers: set[str] = field(default_factory=set)
    _places: dict[bytes, int] = field(default_factory=dict)
    #: text -> symbol: of constants and functions, and of arrays of operands
    _symbols: dict[str, str] = field(default_factory=dict)
    _definitions: list[str] = field(default_factory=list)
    _tests: list[str] = field(default_factory=list)
    #: what cases have in common, by the identities of their parts, which outlive the program
    _known: dict[tuple[object, ...], Any] = field(default_factory=dict)

    def text(self) -> str:
        includes = [f'#include "{header}"' for header in sorted(self._headers)]
        table = ["static const struct test tests[] = {", *self._tests, "};"]
        return "\n".join([*includes, '#include "kernel_program.h"', *self._definitions, *table, *_MAIN])

    def add(self, case: Case) -> None:
        op, kernel, context = case.op, case.kernel, case.context or self.context
        self._headers.update(kernel.headers)
        covered = None if case.over is None else op.inputs[case.over]
        distance = 0 if covered is None else least_distance(op, kernel, case.over, case.by_row)
        both = 0 if covered is None else max(distance + covered.bytes, op.output.bytes)
        inputs, rings = [], []
        for tensor, data in zip(op.activations, case.inputs, strict=True):
            height = tensor.shape[1] if len(tensor.shape) == 4 else 1
            ring, window = height, (1, 1, 1, 0)
            if case.how == "rings":
                rows = FAMILIES[op.kind].row_window(op, op.inputs.index(tensor))
                ring = min(height, -(-(rows.kernel + (case.at_once - 1) * rows.stride) // rows.spread))
                window = (rows.kernel, rows.stride, rows.spread, rows.pad_top)
            rings.append(ring)
            place = distance if tensor is covered else -1
            numbers = ", ".join(map(str, (place, height, tensor.bytes // height, ring, *window)))
            inputs.append(f"{{{self._value(in_memory(tensor, data))}, {numbers}}}")
        found = self._once(("references", id(op), *map(id, case.inputs)), lambda: references(op, case.inputs))
        outputs = [
            f"{{{self._value(in_memory(tensor, data))}, {data.nbytes}, {int(data.dtype == np.float32)}}}"
            for tensor, data in zip(op.outputs, found, strict=True)
        ]
        called = (id(op), id(kernel), id(context), case.how, *rings)
        fields = (
            self._once(called, lambda: self._function(case, rings)),
            self._named("static const struct input {}[]", inputs) if inputs else "NULL",
            self._named("static const struct output {}[]", outputs),
            *(len(inputs), len(outputs), case.rows, case.at_once, int(case.how == "rings")),
            *(kernel.scratch(op, context), both, case.shift, max(map(tensor_align, (*op.activations, *op.outputs)))),
        )
        self._tests.append(f"    {{{', '.join(map(str, fields))}}},")

    def _once(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _value(self, data: np.ndarray) -> str:
        """A C expression for the address of these bytes."""
        content = np.ascontiguousarray(data).tobytes()
        if content not in self._places:
            self._places[content] = len(self.values)
            self.values += content + bytes(-len(content) % 16)
        return f"values + {self._places[content]}"

    def _named(self, declaration: str, elements: list[str]) -> str:
        """The symbol of an array of these elements; its declaration has {} in place of the symbol."""
        text = f"{declaration} = {{{', '.join(elements)}}};"
        if text not in self._symbols:
            self._symbols[text] = f"array_{len(self._symbols)}"
            self._definitions.append(text.replace("{}", self._symbols[text], 1))
        return self._symbols[text]

    def _function(self, case: Case, rings: list[int]) -> str:
        """The symbol of a function that makes one call of the case."""
        op, kernel, context = case.op, case.kernel, case.context or self.context
        constants = self._once(
            ("constants", id(op), id(kernel), id(context)),
            lambda: {
                c.name: self._named(
                    f"static const {c.ctype} {{}}[] __attribute__((aligned({c.align})))", _elements(c.data)
                )
                for c in kernel.constants(op, context)
            },
        )
        lines, views = [], {}
        for i, (tensor, ring) in enumerate(zip(op.activations, rings, strict=True)):
            ctype = CTYPE[tensor.dtype]
            lines += [f"const {ctype} *const in{i} = (const {ctype} *)in[{i}];", f"(void)in{i};"]
            views[tensor] = TensorAccess(tensor, f"in{i}", ring)
        for o, tensor in enumerate(op.outputs):
            ctype = CTYPE[tensor.dtype]
            lines.append(f"{ctype} *const out{o} = ({ctype} *)out[{o}];")
        outputs = [TensorAccess(t, f"out{o}", 1) for o, t in enumerate(op.outputs)]
        row = op.output.elements // case.rows // op.output.planes

        def row_at(number: str) -> str:
            return f"(out0 + {number} * {row})"

        outputs[0] = TensorAccess(op.output, row_at("y") if case.by_row else "out0", case.rows, row_at=row_at)
        site = CallSite(
            inputs=tuple(views.get(t) for t in op.inputs),
            outputs=tuple(outputs),
            row="y" if case.by_row else None,
            scratch="scratch" if kernel.scratch(op, context) else "NULL",
            constant=constants.__getitem__,
        )
        lines += [
            "(void)in;",
            "(void)scratch;",
            "(void)y;",
            *map(_statement, kernel.call(op, site, context)),
            "return 0;",
        ]
        head = "static int {}(void *const *in, void *const *out, uint8_t *scratch, int32_t y)"
        text = "\n    ".join([f"{head}\n{{", *lines]) + "\n}"
        if text not in self._symbols:
            self._symbols[text] = f"call_{len(self._symbols)}"
            self._definitions.append(text.replace("{}", self._symbols[text], 1))
        return self._symbols[text]


def _statement(statement: Statement) -> str:
    if isinstance(statement, Let):
        return f"const {statement.ctype} {statement.name} = {_initializer(statement.value)};"
    if isinstance(statement, Loop):
        return f"{statement.pragma} {statement.head} {{ {' '.join(map(_statement, statement.body))} }}"
    if isinstance(statement, NoInlineCall):
        lets = (f"{ctype} {name} = {_initializer(value)};" for ctype, name, value in statement.parameters)
        return "\n".join(["{", *lets, *map(_statement, statement.body), "}"])
    if isinstance(statement, PreprocessorIf):
        return "\n".join([f"\n#if {statement.condition}", *map(_statement, statement.body), "#endif\n"])
    call = f"{statement.function}({', '.join(map(_initializer, statement.args))})"
    return f"{call};" if statement.status is None else f"if ({call} != {statement.status}) {{ return 1; }}"


def _elements(data: np.ndarray) -> list[str]:
    """A constant's elements in C."""
    values = np.ascontiguousarray(data).reshape(-1).tolist()
    if data.dtype.kind in "iu" and data.dtype.itemsize <= 2:  # larger ones may need a suffix, or have no literal
        return [*map(str, values)]
    return [_initializer(value) for value in values]


def _initializer(value) -> str:
    """C initializer of a number, of text as it is, or of a struct by its fields' names or in their order."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f".{name} = {_initializer(v)}" for name, v in value.items()) + "}"
    if isinstance(value, tuple):
        return f"{{{', '.join(map(_initializer, value))}}}"
    return value if isinstance(value, str) else scalar(value)
