"""C expressions for rows and pieces of tensors, and for operands that are constants or computed by the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Division, Kernel, TensorAccess


def offset_pointer(pointer: str, offset: int) -> str:
    """C expression of a `uint8_t *` plus `offset` bytes."""
    return f"{pointer} + {offset}" if offset else pointer


def row_pointer(access: TensorAccess, row: str) -> str:
    """C pointer to row `row` (a C expression) of an input [1, H, W, C] that is whole or a ring."""
    tensor = access.tensor
    if access.ring_rows == 1:
        return access.pointer
    slot = row if access.ring_rows >= tensor.shape[1] and not access.endless else f"({row} % {access.ring_rows})"
    return f"{access.pointer} + {slot} * {tensor.elements // tensor.shape[1]}"


def output_rows(kernel: Kernel, op: Op, site: CallSite) -> tuple[str, ...]:
    """C pointers to the rows that a call makes, `Kernel.rows_a_call` of them; if fewer are left, the last one again."""
    access, height = site.output, op.output.shape[1]
    if kernel.rows_a_call == 1:
        return (access.pointer,)
    if access.row_at is None:
        raise InternalFault("a kernel", f"{kernel.name} was not told where its rows lie")
    rows = [f"{site.output_row} + {k}" for k in range(1, kernel.rows_a_call)]
    there = height % kernel.rows_a_call == 0
    numbers = [f"({row})" if there else f"tinyfuse_min({row}, {height - 1})" for row in rows]
    return (access.pointer, *map(access.row_at, numbers))


def element_count(tensor: Tensor, site: CallSite) -> int | str:
    """Number of elements that a call computes: those of the whole tensor, of one of its rows, or of a piece."""
    if site.piece is not None:
        return site.piece.count
    return tensor.elements if site.row is None else tensor.elements // tensor.shape[1]


def input_pointer(site: CallSite, index: int) -> str:
    """C pointer to the first element that an elementwise call reads."""
    access = site.input(index)
    pointer = access.pointer if site.row is None else row_pointer(access, site.row)
    return piece_pointer(pointer, site)


def output_pointer(site: CallSite) -> str:
    """C pointer to the first element that an elementwise call writes."""
    return piece_pointer(site.output.pointer, site)


def piece_pointer(pointer: str, site: CallSite, size: int = 1) -> str:
    """C pointer to the first unit of a call's piece, each unit of `size` elements; `pointer` itself if the call is not
    a piece, or is the first."""
    if site.piece is None or site.piece.first == "0":
        return pointer
    return f"{pointer} + {site.piece.first}{f' * {size}' if size > 1 else ''}"


def previous_row(site: CallSite, elements: int) -> str:
    """C pointer to the previous output row (NULL for the first row). It lies `elements` elements before the current
    row, or at the same address in a ring of one row."""
    access = site.output
    before = access.pointer if access.ring_rows == 1 else f"{access.pointer} - {elements}"
    return f"{site.output_row} > 0 ? {before} : NULL"


def divide_by_elements(op: Op, by_row: bool) -> Division:
    """Division of a call that computes one element after the other."""
    return Division(op.output.elements // op.output.shape[1] if by_row else op.output.elements)


def vectors(op: Op, site: CallSite) -> tuple[str, int]:
    """C pointer to the first input vector of a call, and the number of vectors, for a layer that computes each output
    vector from one input vector. A piece of a call reads all of these vectors, too."""
    access, rows = site.input(0), 1 if site.row is None else op.output.shape[1]
    pointer = access.pointer if site.row is None else row_pointer(access, site.row)
    return pointer, op.output.elements // rows // op.output.shape[-1]


def flat_values(tensor: Tensor) -> Array:
    """Elements of a constant as a 1-D array in the file's layout, with the dtype of the C array (uint8 for bool)."""
    values = np.ascontiguousarray(tensor.values).reshape(-1)
    return values.astype(np.uint8) if tensor.dtype == "bool" else values


def constant_operands(op: Op, names: Mapping[int, str] | None = None) -> tuple[Constant, ...]:
    """Constants of a kernel, one for each constant operand in the order of `names`, with the values of `flat_values`.

    `names`: index of the operand -> name of the constant; None: all operands are named `operand{i}`.
    """
    if names is None:
        names = {i: f"operand{i}" for i in range(len(op.operands))}
    operands = ((name, op.operand(i)) for i, name in names.items())
    return tuple(
        Constant(name, flat_values(tensor), CTYPE[tensor.dtype]) for name, tensor in operands if tensor.is_constant
    )


def operand_pointers(site: CallSite, names: Mapping[int, str]) -> tuple[str, ...]:
    """C pointers to the operands with these indexes, constant or not. `names`: see `constant_operands`."""
    return tuple(site.constant(name) if site.inputs[i] is None else site.input(i).pointer for i, name in names.items())


def row_pointers(site: CallSite, steps: Sequence[int]) -> list[str]:
    """C pointers to the row of each operand that a call reads; a constant operand is named `operand{i}`. `steps`:
    elements from one row of each operand to the next; 0 if all output rows read the same row."""
    found = []
    for i, (access, step) in enumerate(zip(site.inputs, steps, strict=True)):
        pointer = site.constant(f"operand{i}") if access is None else access.pointer
        if site.row is not None and step:
            pointer = f"{pointer} + {site.row} * {step}" if access is None else row_pointer(access, site.row)
        found.append(pointer)
    return found


def with_constant_input(op: Op, site: CallSite, index: int = 0, name: str = "data") -> CallSite:
    """Replaces input `index` of a call by the constant `name` if the operator's input is a constant; otherwise returns
    the site unchanged."""
    if site.inputs[index] is not None:
        return site
    data = op.operand(index)
    rows = data.shape[1] if len(data.shape) == 4 else 1
    access = TensorAccess(data, site.constant(name), rows)
    return replace(site, inputs=(*site.inputs[:index], access, *site.inputs[index + 1 :]))


class KernelOfOperands(Kernel):
    """Base of kernels that read operands in the file's layout, constant or not. `operands`: index -> name of the
    constant."""

    operands: ClassVar[Mapping[int, str]]

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return constant_operands(op, self.operands)

    def pointers(self, site: CallSite) -> tuple[str, ...]:
        """C pointers to the operands."""
        return operand_pointers(site, self.operands)
