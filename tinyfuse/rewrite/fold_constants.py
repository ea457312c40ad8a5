"""Operators that read only constants are computed now, by their exact reference.

before   %x = DEQUANTIZE(%c);  %y = QUANTIZE(%x);  %z = ADD(%in, %y)
after    %z = ADD(%in, %y')          with %y' the constant

No output of the model can be among them: tinyfuse/check.py refuses that.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph, Tensor
from tinyfuse.ops import FAMILIES


def fold_constants(graph: Graph) -> Graph:
    known: dict[Tensor, Tensor] = {}
    ops = []
    for op in graph.ops:
        inputs = tuple(known.get(t, t) if t is not None else None for t in op.inputs)
        if any(new is not old for new, old in zip(inputs, op.inputs, strict=True)):
            op = replace(op, inputs=inputs)
        if op.activations or op.states:
            ops.append(op)
            continue
        arrays = FAMILIES[op.kind].reference(op, *(t.data if t is not None else None for t in inputs))
        for tensor, array in zip(op.outputs, arrays, strict=True):
            known[tensor] = replace(tensor, data=array)
    return replace(graph, ops=tuple(ops)) if known else graph
