"""Operators that read only constants, or only a shape, are computed now, by their exact reference.

before   %x = DEQUANTIZE(%c);  %y = QUANTIZE(%x);  %z = ADD(%in, %y)
after    %z = ADD(%in, %y')          with %y' the constant

before   %s = SHAPE(%in);  %n = STRIDED_SLICE(%s, ...);  %p = PACK(%n, %k);  %z = RESHAPE(%in, %p)
after    %z = RESHAPE(%in, %p')

It runs before the check (tinyfuse/frontend/check.py), because rules ask for constants that only such an operator
makes. So an operator that breaks a rule stays where it is, for the check to tell. No output of the
model can be among those computed: the check refuses that too.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES

#: bytes of all constants that one model may have us compute
MAX_FOLDED_BYTES = 1 << 28


def fold_constants(graph: Graph) -> Graph:
    """CompileError where the constants to compute have more than MAX_FOLDED_BYTES bytes."""
    known: dict[Tensor, Tensor] = {}
    ops, folded = [], 0
    for op in graph.ops:
        op = op.reading(known)
        decodes = op.kind in FAMILIES and FAMILIES[op.kind].decodes
        if not decodes and not _folds(op):
            ops.append(op)
            continue
        folded += sum(tensor.bytes for tensor in op.outputs)
        if folded > MAX_FOLDED_BYTES:
            message = f"the constants computed so far have more than {MAX_FOLDED_BYTES} bytes"
            hint = "no microcontroller holds such a model"
            raise CompileError(graph.path, Problem(message, operator=str(op), hint=hint))
        if decodes and not _folds(op):  # asked last: it decodes
            ops.append(op)
            continue
        arrays = FAMILIES[op.kind].reference(op, *(t.data if t is not None else None for t in op.inputs))
        for tensor, array in zip(op.outputs, arrays, strict=True):
            known[tensor] = replace(tensor, data=array)
    return replace(graph, ops=tuple(ops)) if known else graph


def _folds(op: Op) -> bool:
    family = FAMILIES.get(op.kind)
    if family is None or op.states or (op.activations and family.reads_values):
        return False
    return not any(rule.problem(op) for rule in family.rules)
