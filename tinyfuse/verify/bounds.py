"""What stands behind a comparison where operators call functions of libm, which no standard rounds (OpFamily.ulp).

A bound of an operator is none of a model: what an exp is off by, later layers make larger or smaller. So two things are
proven instead (docs/decisions/15-bounds-of-libm.md): the module computes the bits of our references, and each
operator's reference computes, from the very tensors of the interpreter, what the interpreter computes: every bit, or
within the operator's bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.rewrite.fold_constants import fold_constants, folded_operators
from tinyfuse.verify.comparison import same_bits, ulp_distance
from tinyfuse.verify.oracle import InterpreterOracle


@dataclass(frozen=True)
class OperatorBound:
    """Of one operator: how far its results are from the interpreter's on the interpreter's inputs, in units of the last
    place, and how far they may be."""

    operator: str
    ulp: int
    bound: int


@dataclass(frozen=True)
class OperatorChecks:
    """bounds: of each operator that has one; broken: a sentence for each operator that computes something else."""

    bounds: tuple[OperatorBound, ...]
    broken: tuple[str, ...]


def has_bounds(graph: Graph) -> bool:
    """Whether any operator calls functions of libm, and no state is kept but by such operators."""
    bounded = [op for op in graph.ops if FAMILIES[op.kind].ulp(op) is not None]
    return bool(bounded) and {t for op in bounded for t in op.states} == set(graph.states)


def check_operators(graph: Graph, oracle: InterpreterOracle, inputs: list[list[np.ndarray]]) -> OperatorChecks:
    """Every operator of a graph that `has_bounds` on the interpreter's tensors, for inputs[run][index]; each run begins
    with the state as a reset leaves it. Operators of constants alone are checked as well, and others read what the
    interpreter made of these: its last bits may differ from those of the constants that `fold_constants` makes."""
    folded = folded_operators(graph)
    ops = (*folded, *fold_constants(graph).ops)
    computed = {tensor.index for op in folded for tensor in op.outputs}
    tensors = dict.fromkeys(
        t for op in ops for t in (*op.inputs, *op.outputs)
        if t is not None and not t.is_state and (not t.is_constant or t.index in computed)
    )  # fmt: skip
    most: dict[Op, int] = {}
    broken: dict[Op, str] = {}
    for found in oracle.tensors(inputs, [t.index for t in tensors]):
        values = {t: array.reshape(t.shape) for t, array in zip(tensors, found, strict=True)}
        for op in ops:
            _check(op, values, most, broken)
    bounds = tuple(OperatorBound(str(op), ulp, FAMILIES[op.kind].ulp(op) or 0) for op, ulp in most.items())
    return OperatorChecks(bounds, tuple(broken.values()))


def _check(op: Op, values: dict[Tensor, Array], most: dict[Op, int], broken: dict[Op, str]) -> None:
    """Notes in `most` and `broken` what one run shows."""
    arguments = [None if t is None else _value(t, values) for t in op.inputs]
    family = FAMILIES[op.kind]
    theirs = family.settled(op, [values[tensor] for tensor in op.outputs])
    bound = family.ulp(op)
    for expected, computed in zip(theirs, family.reference_beside(op, theirs, *arguments), strict=False):
        if bound is None:
            if not same_bits(np.asarray(computed), expected).all():
                broken[op] = f"{op} differs from the interpreter on the interpreter's own inputs"
            continue
        distance = int(ulp_distance(computed, expected, family.ulp_of).max())
        most[op] = max(most.get(op, 0), distance)
        if distance > bound:
            broken[op] = (
                f"{op} is {distance} units of the last place from the interpreter's, above its bound of {bound}"
            )


def _value(tensor: Tensor, values: dict[Tensor, Array]) -> Array:
    if tensor in values:
        return values[tensor]
    return tensor.initial_values if tensor.is_state else tensor.values
