"""Operators that compute the same from the same tensors become one.

before   %a = CONV_2D(%in, %w, %b);  %c = CONV_2D(%in, %w2, %b2)      with equal weights and biases
after    %a = CONV_2D(%in, %w, %b)                                    %a in place of %c

Constants are compared by content, results by shape, dtype and quantization. A model output keeps
its own operator, and so does one with state.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from tinyfuse.ir import Graph, Op, Tensor


def share_results(graph: Graph) -> Graph:
    """Return the graph in which equal results are computed once."""
    first: dict[Hashable, list[Op]] = {}
    instead: dict[Tensor, Tensor] = {}
    ops = []
    for op in graph.ops:
        op = op.reading(instead)
        alike = first.setdefault(_likeness(op), [])
        # contents are compared only if all else is equal, which is rare
        twin = next((other for other in alike if _meaning(other) == _meaning(op)), op)
        if twin is op:
            alike.append(op)
        if twin is op or op.states or not op.outputs or any(tensor in graph.outputs for tensor in op.outputs):
            ops.append(op)
        else:
            instead |= dict(zip(op.outputs, twin.outputs, strict=True))
    return replace(graph, ops=tuple(ops)) if instead else graph


def _likeness(op: Op) -> Hashable:
    """Return a key that differs only for operators that compute different results: cheap to compute."""
    inputs = (t if t is None or t.data is None else (t.shape, t.dtype) for t in op.inputs)
    return op.kind, op.attributes, tuple(inputs), tuple((tensor.shape, tensor.dtype) for tensor in op.outputs)


def _meaning(op: Op) -> Hashable:
    """Return a key that is equal only for operators that compute the same result."""
    return (
        op.kind,
        op.attributes,
        tuple(_value(tensor) for tensor in op.inputs),
        tuple((tensor.shape, tensor.dtype, tensor.quant) for tensor in op.outputs),
    )


def _value(tensor: Tensor | None) -> Hashable:
    """Return a key equal for equal constants; an activation is its own key."""
    if tensor is None or tensor.data is None:
        return tensor
    return (tensor.shape, tensor.dtype, tensor.quant, tensor.data.tobytes())
