"""Fully connected layers whose weights are computed at run time become products of matrices.

before   %y = FULLY_CONNECTED(%x, %w, bias) RELU            with %w computed, as attention does
after    %a = RESHAPE(%x);  %p = BATCH_MATMUL(%a, %w, adj_y);  %s = ADD(%p, bias) RELU;  %y = RESHAPE(%s)

It runs before the check (tinyfuse/frontend/check.py), for the layer itself takes constant weights alone. Every bit
stays: of int8 both operators take the same sums and multipliers, and a clamp to the activation's range is that of the
operator RELU or RELU6 between equal quantizations. Of float32 a layer adds its bias, zeros where there is none, to the
sum and clamps it, as ADD does. What int8's sums get for a bias, no operator adds: there zeros alone go. A layer for
which there are no such operators stays, for the check to tell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.batch_matmul import BatchMatMul
from tinyfuse.ops.binary import Binary
from tinyfuse.ops.control_flow import change_graphs
from tinyfuse.ops.fully_connected import FullyConnected


def computed_weights(graph: Graph) -> Graph:
    """The graph, and those that its operators run; itself where there is no such layer."""
    return _changed(graph, {})


def _changed(graph: Graph, known: dict[Graph, Graph]) -> Graph:
    if graph not in known:
        made = [part for op in graph.ops for part in _operators(change_graphs(op, lambda g: _changed(g, known)))]
        same = len(made) == len(graph.ops) and all(a is b for a, b in zip(made, graph.ops, strict=True))
        known[graph] = graph if same else replace(graph, ops=tuple(made))
    return known[graph]


def _operators(op: Op) -> list[Op]:
    """What computes the same as a layer with computed weights; the operator alone where it is none."""
    layer, weights = op.attributes, op.optional(1)
    if not isinstance(layer, FullyConnected) or weights is None or weights.is_constant or None in op.inputs[:1]:
        return [op]
    bias, dtype = op.optional(2), op.output.dtype
    dtypes = {tensor.dtype for tensor in (op.input, weights, op.output)}
    whole = len(weights.shape) == 2 and all(weights.shape) and op.output.shape[-1:] == weights.shape[:1]
    if dtypes not in ({"int8"}, {"float32"}) or not whole or layer.weights_format != "DEFAULT":
        return [op]
    rows = op.output.elements // weights.shape[0]
    if op.input.elements != rows * weights.shape[1]:
        return [op]
    after = _after(dtype, layer.activation, bias, weights.shape[0])
    return [op] if after is None else _chain(op, rows, after)


def _after(dtype: str, activation: str, bias: Tensor | None, width: int) -> list[Op] | None:
    """What follows the product, each an operator without input 0 and output; None where that isn't known."""
    if dtype == "float32":
        if bias is not None and (not bias.is_constant or bias.dtype != dtype or bias.elements != width):
            return None
        values = np.zeros(width, np.float32) if bias is None else bias.values.reshape(-1)
        return [Op("ADD", (Tensor("bias", (width,), dtype, data=values),), (), Binary(activation))]
    if bias is not None and (not bias.is_constant or bias.values.any()):
        return None
    if activation == "NONE":
        return []
    kind = next((family.kind for family in FAMILIES.values() if family.fused_as == activation), None)
    return None if kind is None else [Op(kind, (), ())]


def _chain(op: Op, rows: int, after: list[Op]) -> list[Op]:
    """Products of matrices [rows, ...], `after` them, and the shapes that the layer has before and behind."""
    output, depth = op.output, op.operand(1).shape[1]
    flat = (rows, output.shape[-1])
    product = Op("BATCH_MATMUL", (op.operand(1),), (), BatchMatMul(False, True))
    made, value = [], op.input
    if value.shape != (rows, depth):
        made.append(
            Op("RESHAPE", (value,), (replace(value, shape=(rows, depth), data=None, index=-1),), None, op.index)
        )
        value = made[-1].output
    steps = [product, *after]
    for i, step in enumerate(steps):
        last = i == len(steps) - 1 and output.shape == flat
        result = output if last else replace(output, name=f"{output.name} ({step.kind})", shape=flat, index=-1)
        made.append(replace(step, inputs=(value, *step.inputs), outputs=(result,), index=op.index))
        value = result
    return made if output.shape == flat else [*made, Op("RESHAPE", (value,), (output,), None, op.index)]
