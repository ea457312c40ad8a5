"""Folds lookup tables into the convolutions before them, where that is predicted to take fewer instructions.

before   %a = CONV_2D(%x, %w, %b);  %c = CHANNEL_TABLES(%a, %t)
after    %c = LOOKED_UP(%x, %w, %b, %t)

This is no rewrite, because not every target has such kernels, and another kernel of the layer with a pass behind it may
be faster.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.cost.predict import kernel_instructions
from tinyfuse.ir import Array, Graph, Op, Saving
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import element_of, kernels_for
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.layers.looked_up import looked_up
from tinyfuse.plan import Stage
from tinyfuse.schedule.kernel_choice.stages import make_stages


def look_up_in_layers(graph: Graph, context: Context) -> Graph:
    """Graph with LOOKED_UP layers; the same object if none is predicted to pay. CMSIS-NN's kernels stay if the user
    asks for them."""
    if context.kernels == "cmsis-nn":
        return graph
    instead: dict[Op, Op | None] = {}
    for last in graph.ops:
        results = _results(last)
        layer = graph.producer.get(last.input) if results is not None else None
        if results is None or layer is None or not _alone_reads(graph, last, layer):
            continue
        together = looked_up(layer, last, results)
        if any(kernel.accepts(together, context) for kernel in kernels_for(together)) and (
            _instructions(context, together) < _instructions(context, layer, last)
        ):
            instead |= {layer: None, last: together}
    if not instead:
        return graph
    ops = tuple(new for op in graph.ops if (new := instead.get(op, op)) is not None)
    saving = Saving(look_up_in_layers.__name__, tuple(op for op in graph.ops if op in instead), 0, 0)
    return replace(graph, ops=ops, savings=(*graph.savings, saving))


def _results(op: Op) -> Array | None:
    """Results of a function of one int8 value that its kernel looks up; None for other operators."""
    element = element_of(op) if len(op.activations) == 1 else None
    return None if element is None else element.table


def _alone_reads(graph: Graph, last: Op, layer: Op) -> bool:
    """Tells whether an operator is the only reader of a convolution of one image of several columns."""
    family, passed = FAMILIES[layer.kind], layer.output
    return (
        family.convolution
        and layer.operand(1).is_constant
        and passed.shape[0] == 1
        and passed.shape[2] > 1
        and not (layer.view or last.view)
        and passed not in graph.outputs
        and graph.consumers[passed] == (last,)
    )


def _instructions(context: Context, *ops: Op) -> float:
    """Predicted instructions of operators, each called alone."""
    return sum(kernel_instructions(_alone(op, context), context) for op in ops)


def _alone(op: Op, context: Context) -> Stage:
    (stage,) = make_stages([op], context)
    return stage
