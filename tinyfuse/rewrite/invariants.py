"""Checks what must hold of every graph before and after each pass; tests run it between passes (`OBSERVERS`).

Faults of a file are reported by the reader and the rules; a graph that breaks an invariant is a bug in tinyfuse.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import FLOAT16, INT4, ITEM_BYTES, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES


def check_graph(graph: Graph, where: str) -> None:
    """Raise InternalFault with the first invariant that `graph` breaks; `where` names the pass or stage for the
    message."""
    broken = next(broken_invariants(graph), None)
    if broken is not None:
        raise InternalFault(where, broken)


def check_pass(name: str, before: Graph, after: Graph) -> None:
    """Run `check_graph` on a pass's result, and check that the model's inputs and outputs are unchanged."""
    where = f"the check of the graph after {name}"
    check_graph(after, where)
    for ends, had, has in (("inputs", before.inputs, after.inputs), ("outputs", before.outputs, after.outputs)):
        if had != has:
            raise InternalFault(where, f"the {ends} of the model are not those that it had")


def broken_invariants(graph: Graph) -> Iterator[str]:
    """Yield a sentence for each broken invariant."""
    yield from _ends(graph)
    yield from _order(graph)
    for tensor in _tensors(graph):
        yield from _tensor(tensor)
    yield from _indices(graph)
    for op in graph.ops:
        yield from _operator(op)


def _ends(graph: Graph) -> Iterator[str]:
    if not graph.outputs:
        yield "the graph has no outputs"
    for tensor in graph.inputs:
        if tensor.is_constant or tensor.is_state:
            yield f"{tensor} is an input of the graph, and a constant or a state"
    if len(set(graph.inputs)) < len(graph.inputs):
        yield "an input of the graph is listed twice"


def _order(graph: Graph) -> Iterator[str]:
    """Check that each tensor is made once and before it is read, and that constants, states and graph inputs are never
    made."""
    made = set(graph.inputs)
    seen: set[Op] = set()
    for op in graph.ops:
        if op in seen:
            yield f"{op} runs twice"
        seen.add(op)
        for tensor in op.activations:
            if tensor not in made:
                yield f"{op} reads {tensor}, which nobody made before it"
        for tensor in op.outputs:
            if tensor.is_constant or tensor.is_state:
                yield f"{op} makes {tensor}, a constant or a state"
            elif tensor in made:
                yield f"{op} makes {tensor}, which was there before it"
            made.add(tensor)
    for tensor in graph.outputs:
        if tensor not in made:
            yield f"{tensor} is an output of the graph, and nobody makes it"


def _tensors(graph: Graph) -> list[Tensor]:
    """Return every tensor of the graph once."""
    read = [t for op in graph.ops for t in (*op.inputs, *op.states) if t is not None]
    return list(dict.fromkeys([*graph.inputs, *read, *(t for op in graph.ops for t in op.outputs), *graph.outputs]))


def _tensor(tensor: Tensor) -> Iterator[str]:
    if tensor.dtype not in ITEM_BYTES and not (tensor.dtype in (INT4, FLOAT16) and tensor.is_constant):
        yield f"{tensor} has no dtype that we know"
    if any(dim < 0 for dim in tensor.shape):
        yield f"{tensor} has a shape that is not static"
    if tensor.is_constant and tensor.is_state:
        yield f"{tensor} is a constant and a state"
    stored = "int8" if tensor.dtype == INT4 else tensor.dtype
    for what, values in (("data", tensor.data), ("initial value", tensor.initial)):
        if values is not None and (values.shape != tensor.shape or values.dtype != np.dtype(stored)):
            yield f"{tensor} has {what} of {values.dtype}{list(values.shape)}"
    cursor = tensor.cursor
    if cursor is not None and not (
        tensor.is_state and cursor.is_state and (cursor.dtype, cursor.shape) == ("int32", (1,))
    ):
        yield f"{tensor} has a cursor, and one of the two is not a state, or the cursor is not int32[1]"
    yield from _quantization(tensor)


def _quantization(tensor: Tensor) -> Iterator[str]:
    quant = tensor.quant
    if quant is None:
        return
    if len(quant.scale) != len(quant.zero_point):
        yield f"{tensor} has {len(quant.scale)} scales and {len(quant.zero_point)} zero points"
    # the scale of constant zeros may be 0
    if not all(np.isfinite(scale) and (scale > 0 or (scale == 0 and tensor.is_constant)) for scale in quant.scale):
        yield f"{tensor} has a scale that is not a positive number"
    if quant.per_channel:
        if not 0 <= quant.axis < len(tensor.shape):
            yield f"{tensor} is quantized along dimension {quant.axis}, which it has not"
        elif tensor.shape[quant.axis] != len(quant.scale):
            yield f"{tensor} has {len(quant.scale)} scales for {tensor.shape[quant.axis]} channels"


def _indices(graph: Graph) -> Iterator[str]:
    """Check that no two activations share an index: their buffers would share a name."""
    made = [*graph.inputs, *(tensor for op in graph.ops for tensor in op.outputs)]
    known: dict[int, Tensor] = {}
    for tensor in dict.fromkeys(made):
        if tensor.index >= 0 and known.setdefault(tensor.index, tensor) is not tensor:
            yield f"{tensor} has the index of {known[tensor.index]}"


def _operator(op: Op) -> Iterator[str]:
    """Check the operator against its family's rules: shapes, dtypes, quantization, attributes."""
    family = FAMILIES.get(op.kind)
    if family is None:
        yield f"{op} is of no family"
        return
    for i in family.updated(op) + family.reads:
        tensor = op.inputs[i] if i < len(op.inputs) else None
        if i < len(op.inputs) and (tensor is None or not tensor.is_state):
            yield f"{op}: its input {i} is not a state"
    for rule in family.rules:
        problem = rule.problem(op)
        if problem is not None:
            yield f"{op} breaks a rule: {problem}"
            return  # later rules rely on this one
