"""Folds RELU and RELU6 into the clamp of the layer before them.

before   %a = CONV_2D(%in, ...) NONE;  %b = RELU(%a)
after    %b = CONV_2D(%in, ...) clamp=(zero point, 127)

Applied only if %a and %b have the same scale and zero point (the RELU then multiplies by exactly one), or are float32,
and nothing else reads %a.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from tinyfuse.ir import Graph, Op
from tinyfuse.ir.fixedpoint import activation_range
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Clamped, clamp_range
from tinyfuse.ops.core.real import real_clamp, real_range

_Bound = TypeVar("_Bound", int, float)


def fold_activation(graph: Graph) -> Graph:
    """Fold RELU and RELU6 into the clamps of the layers before them."""
    ops: list[Op] = []
    place: dict[Op, int] = {}
    for op in graph.ops:
        producer = graph.producer.get(op.input) if FAMILIES[op.kind].fused_as else None
        at = place.get(producer) if producer is not None else None
        # the latest version of the producer: an earlier activation may have been folded into it
        if at is not None and isinstance(ops[at].attributes, Clamped) and _folds(graph, op):
            merged = _with_clamp(ops[at], op)
            ops[at] = merged
            place[op] = at
            continue
        place[op] = len(ops)
        ops.append(op)
    return graph if len(ops) == len(graph.ops) else replace(graph, ops=tuple(ops))


def _folds(graph: Graph, activation: Op) -> bool:
    source, result = activation.input, activation.output
    return (
        source not in graph.outputs
        and len(graph.consumers[source]) == 1
        and source.dtype == result.dtype
        and (source.dtype == "float32" or (source.scale, source.zero_point) == (result.scale, result.zero_point))
    )


def _with_clamp(producer: Op, activation: Op) -> Op:
    name, result = FAMILIES[activation.kind].fused_as or "NONE", activation.output
    if result.dtype == "float32":
        clamp = _within(real_clamp(producer), real_range(name))
    else:
        clamp = _within(clamp_range(producer), activation_range(name, result.scale, result.zero_point, result.dtype))
    return replace(producer, attributes=producer.attributes_as(Clamped).clamped(clamp), outputs=activation.outputs)


def _within(inner: tuple[_Bound, _Bound], outer: tuple[_Bound, _Bound]) -> tuple[_Bound, _Bound]:
    """Return one clamp equal to `inner` followed by `outer`."""
    (low, high), (floor, ceiling) = inner, outer
    return min(max(low, floor), ceiling), max(min(high, ceiling), floor)
