"""Operators whose input 1 names dimensions of input 0, which a run may compute.

The file fixes the output's shape, so only a few sets of axes are possible. Each of them makes an operator with constant
axes, a choice. Rules must hold for every choice, and a run takes one of them
(tinyfuse/ops/pooling_reduce/at_axes.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations
from math import prod

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.family import OpFamily, Rule

Shape = tuple[int, ...]

#: the most dimensions, and axes, that an interpreter supports
_MOST = 6


@dataclass(frozen=True)
class Choice:
    """Operator for one set of axes. In `dimensions`, bit d is set if dimension d is among the axes and has more than
    one index; dimensions of size 1 make no difference."""

    dimensions: int
    op: Op


@dataclass(frozen=True)
class AxesOperand:
    """Description of an operand that gives axes. `shape(op, axes)` returns the output's shape for these axes,
    ascending; None if the operator does not accept them. `several`: the operator accepts any number of axes."""

    shape: Callable[[Op, Shape], Shape | None]
    several: bool = False

    def rules(self, known: Rule, *others: Rule) -> tuple[Rule, ...]:
        """Rules of the operator: `known` is checked for constant axes only; `others` rely on it, and are checked for
        every choice."""
        computed = Rule(
            "computed axes are int32 and at most six, as the dimensions are, and some make the output's elements",
            lambda op: op.operand(1) if _is_computed(op) and not self.choices(op) else None,
            "give the output the shape that the operator makes",
        )
        return replace(known, broken=partial(_of_constants, known.broken)), computed, *map(self.each, others)

    def each(self, rule: Rule) -> Rule:
        """Rule that is broken if any choice breaks `rule`."""
        return replace(rule, broken=partial(self._of_choices, rule.broken))

    def _of_choices(self, broken: Callable[[Op], Tensor | bool | None], op: Op) -> Tensor | bool | None:
        ops = (choice.op for choice in self.choices(op)) if _is_computed(op) else (op,)
        return next((found for found in map(broken, ops) if found is not None and found is not False), None)

    def choices(self, op: Op) -> tuple[Choice, ...]:
        """Return the operators that one with computed axes may become in a run, one for each distinct result."""
        return _choices(self, op)

    def chosen(self, op: Op, axes: Array | None) -> Op:
        """Operator with the axes that a run computed as a constant. IndexError if they are none of the choices; the
        generated module then ends the run with an error."""
        if not _is_computed(op) or axes is None:
            return op
        rank = len(op.input.shape)
        named = {int(axis) + rank if axis < 0 else int(axis) for axis in axes.reshape(-1)}
        found = [choice.op for choice in self.choices(op) if choice.dimensions == _dimensions(op, named)]
        if not found or min(named) < 0 or max(named) >= rank:
            raise IndexError(f"{op} along {axes.tolist()} does not make its output")
        return found[0]

    def tried(self, op: Op) -> tuple[Array, ...]:
        """Values of the axes operand that `verify` tries, int32: one for each reduction that a run may ask for."""
        axes = op.operand(1)
        wanted = [choice.op.operand(1).values for choice in self.choices(op)]
        # the last axis is repeated until the operand is full
        filled = (np.pad(values, (0, axes.elements - len(values)), mode="edge") for values in wanted)
        return tuple(values.astype(np.int32).reshape(axes.shape) for values in filled)


@dataclass(frozen=True)
class AtAxes:
    """Attributes of AT_AXES: the kind of the operator in the file, and its attributes."""

    kind: str
    attributes: object


class AlongAxes(OpFamily):
    """Base of families with an axes operand; their `reference` computes the operator for the axes in `chosen`."""

    axes: AxesOperand

    def computing(self, op: Op) -> Op | None:
        return replace(op, kind="AT_AXES", attributes=AtAxes(op.kind, op.attributes)) if _is_computed(op) else None

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        return self.axes.tried(op) if index == 1 and _is_computed(op) else ()


def _is_computed(op: Op) -> bool:
    axes = op.optional(1)
    return axes is not None and not axes.is_constant


def _of_constants(broken: Callable[[Op], Tensor | bool | None], op: Op) -> Tensor | bool | None:
    return None if _is_computed(op) else broken(op)


def _dimensions(op: Op, axes: set[int]) -> int:
    return sum(1 << d for d, size in enumerate(op.input.shape) if d in axes and size > 1)


def _sets(op: Op, several: bool) -> Iterator[Shape]:
    """Yields the sets of dimensions that the elements of the axes operand can name."""
    most = op.operand(1).elements if several else 1
    dimensions = range(len(op.input.shape))
    for count in range(1, min(most, len(dimensions)) + 1):
        yield from combinations(dimensions, count)


@lru_cache(maxsize=512)
def _choices(operand: AxesOperand, op: Op) -> tuple[Choice, ...]:
    axes = op.operand(1)
    if axes.dtype != "int32" or not 1 <= axes.elements <= (_MOST if operand.several else 1):
        return ()
    if len(op.input.shape) > _MOST:
        return ()
    found: dict[int, Choice] = {}
    for named in _sets(op, operand.several):
        shape, dimensions = operand.shape(op, named), _dimensions(op, set(named))
        if shape is None or prod(shape) != op.output.elements or dimensions in found:
            continue
        constant = replace(axes, shape=(len(named),), data=np.array(named, np.int32), index=-1)
        output = replace(op.output, shape=shape)
        found[dimensions] = Choice(dimensions, replace(op, inputs=(op.input, constant), outputs=(output,)))
    return tuple(found.values())
