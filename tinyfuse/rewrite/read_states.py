"""Kernels read variables in place, not from a copy.

before   %v = READ_VARIABLE(%s);  %h = RESHAPE(%v);  %y = ROWS_MATMUL(%q, %h)
after    %y = ROWS_MATMUL(%q, %s)                                             %s in the shape and quantization of %h.

Applied only if all readers have kernels that can read a variable in place (`OpFamily.from_states`), if they read it in
one shape and quantization, and if it changes only after the last of them. Operators on states keep their order in the
file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.rewrite.update_states import reads_variable


@dataclass(frozen=True, eq=False)
class _Copy:
    """A removable copy of a state.

    `copies` are the tensors that hold the state's value, `ops` the operators that make them. `seen` is the one of
    `copies` that has the shape in which all readers read the value.
    """

    state: Tensor
    copies: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    seen: Tensor


def read_states(graph: Graph) -> Graph:
    """Remove copies of variables whose readers can all read the variable in place."""
    forms: dict[Tensor, Tensor] = {}  # state -> the state in its readers' form
    instead: dict[Tensor, Tensor] = {}
    gone: set[Op] = set()
    for op in graph.ops:
        found = _copy(graph, op) if reads_variable(op) else None
        if found is None:
            continue
        form = forms.get(found.state) or _in_form(found.state, found.seen)
        if not _alike(form, found.seen):
            continue
        forms[found.state] = form
        instead.update(dict.fromkeys((found.state, *found.copies), form))
        gone.update(found.ops)
    if not instead:
        return graph
    after = replace(graph, ops=tuple(op.reading(instead) for op in graph.ops if op not in gone))
    return after if _in_files_order(after) else graph


def _copy(graph: Graph, read: Op) -> _Copy | None:
    """Return the removable copy that a READ_VARIABLE makes; None if the copy must stay."""
    state, place = read.input, graph.ops.index(read)
    if state.lent or state.cursor is not None:
        return None
    copies, ops, last = [read.output], [read], place
    seen: dict[Tensor, None] = {}
    for at, op in enumerate(graph.ops[place + 1 :], place + 1):
        places = [i for i, tensor in enumerate(op.inputs) if tensor in copies]
        if not places:
            continue
        family = FAMILIES[op.kind]
        if family.alias:
            copies.append(op.output)
            ops.append(op)
        elif set(places) <= set(family.from_states):
            seen.update(dict.fromkeys(op.operand(i) for i in places))
            last = at
        else:
            return None
    if not seen or any(tensor in graph.outputs for tensor in copies):
        return None
    first, *others = seen
    if not all(_alike(first, other) for other in others):
        return None
    changes = (op for op in graph.ops[place:last] if state in (op.operand(i) for i in FAMILIES[op.kind].updated(op)))
    return None if any(changes) else _Copy(state, tuple(copies), tuple(ops), first)


def _alike(one: Tensor, other: Tensor) -> bool:
    return (one.shape, one.quant) == (other.shape, other.quant)


def _in_form(state: Tensor, seen: Tensor) -> Tensor:
    """Return the state with the shape and quantization in which its readers read it."""
    return replace(state, shape=seen.shape, quant=seen.quant, initial=_shaped(state.initial_values, seen.shape))


def _shaped(values: Array, shape: tuple[int, ...]) -> Array:
    if values.strides == (0,) * values.ndim:  # a single value, broadcast
        return np.broadcast_to(values.reshape(-1)[0], shape)
    return values.reshape(shape)


def _in_files_order(graph: Graph) -> bool:
    numbers = [op.index for op in graph.ops if op.states and op.index >= 0]
    return numbers == sorted(numbers)
