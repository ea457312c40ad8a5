"""Kernels of fused elementwise operators (runtime_c/tinyfuse_fused_loop*.h): loops generated for their expressions.

    for (int32_t i = 0; i < 64; ++i) {
        const int32_t a0 = source0[i];
        const int32_t a1 = source1[i];
        const int32_t r0 = tinyfuse_fused_loop_look_up(middle0, a1); /* op 4 LOGISTIC */
        const int32_t r1 = tinyfuse_fused_loop_mul(&p1, a0, r0); /* op 5 MUL */
        tinyfuse_fused_loop_store_s8(out + i, r1);
    }

With Helium, the same loop over four elements at a time comes first, and leaves the rest to this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core import rows
from tinyfuse.kernels.core.c_types import CTYPE, SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import (
    AccessOrder,
    CallSite,
    Constant,
    Division,
    Kernel,
    element_access_orders,
    require_proven,
)
from tinyfuse.kernels.core.statements import Call, Expr, Let, Loop, NoInlineCall, PreprocessorIf, Statement
from tinyfuse.kernels.counts.common import Counts, count_calls, memoized
from tinyfuse.ops.elementwise.merged import Merged, Part, reach

#: returns how one element of an operator is computed; None if it cannot be
ElementOf = Callable[[Op], Element | None]

#: number of elements that Helium computes together
FOUR = 4


@dataclass(frozen=True)
class Step:
    """One operator of an expression. `operands`: numbers of its inputs, as in `Part.sources`, without a table."""

    op: Op
    element: Element
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Expression:
    """Operators of a fused loop. `reads`: index of each input that the loop reads -> how the input broadcasts to the
    output (`reach`)."""

    steps: tuple[Step, ...]
    reads: dict[int, str]

    @property
    def dtype(self) -> str:
        """Dtype of the values that are not conditions; int8 if all are."""
        found = {tensor.dtype for step in self.steps for tensor in (*step.op.activations, *step.op.outputs)}
        return next((dtype for dtype in found if dtype != "bool"), "int8")

    @property
    def by_channels(self) -> bool:
        """True if an input or a table differs from channel to channel. The loop then goes over the channels of each
        pixel."""
        tables = (step.element.table for step in self.steps)
        return "channels" in self.reads.values() or any(table is not None and table.ndim > 1 for table in tables)


@lru_cache(maxsize=4096)
def expression_of(element_of: ElementOf, op: Op) -> Expression | None:
    """Expression of a fused operator, or of a single one. None if a part does not work element by element, or if an
    input does not extend over the output in a way that loops support."""
    steps, reads = [], {}
    alone = Part(op, tuple(range(len(op.inputs))))
    for part in op.attributes.parts if isinstance(op.attributes, Merged) else (alone,):
        element = element_of(part.op)
        if element is None:
            return None
        operands = part.sources[: len(element.values_of(part.op))]
        steps.append(Step(part.op, element, operands))
        reads.update({source: reach(op, op.operand(source)) for source in operands if source < len(op.inputs)})
    return None if "" in reads.values() else Expression(tuple(steps), reads)


#: registers that are free for pointers and constants in a loop, and how many of them an operator's constants take, by
#: its `Element.work`
_REGISTERS = 9
_CONSTANTS = {
    "planes": 2, "sums": 4, "products": 1, "rounded_products": 2, "lookups": 1, "channel_lookups": 1, "comparisons": 2,
}  # fmt: skip


def _work(expression: Expression) -> dict[str, int]:
    """Counts of one element of an expression. "clamps": results with a clamp narrower than their dtype; "raised_...":
    scaled values that are not shifted right."""
    loads = sum(how != "single" for how in expression.reads.values())
    work, registers = Counter({"loads": loads, "stores": 1}), loads + 2
    for step in expression.steps:
        kind, fields = step.element.work, step.element.parameters[1] if step.element.parameters else {}
        work[kind] += 1
        if "act_min" in fields and (fields["act_min"], fields["act_max"]) != RANGE.get(step.op.output.dtype):
            work["clamps"] += 1
        if fields.get("out_shift", -1) >= 0:
            work[f"raised_{kind}"] += 1
        registers += _CONSTANTS.get(kind, 0)
    work["spills"] = max(0, registers - _REGISTERS)
    return work


@memoized
def fused_loop_counts(element_of: ElementOf, op: Op, by_row: bool, together: int) -> Counts:
    """Counts of a fused loop: "runs", how often it starts; its iterations, of `together` elements each, times the work
    of an element; "rests", elements that are computed one by one, and "rest_works", their work."""
    expression = expression_of(element_of, op)
    assert expression is not None, "a fused loop"
    elements, calls = op.output.elements, count_calls(op, by_row)
    runs, length = calls, elements // calls
    if expression.by_channels:
        length = op.output.shape[-1]
        runs = elements // length
    work = _work(expression)
    rounds, rests = runs * (length // together), runs * (length % together)
    counts = {name: rounds * each for name, each in work.items()}
    return counts | {"calls": calls, "runs": runs, "rests": rests, "rest_works": rests * sum(work.values())}


#: variable with the index of the pixel's first element, in a loop over channels
_START = "start"
#: parameter with the number of elements, or pixels, of a piece of a call
_COUNT = "count"


class FusedLoop(Kernel):
    """Fused operators, or a single one with a broadcast operand for which no other kernel has a loop. `element_of`
    returns the C function of one element of an operator, `kernel_of` the kernel that this function belongs to; `dtype`:
    see `Expression.dtype`."""

    by_row, rings = True, True
    together = 1  # elements per iteration
    #: part of the name before the dtype
    form = ""

    def __init__(self, element_of: ElementOf, kernel_of: Callable[[Op], Kernel | None], dtype: str = "int8"):
        self._element_of, self._kernel_of, self.dtype = element_of, kernel_of, dtype
        self.name = f"tinyfuse_fused_loop{self.form}_{SUFFIX[dtype]}"
        self.headers = ("tinyfuse_fused_loop.h" if dtype == "int8" else f"tinyfuse_fused_loop_{SUFFIX[dtype]}.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        expression = expression_of(self._element_of, op)
        if expression is None or expression.dtype != self.dtype:
            return False
        return isinstance(op.attributes, Merged) or any(how != "whole" for how in expression.reads.values())

    def parts(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op], ...]:
        """Kernels from plugins among the fused operators; their headers define the functions that compute an
        element."""
        found = ((self._kernel_of(step.op), step.op) for step in self._expression(op).steps)
        return tuple((kernel, part) for kernel, part in found if kernel is not None and kernel.folder is not None)

    def _expression(self, op: Op) -> Expression:
        return require_proven(expression_of(self._element_of, op))

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        elements = rows.divide_by_elements(op, by_row)
        if not self._expression(op).by_channels:
            return elements
        return Division(elements.units // op.output.shape[-1])

    def counts(self, op: Op, by_row: bool) -> Counts:
        return fused_loop_counts(self._element_of, op, by_row, self.together)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        reads, result = self._expression(op).reads, op.output.dtype
        whole = [i for i, how in reads.items() if how == "whole" and not op.operand(i).is_constant]
        # C compilers assume that objects of different types do not overlap, unless one is bytes
        return element_access_orders(op, [i for i in whole if op.operand(i).dtype == result or ITEM_BYTES[result] == 1])

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        expression = self._expression(op)
        read = {i: f"operand{i}" for i, how in expression.reads.items() if how != "single"}
        tables = (
            Constant(f"table{n}", np.roll(step.element.table, 128, axis=-1), "int8_t")
            for n, step in enumerate(expression.steps)
            if step.element.table is not None
        )
        return *rows.constant_operands(op, read), *tables

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _Writer(op, site, self._expression(op)).statements(self.together)


class FusedLoopByFours(FusedLoop):
    """Fused loop that computes four elements at a time with Helium."""

    form = "_fours"
    together = FOUR

    def accepts(self, op: Op, context: Context) -> bool:
        if not context.target.mve or not super().accepts(op, context):
            return False
        return all(step.element.fours for step in self._expression(op).steps)


#: number of elements from which on compilers are told to unroll the loop
_UNROLLED = 8


def _register(tensor: Tensor, four: bool = False) -> str:
    """C type of the variable that holds one element of a tensor in the loop, or four."""
    if four:
        return "int32x4_t"
    return "float" if tensor.dtype == "float32" else "int32_t"


class _Writer:
    """Writes the statements of one call: a function that is not inlined, because the loop's values would compete for
    registers with those of the group."""

    def __init__(self, op: Op, site: CallSite, expression: Expression):
        self.op, self.site, self.expression = op, site, expression
        self.channels = op.output.shape[-1] if op.output.shape else 1
        self.pixels = op.output.elements // (self.channels * (op.output.shape[1] if site.row is not None else 1))

    def statements(self, together: int) -> tuple[Statement, ...]:
        """Parameters and constants, then the loops."""
        by_channels, piece = self.expression.by_channels, self.site.piece
        length = self.pixels if by_channels else rows.element_count(self.op.output, replace(self.site, piece=None))
        count = () if piece is None else (("int32_t", _COUNT, piece.count),)
        times: int | str = _COUNT if count else length
        if not by_channels:
            loops = self._write_loops(times, together)
        else:
            start = Let("int32_t", _START, f"pixel * {self.channels}")
            loops = (Loop("pixel", times, (start, *self._write_loops(self.channels, together))),)
        result = (f"{CTYPE[self.op.output.dtype]} *", "out", self._piece_pointer(self.site.output.pointer))
        body = (*self._define_structs(), *self._define_constants(), *loops)
        return (NoInlineCall((*self._function_parameters(), *count, result), body),)

    def _write_loops(self, length: int | str, together: int) -> tuple[Statement, ...]:
        """Loops over `length` elements."""
        if together == FOUR and (isinstance(length, str) or length >= FOUR):
            fours = f"{length} / 4 * 4" if isinstance(length, str) else length // FOUR * FOUR
            by_fours = Loop("i", fours, self._write_body(four=True), FOUR)
            rest = Loop("i", length, self._write_body(four=False), first=f"TINYFUSE_MVE ? {fours} : 0")
            return PreprocessorIf("TINYFUSE_MVE", (by_fours,)), rest
        long = isinstance(length, str) or length >= _UNROLLED
        return (Loop("i", length, self._write_body(four=False), pragma="TINYFUSE_FUSED_LOOP_UNROLL" if long else ""),)

    def _define_structs(self) -> tuple[Let, ...]:
        return tuple(
            Let(step.element.parameters[0], f"p{n}", step.element.parameters[1])
            for n, step in enumerate(self.expression.steps)
            if step.element.parameters is not None
        )

    def _define_constants(self) -> Iterator[Let]:
        """Definitions of values that are the same for all elements, and of pointers to the tables' entries for 0."""
        for i, how in self.expression.reads.items():
            if how == "single" and self.op.operand(i).is_constant:
                yield Let(_register(self.op.operand(i)), f"a{i}", rows.flat_values(self.op.operand(i))[0].item())
        for n in self._steps_with_tables():
            yield Let("int8_t *const", f"middle{n}", f"tinyfuse_fused_loop_middle(table{n})")

    def _steps_with_tables(self) -> list[int]:
        """Indexes of the steps that look values up in a table."""
        return [n for n, step in enumerate(self.expression.steps) if step.element.table is not None]

    def _function_parameters(self) -> Iterator[tuple[str, str, Expr]]:
        """Parameters of the function: pointers to the first elements that the call reads, values that are the same for
        all elements, and tables."""
        for i, how in self.expression.reads.items():
            tensor = self.op.operand(i)
            if how != "single":
                yield f"const {CTYPE[tensor.dtype]} *", f"source{i}", self._input_pointer(i)
            elif not tensor.is_constant:
                yield _register(tensor), f"a{i}", f"*({self._input_pointer(i)})"
        yield from (("const int8_t *", f"table{n}", self.site.constant(f"table{n}")) for n in self._steps_with_tables())

    def _input_pointer(self, i: int) -> str:
        """C pointer to the first element of input `i` that the call reads."""
        access, tensor, row = self.site.inputs[i], self.op.operand(i), self.site.row
        start = self.site.constant(f"operand{i}") if access is None else access.pointer
        if self.expression.reads[i] != "whole":
            return start
        if row is not None and access is not None:
            start = rows.row_pointer(access, row)
        elif row is not None:
            start = f"{start} + {row} * {tensor.elements // self.op.output.shape[1]}"
        return self._piece_pointer(start)

    def _piece_pointer(self, pointer: str) -> str:
        return rows.piece_pointer(pointer, self.site, self.channels if self.expression.by_channels else 1)

    def _write_body(self, four: bool) -> tuple[Statement, ...]:
        """Body of the loop: loads, operators, and the store, of one element or of `four`."""
        loads = [
            Let(_register(self.op.operand(i), four), f"a{i}", self._load_input(i, how, four))
            for i, how in self.expression.reads.items()
            if how != "single"
        ]
        steps = [
            Let(_register(s.op.output, four), f"r{n}", self._call_step(n, s, four), f"op {s.op.index} {s.op.kind}")
            for n, s in enumerate(self.expression.steps)
        ]
        store = f"tinyfuse_fused_loop_store{'4' if four else ''}_{SUFFIX[self.op.output.dtype]}"
        return *loads, *steps, Call(store, (f"out + {self._element_index('whole')}", f"r{len(steps) - 1}"))

    def _element_index(self, how: str) -> str:
        """C expression of an element's index from the call's first element."""
        return f"{_START} + i" if self.expression.by_channels and how == "whole" else "i"

    def _load_input(self, i: int, how: str, four: bool) -> str:
        """C expression that loads one element of input `i`, or `four`."""
        index, suffix = self._element_index(how), SUFFIX[self.op.operand(i).dtype]
        return f"tinyfuse_fused_loop_load4_{suffix}(source{i} + {index})" if four else f"source{i}[{index}]"

    def _call_step(self, n: int, step: Step, four: bool) -> str:
        """C expression of the result of step `n`."""
        element = step.element
        args: list[Expr] = ["&p" + str(n)] if element.parameters is not None else []
        if element.table is not None:
            args.append(f"middle{n} + 256 * i" if element.table.ndim > 1 else f"middle{n}")
        args += [self._operand(source, four) for source in step.operands]
        args += element.numbers
        return f"{element.function(four)}({', '.join(map(str, args))})"

    def _operand(self, source: int, four: bool) -> str:
        """C expression of an operand: an input's value, or an operator's result."""
        if source >= len(self.op.inputs):
            return f"r{source - len(self.op.inputs)}"
        single = four and self.expression.reads[source] == "single"
        return f"vdupq_n_s32(a{source})" if single else f"a{source}"
