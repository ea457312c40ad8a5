"""Operators whose output equals their input are dropped.

before   %a = QUANTIZE(%in);  %b = RELU(%a)       with one quantization for all, %in never below its zero point;
after    (nothing)                                %in in place of %b.

For an operator that maps element by element, equality is proven with its reference, for every stored value that its
input can hold (rewrite/intervals.py). A PAD of nothing and a CONCATENATION of one tensor need no proof. Input and
output must have the same quantization, and must not be an input and an output of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.rewrite.intervals import Interval, channel_intervals


def drop_identities(graph: Graph) -> Graph:
    """Return the graph without operators whose output is proven equal to their input."""
    intervals = cache(lambda: channel_intervals(graph))  # lazy: few graphs have operators that need them
    instead: dict[Tensor, Tensor] = {}
    ops = []
    for op in graph.ops:
        op = op.reading(instead)
        if op.outputs and op.output not in graph.outputs and _is_identity(op, intervals):
            instead[op.output] = op.input
        else:
            ops.append(op)
    return replace(graph, ops=tuple(ops)) if instead else graph


def _is_identity(op: Op, intervals: Callable[[], dict[Tensor, Interval]]) -> bool:
    if len(op.activations) != 1 or op.first_activation is not op.input or op.states:
        return False
    source, result = op.input, op.output
    if (source.shape, source.dtype, source.quant) != (result.shape, result.dtype, result.quant):
        return False
    family = FAMILIES[op.kind]
    if family.pads:
        return not op.operand(1).values.any()
    if op.kind == "CONCATENATION":
        return len(op.inputs) == 1
    return family.elementwise and source.dtype == "int8" and _maps_to_itself(op, intervals().get(source))


def _maps_to_itself(op: Op, interval: Interval | None) -> bool:
    low, high = (-128, 127) if interval is None else (int(interval[0].min()), int(interval[1].max()))
    values = np.arange(low, high + 1).astype(np.int8)
    stored = replace(op.input, shape=values.shape), replace(op.output, shape=values.shape)
    probe = replace(op, inputs=(stored[0], *op.inputs[1:]), outputs=(stored[1],))
    (found,) = FAMILIES[op.kind].reference(probe, values, *(None if t is None else t.data for t in op.inputs[1:]))
    return np.array_equal(found, values)
