"""Operands that are either constants of the file or computed by the run, for kernels that read both in the same
layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.kernel import CallSite, Constant, TensorAccess


def constant_operands(op: Op, names: Mapping[int, str]) -> tuple[Constant, ...]:
    """Constants of a kernel for the operands that are constant, in the order of `names`, each flattened in the file's
    layout. `names`: index of the operand -> name of the constant."""
    operands = ((name, op.operand(i)) for i, name in names.items())
    return tuple(
        Constant(name, np.ascontiguousarray(tensor.values).reshape(-1), CTYPE[tensor.dtype])
        for name, tensor in operands
        if tensor.is_constant
    )


def operand_pointers(site: CallSite, names: Mapping[int, str]) -> tuple[str, ...]:
    """C pointers to the operands with these indexes, constant or not. `names`: see `constant_operands`."""
    return tuple(site.constant(name) if site.inputs[i] is None else site.input(i).pointer for i, name in names.items())


def with_constant_input(op: Op, site: CallSite, index: int = 0, name: str = "data") -> CallSite:
    """Replaces input `index` of a call by the constant `name` if the operator's input is a constant; otherwise returns
    the site unchanged."""
    if site.inputs[index] is not None:
        return site
    data = op.operand(index)
    rows = data.shape[1] if len(data.shape) == 4 else 1
    access = TensorAccess(data, site.constant(name), rows)
    return replace(site, inputs=(*site.inputs[:index], access, *site.inputs[index + 1 :]))
