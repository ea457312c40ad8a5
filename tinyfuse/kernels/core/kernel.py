"""What a kernel is: one way to compute an operator in C, and what it knows of the place of its call.

Kernels see only where their call stands (`CallSite`), so they don't know where memory planning put a tensor, nor
whether an input is whole or a ring of rows. Which kernels serve which operator: tinyfuse/kernels/tables/.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from tinyfuse.board_timing import BoardTiming
from tinyfuse.errors import InternalFault
from tinyfuse.ir import ITEM_BYTES, Array, Op, Tensor
from tinyfuse.kernels.core.cost import KernelCosts
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.once import hashed_once
from tinyfuse.targets import Target

# --- where a kernel's call stands ------------------------------------------------------------


@dataclass(frozen=True)
class TensorAccess:
    """Where a kernel finds one tensor.

    `pointer` is a C expression of type `T *` (`const T *` for an input). For an input it is the
    start of the memory; row r of the tensor lies `(r % ring_rows)` rows after it. For an output
    of a call by rows it is the start of the very row to write; else the start of the tensor.
    A state that the operator updates is an input whose pointer is a `T *`. It is aligned to the
    elements and no more: the tensor may be a part of another one.
    `endless`: the tensor is a state that is a ring, and `CallSite.row` counts from the ring's start, so
    that rows up to twice its height are asked for.
    `next_row`: of an output, for a kernel that computes two rows a call, where the row after goes; where the tensor has
    none, the same row. `row_at`: of an output, for one that computes more, where each of the call's rows goes, by its
    number.
    """

    tensor: Tensor
    pointer: str
    ring_rows: int
    endless: bool = False
    next_row: str = ""
    row_at: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Division:
    """How a call may be made in pieces, one after the other.

    units     of the call in all: elements, columns, output channels
    multiple  a piece has a multiple of so many units
    together  units that are computed together, of any number the last ones alone, which takes up to half as much again
    along     the pieces go through the inputs as the call's access order does; else each of them may read any byte
    """

    units: int
    multiple: int = 1
    together: int = 1
    along: bool = True


@dataclass(frozen=True)
class Piece:
    """A piece of a call, in units of its `Division`: the first one and how many, C expressions."""

    first: str
    count: str


@dataclass(frozen=True)
class CallSite:
    """What a kernel needs to know to write its call.

    `piece`: what of the call is to be computed, None for all of it. `row` is the C expression (int32_t) of the output
    row to compute, or None: the whole output. `scratch` is a `uint8_t *` with the bytes that `Kernel.scratch` asked
    for, or "NULL". `constant(name)` gives the C symbol of a constant that `Kernel.constants` made. `module` is the
    prefix of the module's C names.
    """

    inputs: tuple[TensorAccess | None, ...]
    outputs: tuple[TensorAccess, ...]
    row: str | None
    scratch: str
    constant: Callable[[str], str]
    module: str = "net"
    piece: Piece | None = None

    @property
    def ok(self) -> str:
        """The C constant that the module's functions return where all went well."""
        return f"{self.module.upper()}_OK"

    @property
    def state(self) -> str:
        """The address of the module's state, in a function that uses any."""
        return "state"

    def program(self, number: int) -> str:
        """The C function that runs a subgraph of the file."""
        return f"{self.module}_subgraph_{number}"

    def input(self, i: int) -> TensorAccess:
        """Where input `i` lies; InternalFault where the operator has none, or it is a constant."""
        access = self.inputs[i] if i < len(self.inputs) else None
        if access is None:
            raise InternalFault("a kernel", f"input {i} of its call lies nowhere")
        return access

    @property
    def output_row(self) -> str:
        """`row`, for a kernel that computes rows alone; InternalFault where the call is of a whole output."""
        if self.row is None:
            raise InternalFault("a kernel", "it computes rows, and its call is of a whole output")
        return self.row

    @property
    def output(self) -> TensorAccess:
        """Where the operator's first output lies."""
        return self.outputs[0]


@dataclass(frozen=True)
class Constant:
    """An array of a module's weights: `name` is unique within the step.

    `ctype` is the C element type; an array of a struct type is given as a numpy structured array
    whose field names are the struct's. `align` is the alignment in bytes that the kernel relies on.
    """

    name: str
    data: Array
    ctype: str
    align: int = 4


# --- kernels ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class AccessOrder:
    """How a call goes forward through one input and its only output, both from their first byte on: iteration by
    iteration it reads `read` bytes of the input and writes `written` bytes of the output. `buffered`: an iteration has
    read its bytes before it writes the first; else it may read them again until it ends.

    A call for one row goes so through the first row of its window and the output row. What it reads of the
    window's other rows, it may read until it ends. `rereads`: so many bytes of what was read already, a later
    iteration reads again.
    """

    read: int
    written: int
    buffered: bool = True
    rereads: int = 0

    def distance(self, source: int, output: int) -> int:
        """How far an output of so many bytes must start below a source so that each iteration writes below what
        it, or a later one, still reads; at most `output`."""
        # the iterations while which something is still to be read: not a buffered last one
        iterations = min(-(-source // self.read), -(-(source + self.rereads) // self.read) - self.buffered)
        # what is written less what is used up grows or shrinks evenly, but where output or last iteration end
        full = output // self.written
        distances = (
            min((iteration + 1) * self.written, output) - (iteration + self.buffered) * self.read + self.rereads
            for iteration in {0, full - 1, full, iterations - 2, iterations - 1}
            if 0 <= iteration < iterations
        )
        return min(max([0, *distances]), output)


@hashed_once
@dataclass(frozen=True)
class Objective:
    """What a plan should spare, as far as it decides which kernels may be used.

    optimize           one of OPTIMIZE: "speed", "balanced" or "ram". The search tries all three, so it need not be what
                       the user asked for
    at_once            maximum rows of an image that one call of a CMSIS-NN function makes inside a group
    limit_ram          the user did not ask for speed alone, so no kernel may buy speed with any amount of RAM
    min_scratch        prefer the kernel with the least scratch among those that are not far slower
    allow_scratch_for  names of output tensors; `min_scratch` does not apply to the operators that make them
    """

    optimize: str = "balanced"
    at_once: int = 1
    limit_ram: bool = False
    min_scratch: bool = False
    allow_scratch_for: frozenset[str] = frozenset()


class ObjectiveAsked(Exception):
    """An answer depends on the objective, and the context has none."""


@hashed_once
@dataclass(frozen=True)
class Context:
    """Everything except the operator that decides which kernels may be used.

    target       the core and its instruction set
    cmsis_nn     CMSIS-NN's version, (4, 0) to (7, 0)
    kernels      the choice of the user: "auto", "cmsis-nn" (ours only where it has none) or "tinyfuse" (never CMSIS-NN)
    lacks        names of kernels that may not be used, for instance functions that a copy of CMSIS-NN left out
    weights      "unpacked" and "winograd" prefer kernels whose weights take more flash (`Kernel.weights`), "compressed"
                 those whose weights take less; "auto" weighs flash against instructions
    flash_price  predicted instructions that a byte of flash must save ("auto"), or may cost ("compressed"); None: any
    step         operators that stand alone are called row by row where possible
    divided      calls are made in pieces, so kernels that can be divided are preferred
    cycles       the board whose estimated cycles are counted; None: instructions are counted
    objective    None for an answer that holds for every objective: the properties below then raise ObjectiveAsked
    """

    target: Target
    cmsis_nn: tuple[int, int] = (7, 0)
    kernels: str = "auto"
    lacks: frozenset[str] = frozenset()
    weights: str = "packed"
    flash_price: float | None = None
    step: bool = False
    divided: bool = False
    cycles: BoardTiming | None = None
    objective: Objective | None = Objective()

    @property
    def _asked(self) -> Objective:
        if self.objective is None:
            raise ObjectiveAsked
        return self.objective

    @property
    def optimize(self) -> str:
        """`Objective.optimize`."""
        return self._asked.optimize

    @property
    def at_once(self) -> int:
        """`Objective.at_once`."""
        return self._asked.at_once

    @property
    def min_scratch(self) -> bool:
        """`Objective.min_scratch`."""
        return self._asked.min_scratch

    @property
    def allow_scratch_for(self) -> frozenset[str]:
        """`Objective.allow_scratch_for`."""
        return self._asked.allow_scratch_for

    @property
    def speed_alone(self) -> bool:
        """True if kernels may take any amount of RAM."""
        return self._asked.optimize == "speed" and not self._asked.limit_ram

    def wants_least_scratch(self, op: Op) -> bool:
        """Tells whether `op` should get the kernel with the least scratch."""
        return self.min_scratch and not any(tensor.name in self.allow_scratch_for for tensor in op.outputs)


@lru_cache
def interned(context: Context) -> Context:
    """Returns the first of all equal contexts, so that cache lookups compare by identity."""
    return context


def with_objective(context: Context, **changes: Any) -> Context:
    """Copies the context with other fields of its objective. ObjectiveAsked if it has none."""
    return replace(context, objective=replace(context._asked, **changes))


@lru_cache
def without_objective(context: Context) -> Context:
    """Copies the context without its objective. Contexts that differ only in their objectives share one copy.

    A function of a context that returns here without ObjectiveAsked returns the same for every objective, so its result
    can be cached for all of them.
    """
    return interned(replace(context, objective=None))


def division(kernel: Kernel, op: Op, by_row: bool, context: Context) -> Division | None:
    """How the kernel's call, of a row or whole, may be made in pieces; None where it may not."""
    return None if kernel.indivisible else kernel.division(op, by_row, context)


def rows_after(row: str, kernel: Kernel, height: int) -> str:
    """C for how many rows there are after a call by rows for row `row`, of a tensor of so many."""
    after = f"{row} + {kernel.rows_a_call}"
    return after if height % kernel.rows_a_call == 0 else f"tinyfuse_min({after}, {height})"


class Kernel(KernelCosts, ABC):
    """One way to compute an operator in C. What its calls cost: KernelCosts.

    name       the C function that does the work; also the kernel's name in reports
    library    "tinyfuse" or "cmsis-nn"
    headers    what the generated file includes for it: files of runtime_c/, or arm_nnfunctions.h
    folder     where its headers lie that are neither (a plugin's)
    by_row     `call` accepts a site with a row: computes that output row, and `rows_a_call` - 1 after it, as far as
               there are so many
    whole      `call` accepts a site without a row: computes the whole output
    rings      by rows, inputs may be rings (else the needed rows must lie in order in memory)
    in_order   by rows, inputs may be rings that slide, so that their rows lie in order; those that a call makes do too
    accumulates  a row of the output is made from the row before it, which must have been kept
    in_place   indexes of inputs that a call may overwrite, element for element, going forward
    int4_weights    its constants have weights of int4 two to a byte
    weights    the --weights that its constants are in
    columns    by rows, a call may compute some columns of a row (its `division`), so many of them together; 0: all
    no_inline     its loops are C with more values than registers: a group with it is a function that isn't inlined, for
               among others a compiler keeps some of the values in memory
    indivisible  calls are whole: none computes a part of a row, though those of the kernel that it is a form of may
    stack_bytes  stack that a call may take, library code included; `verify` checks the sum
    """

    name: str
    library: str = "tinyfuse"
    headers: tuple[str, ...] = ()
    folder: Path | None = None
    by_row: bool = False
    rows_a_call: int = 1
    whole: bool = True
    rings: bool = False
    in_order: bool = False
    accumulates: bool = False
    in_place: tuple[int, ...] = ()
    int4_weights: bool = False
    weights: str = "packed"
    columns: int = 0
    no_inline: bool = False
    indivisible: bool = False
    stack_bytes: int = 512

    def accepts(self, op: Op, context: Context) -> bool:
        """Whether this kernel computes `op` exactly on this target."""
        return True

    def takes_rings(self, op: Op) -> bool:
        """Whether, by rows, any of the inputs may be a ring: for some kernels it depends on `op`."""
        return self.rings

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        """Per input that the output of a call may overwrite once it is read, how the call, whole or of one
        row, goes through it. Default: the inputs `in_place`, element for element."""
        return element_access_orders(op, self.in_place)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        """The same of calls of one row alone, where windows of several columns may overlap."""
        return self.access_orders(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """The constant arrays that the call refers to, packed as the C expects them."""
        return ()

    def scratch(self, op: Op, context: Context) -> int:
        """Bytes of scratch for any call (whole or any row), aligned to 16."""
        return 0

    def parts(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op], ...]:
        """The kernels that its calls call for operators which `op` stands for, each with its operator. Their headers
        come with the kernel's own."""
        return ()

    def element(self, op: Op) -> Element | None:
        """How one element of `op` is computed in registers, where its operands may be of any shape; None where it can't
        be a part of a merged loop."""
        return None

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        """How a call, of a row or whole, may be made in pieces; None where it may not."""
        return Division(op.output.shape[2], self.columns) if self.columns and by_row else None

    @abstractmethod
    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """The C that computes the site's output (or its row)."""


_Layer = TypeVar("_Layer")


def proven(layer: _Layer | None) -> _Layer:
    """A layer in a form that `accepts` has proven exact; InternalFault where it hasn't."""
    if layer is None:
        raise InternalFault("a kernel", "its operator has not the form that it was accepted in")
    return layer


def element_access_orders(op: Op, indexes: Collection[int]) -> dict[int, AccessOrder]:
    """Of inputs with as many elements as the output, that a call goes through element by element."""
    if any(op.operand(i).elements != op.output.elements for i in indexes):
        raise InternalFault("the access orders of kernels", f"{op} has an input of another size than its output")
    return {i: AccessOrder(ITEM_BYTES[op.operand(i).dtype], ITEM_BYTES[op.output.dtype]) for i in indexes}
