"""Replaces layers whose weights or bias are computed at run time by operators that read these as inputs: matrix
products where possible, else COMPUTED_LAYER.

before   %y = FULLY_CONNECTED(%x, %w, bias) RELU            with %w computed, as attention does
after    %a = RESHAPE(%x);  %p = BATCH_MATMUL(%a, %w, adj_y);  %s = ADD(%p, bias) RELU;  %y = RESHAPE(%s)

before   %y = CONV_2D(%x, %w, bias)                         with %w computed
after    %y = COMPUTED_LAYER(%x, %w, bias)

Runs before the check (tinyfuse/frontend/check.py), because all later code expects a layer's weights and bias to be
constants. Every bit is kept. In int8, both operators compute the same sums with the same multipliers, and a fused
activation clamps as RELU or RELU6 between equal quantizations does. In float32, a layer adds its bias (zeros if it has
none) to the sum and clamps the result, as ADD does. No operator adds an int32 bias to the sums of an int8 product, so
an int8 layer becomes a matrix product only if its bias is zero. A layer that breaks a rule of its kind stays, for the
check to report.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import Binary
from tinyfuse.ops.core.convolution import Clamped
from tinyfuse.ops.layers.computed_layer import ComputedLayer, is_computed, with_stand_ins
from tinyfuse.ops.layers.fully_connected import FullyConnected
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.program.control_flow import change_graphs


def computed_weights(graph: Graph) -> Graph:
    """Replace layers with computed weights or bias, also in the graphs that operators run; return `graph` itself if
    there are none."""
    return _changed(graph, {})


def _changed(graph: Graph, known: dict[Graph, Graph]) -> Graph:
    if graph not in known:
        made = [part for op in graph.ops for part in _operators(change_graphs(op, lambda g: _changed(g, known)))]
        same = len(made) == len(graph.ops) and all(a is b for a, b in zip(made, graph.ops, strict=True))
        known[graph] = graph if same else replace(graph, ops=tuple(made))
    return known[graph]


def _operators(op: Op) -> list[Op]:
    """Return the operators that replace a layer with computed weights or bias; [op] for any other operator."""
    if not is_computed(op) or not isinstance(op.attributes, Clamped):
        return [op]
    stands = with_stand_ins(op)
    if any(rule.problem(stands) is not None for rule in FAMILIES[op.kind].rules):
        return [op]
    if isinstance(op.attributes, FullyConnected):
        flat, shaped = _with_flat_bias(op)
        after = _after(flat)
        if after is not None:
            return [*shaped, *_chain(flat, op.output.elements // op.operand(1).shape[0], after)]
    return [replace(op, kind="COMPUTED_LAYER", attributes=ComputedLayer(op.kind, op.attributes))]


def _with_flat_bias(op: Op) -> tuple[Op, list[Op]]:
    """Return the layer with a bias of one dimension, and the RESHAPE that makes it if the bias is computed."""
    bias = op.optional(2)
    if bias is None or len(bias.shape) == 1:
        return op, []
    data = bias.data if bias.data is None else bias.data.reshape(-1)
    vector = replace(bias, shape=(bias.elements,), data=data, index=-1)
    shaped = [] if bias.is_constant else [Op("RESHAPE", (bias,), (vector,), None, op.index)]
    return replace(op, inputs=(*op.inputs[:2], vector)), shaped


def _after(op: Op) -> list[Op] | None:
    """Return the operators that follow the layer's matrix product, without input 0 and output; None if it isn't a
    matrix product."""
    bias, dtype, width = op.optional(2), op.output.dtype, op.operand(1).shape[0]
    activation = op.attributes_as(FullyConnected).activation
    if dtype == "float32":
        added = Tensor("bias", (width,), dtype, data=np.zeros(width, np.float32)) if bias is None else bias
        return [Op("ADD", (added,), (), Binary(activation))]
    per_channel = op.operand(1).quantization.per_channel
    if dtype != "int8" or per_channel or (bias is not None and (not bias.is_constant or bias.values.any())):
        return None
    if activation == "NONE":
        return []
    kind = next((family.kind for family in FAMILIES.values() if family.fused_as == activation), None)
    return None if kind is None else [Op(kind, (), ())]


def _chain(op: Op, rows: int, after: list[Op]) -> list[Op]:
    """Return products of matrices [rows, ...], the operators `after` them, and the reshapes at both ends."""
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
