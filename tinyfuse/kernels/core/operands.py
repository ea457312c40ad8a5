"""Operands that are either constants of the file or computed by the run, for kernels that read both in the same
layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, TensorAccess
from tinyfuse.kernels.core.rows import row_pointer


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
