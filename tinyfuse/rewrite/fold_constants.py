"""Computes operators that read only constants, or only a shape, when the model is compiled, by their exact references.
Shapes that the file leaves open are closed on the way (rewrite/close_shapes.py).

before   %x = DEQUANTIZE(%c);  %y = QUANTIZE(%x);  %z = ADD(%in, %y)
after    %z = ADD(%in, %y')          with %y' the constant

before   %s = SHAPE(%in);  %n = STRIDED_SLICE(%s, ...);  %p = PACK(%n, %k);  %z = RESHAPE(%in, %p)
after    %z = RESHAPE(%in, %p')

It runs before the check (tinyfuse/frontend/check.py), because rules require constants that only such operators produce.
An operator that breaks a rule is left for the check to report. An output of the graph stays an output: a
CONSTANT_OUTPUT writes it. Constants that IF and WHILE pass to their graphs become constants there
(rewrite/hand_in_constants.py), which may produce more of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES, graph_macs
from tinyfuse.ops.program.constant_output import written
from tinyfuse.ops.program.control_flow import change_graphs
from tinyfuse.rewrite.close_shapes import FIXED_BATCH, closed
from tinyfuse.rewrite.hand_in_constants import count_callers, hand_in_constants

#: bytes of all constants that folding may compute in one model
MAX_FOLDED_BYTES = 1 << 28

#: dtypes in which files compute shapes: folded even where no interpreter for microcontrollers has a kernel
_OF_SHAPES = ("int32", "int64", "bool")


def fold_constants(graph: Graph) -> Graph:
    """Compute all operators that read only constants or shapes.

    Raises CompileError if the computed constants take more than MAX_FOLDED_BYTES, or if an output shape that the file
    leaves open turns out to differ from the file's.
    """
    return _folded(graph, {}, count_callers(graph), [])


@lru_cache(maxsize=8)
def model_macs(graph: Graph) -> int:
    """Count the multiply-accumulates of an inference of a graph as read, after open shapes are computed and constants
    folded."""
    return graph_macs(fold_constants(graph))


def folded_operators(graph: Graph) -> tuple[Op, ...]:
    """Return the operators of the graph that `fold_constants` computes, directly or from other folded ones."""
    removed: list[Op] = []
    _folded(graph, {}, count_callers(graph), removed)
    return tuple(removed)


def _folded(graph: Graph, inner: dict[Graph, Graph], callers: Counter[int], removed: list[Op]) -> Graph:
    """Fold the graph and the graphs that its operators run.

    `inner` caches folded graphs; `callers` counts the runs of each. Appends the graph's own folded operators to
    `removed`.
    """
    known: dict[Tensor, Tensor] = {}  # tensor -> its replacement
    ops: list[Op] = []
    folded = 0
    for op in graph.ops:
        read = op.reading(known)
        shut, gone = hand_in_constants(closed(read), callers)
        op = _folded_inside(shut, inner, callers)
        known |= gone
        ops += [written(constant, old) for old, constant in gone.items() if old in graph.outputs]
        read = replace(read, outputs=tuple(tensor for tensor in read.outputs if tensor not in gone)) if gone else read
        known |= {old: new for old, new in zip(read.outputs, op.outputs, strict=True) if new is not old}
        if not _is_constant(op):
            ops.append(op)
            continue
        folded += sum(tensor.bytes for tensor in op.outputs)
        if folded > MAX_FOLDED_BYTES:
            message = f"the constants computed so far have more than {MAX_FOLDED_BYTES} bytes"
            hint = "no microcontroller holds such a model"
            raise CompileError(graph.path, Problem(message, operator=str(op), hint=hint))
        of_shapes = all(tensor.dtype in _OF_SHAPES for tensor in op.outputs)
        rules = (rule for rule in FAMILIES[op.kind].rules if not (rule.of_kernel and of_shapes))
        # rules last: some decode constants, which is slow
        if FAMILIES[op.kind].unusable_scale(op) is not None or any(rule.problem(op) for rule in rules):
            ops.append(op)
            continue
        removed.append(op)
        arrays = FAMILIES[op.kind].reference(op, *(t.data if t is not None else None for t in op.inputs))
        for old, tensor, array in zip(read.outputs, op.outputs, arrays, strict=True):
            known[old] = replace(tensor, data=array)
            if old in graph.outputs:
                ops.append(written(known[old], old))
    changed = known or any(a is not b for a, b in zip(ops, graph.ops, strict=False))
    for tensor in graph.outputs:
        if tensor in known and known[tensor].shape != tensor.shape:
            message = f"the file leaves its shape open, which is {list(known[tensor].shape)} and not what it says"
            raise CompileError(graph.path, Problem(message, tensor=str(tensor), hint=FIXED_BATCH))
    return replace(graph, ops=tuple(ops)) if changed else graph


def _folded_inside(op: Op, inner: dict[Graph, Graph], callers: Counter[int]) -> Op:
    """Fold constants in the graphs that an operator runs; return the operator itself if there are none."""

    def folded(graph: Graph) -> Graph:
        if graph not in inner:
            inner[graph] = _folded(graph, inner, callers, [])
        return inner[graph]

    return change_graphs(op, folded)


def _is_constant(op: Op) -> bool:
    """Tell whether the operator's outputs follow from constants or shapes and should be computed now."""
    family = FAMILIES.get(op.kind)
    return family is not None and family.folds and not op.states and not (op.activations and family.reads_values)
