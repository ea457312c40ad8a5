"""Interface of a kernel: one way to compute an operator in C.

A kernel sees only the site of its call (`CallSite`). It does not know where memory planning put a tensor, nor whether
an input is whole or a ring of rows. tinyfuse/kernels/tables/ lists the kernels of each operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tinyfuse.errors import InternalFault
from tinyfuse.ir import ITEM_BYTES, Array, Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.cost import KernelCosts
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.statements import Statement

# --- sites of calls ------------------------------------------------------------


@dataclass(frozen=True)
class TensorAccess:
    """Location of one tensor of a call.

    pointer    C expression of type `T *` (`const T *` for an input), aligned to the elements only, because the tensor
               may be part of another one. For an input: the start of its memory, with row r at row slot `r %
               ring_rows`. For an output of a call by rows: the row to write; otherwise the start of the tensor. A state
               that the operator updates is an input whose pointer is a `T *`.
    ring_rows  number of row slots in the input's memory.
    endless    the tensor is a state kept as a ring and `CallSite.row` counts from the ring's start, so row numbers up
               to twice its height occur.
    row_at     for an output, if a call makes several rows: C pointer to a row, from the C expression of its number.
    """

    tensor: Tensor
    pointer: str
    ring_rows: int
    endless: bool = False
    row_at: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Division:
    """Units into which a call can be divided, to be computed in pieces one after the other.

    units     units of the whole call: elements, columns or output channels.
    multiple  a piece has a multiple of this number of units.
    together  units that are computed together. A remainder is computed separately, and may take 1.5 times as long.
    along     pieces move through the inputs in the call's access order; otherwise each piece may read any byte.
    """

    units: int
    multiple: int = 1
    together: int = 1
    along: bool = True


@dataclass(frozen=True)
class Piece:
    """Part of a call, in units of its `Division`: C expressions of the first unit and of the number of units."""

    first: str
    count: str


@dataclass(frozen=True)
class CallSite:
    """Site for which a kernel writes its call.

    inputs    location of each input; None for a constant or an omitted input.
    row       C expression (int32_t) of the output row to compute; None: the whole output.
    scratch   `uint8_t *` to the bytes that `Kernel.scratch` asked for, or "NULL".
    constant  gives the C symbol of a constant of `Kernel.constants`, by its name.
    module    prefix of the module's C names.
    piece     part of the call to compute; None: all of it.
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
        """C constant that the module's functions return on success."""
        return f"{self.module.upper()}_OK"

    @property
    def state(self) -> str:
        """C expression of the address of the module's state."""
        return "state"

    def program(self, number: int) -> str:
        """Name of the C function that runs a subgraph of the file."""
        return f"{self.module}_subgraph_{number}"

    def input(self, i: int) -> TensorAccess:
        """Location of input `i`. InternalFault if the operator has no such input or it is a constant."""
        access = self.inputs[i] if i < len(self.inputs) else None
        if access is None:
            raise InternalFault("a kernel", f"input {i} of its call lies nowhere")
        return access

    @property
    def output_row(self) -> str:
        """Value of `row`, for a kernel that computes only rows. InternalFault if the call is of a whole output."""
        if self.row is None:
            raise InternalFault("a kernel", "it computes rows, and its call is of a whole output")
        return self.row

    @property
    def output(self) -> TensorAccess:
        """Location of the operator's first output."""
        return self.outputs[0]


@dataclass(frozen=True)
class Constant:
    """Array among a module's weights.

    name   unique within the step.
    data   values; for an array of a C struct, a numpy structured array with the struct's field names.
    ctype  C type of an element.
    align  alignment in bytes that the kernel relies on.
    """

    name: str
    data: Array
    ctype: str
    align: int = 4


# --- kernels ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class AccessOrder:
    """How a call moves forward through one input and its only output, both from their first byte on.

    read      bytes of the input that an iteration reads.
    written   bytes of the output that an iteration writes.
    buffered  an iteration reads all its bytes before it writes the first; otherwise it may read them until it ends.
    rereads   bytes, of those already read, that a later iteration reads again.

    A call for one row moves like this through the first row of its window and the output row. It may read the other
    rows of the window until it ends.
    """

    read: int
    written: int
    buffered: bool = True
    rereads: int = 0

    def distance(self, source: int, output: int) -> int:
        """Smallest distance in bytes, at most `output`, by which an output of `output` bytes must start below an input
        of `source` bytes so that no iteration overwrites input bytes that are still read."""
        # a buffered last iteration has nothing left to read when it writes
        iterations = min(-(-source // self.read), -(-(source + self.rereads) // self.read) - self.buffered)
        # bytes written less bytes used up change linearly, except at the end of the output and the last iteration
        full = output // self.written
        distances = (
            min((iteration + 1) * self.written, output) - (iteration + self.buffered) * self.read + self.rereads
            for iteration in {0, full - 1, full, iterations - 2, iterations - 1}
            if 0 <= iteration < iterations
        )
        return min(max([0, *distances]), output)


def division(kernel: Kernel, op: Op, by_row: bool, context: Context) -> Division | None:
    """Division of the kernel's call, of a row or whole; None if it cannot be made in pieces."""
    return None if kernel.indivisible else kernel.division(op, by_row, context)


def rows_after(row: str, kernel: Kernel, height: int) -> str:
    """C expression of the number of rows made once the call for row `row` has run, in a tensor of `height` rows."""
    after = f"{row} + {kernel.rows_a_call}"
    return after if height % kernel.rows_a_call == 0 else f"tinyfuse_min({after}, {height})"


class Kernel(KernelCosts, ABC):
    """One way to compute an operator in C. KernelCosts tells what its calls cost.

    name          C function that does the work; also the kernel's name in reports.
    library       "tinyfuse" or "cmsis-nn".
    headers       headers that the generated file includes: files of runtime_c/, or arm_nnfunctions.h.
    folder        folder of a plugin's headers; None for all other kernels.
    dtype         dtype of the only outputs that the kernel computes, unless `accepts` says more; empty: any.
    by_row        a call may compute one row of the output, and up to `rows_a_call` - 1 rows after it. It reads only the
                  input rows in their windows, and writes only these rows, which may overwrite inputs only as
                  `row_access_orders` tells.
    whole         a call may compute the whole output.
    rings         calls by rows can read rings (otherwise the needed rows must be contiguous and in order).
    in_order      calls by rows can read sliding rings, whose rows are contiguous and in order; their output rows are,
                  too.
    accumulates   an output row is computed from the row before, which must still be there.
    in_place      indexes of inputs that a call may overwrite element by element, going forward.
    int4_weights  constants have int4 weights, two to a byte.
    weights       value of --weights that the constants implement.
    columns       columns that a call by rows computes together, if it may compute part of a row; 0: it may not.
    pixel_block   pixels of a row that are computed together; a block costs the same if it is not full.
    no_inline     the C loops need more registers than there are, so a group with this kernel becomes a function that
                  is not inlined.
    indivisible   no call computes part of a row, even if the kernel of which this is a variant allows it.
    stack_bytes   stack that a call may take, library code included; `verify` checks the sum.
    """

    name: str
    library: str = "tinyfuse"
    headers: tuple[str, ...] = ()
    folder: Path | None = None
    dtype: str = ""
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
    pixel_block: int = 1
    no_inline: bool = False
    indivisible: bool = False
    stack_bytes: int = 512

    def accepts(self, op: Op, context: Context) -> bool:
        """Tells whether this kernel computes `op` exactly on the context's target."""
        return not self.dtype or op.output.dtype == self.dtype

    def takes_rings(self, op: Op) -> bool:
        """Tells whether calls by rows can read rings, which for some kernels depends on `op`."""
        return self.rings

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        """Access order of a call, whole or of one row, for each input that its output may overwrite. Default: the
        inputs `in_place`, element by element."""
        return element_access_orders(op, self.in_place)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        """Access orders of calls of one row, if windows of several columns may overlap."""
        return self.access_orders(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Constant arrays that the call refers to, packed as the C expects them."""
        return ()

    def scratch(self, op: Op, context: Context) -> int:
        """Bytes of scratch that any call (whole or of a row) needs; scratch is aligned to 16 bytes."""
        return 0

    def parts(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op], ...]:
        """Kernels that a call uses for operators inside `op`, each with its operator. Their headers are included
        too."""
        return ()

    def work(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op, float], ...]:
        """(kernel, operator, times) for kernels that the calls run in addition to the work in `counts`; an inference
        runs each `times` times."""
        return ()

    def element(self, op: Op) -> Element | None:
        """Function that computes one element of `op` in registers, from operands of any shape; None if `op` cannot be
        part of a fused loop."""
        return None

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        """Division of a call, of a row or whole, into pieces; None if it cannot be divided."""
        return Division(op.output.shape[2], self.columns) if self.columns and by_row else None

    @abstractmethod
    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """C statements that compute the site's output, or its row."""


class RowKernel(Kernel):
    """Base of kernels whose calls compute one output row each, from whole inputs or from rings of rows."""

    by_row, whole, rings = True, False, True


_Form = TypeVar("_Form", bound=Kernel)


def by_rows(kernel: _Form) -> _Form:
    """Form of a kernel of whole images whose calls compute one output row each, as those of RowKernel do."""
    form = copy(kernel)
    form.by_row, form.whole, form.rings = True, False, True
    return form


_Layer = TypeVar("_Layer")


def require_proven(layer: _Layer | None) -> _Layer:
    """Returns a layer form that `accepts` has proven exact. InternalFault if it is None."""
    if layer is None:
        raise InternalFault("a kernel", "its operator has not the form that it was accepted in")
    return layer


def element_access_orders(op: Op, indexes: Collection[int]) -> dict[int, AccessOrder]:
    """Access orders of a call that reads the inputs `indexes` element by element. InternalFault if one of them does not
    have as many elements as the output."""
    if any(op.operand(i).elements != op.output.elements for i in indexes):
        raise InternalFault("the access orders of kernels", f"{op} has an input of another size than its output")
    return {i: AccessOrder(ITEM_BYTES[op.operand(i).dtype], ITEM_BYTES[op.output.dtype]) for i in indexes}
