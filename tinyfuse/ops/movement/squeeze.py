"""SQUEEZE and EXPAND_DIMS: drop or add dimensions of size 1, and keep the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import axis_of, constant_axis, ends, one_dtype


@dataclass(frozen=True)
class Squeeze:
    """Attributes of SQUEEZE: `dims`, the dimensions to drop, counted from the end if negative; if empty, all dimensions
    of size 1."""

    dims: tuple[int, ...] = ()


class _Renamed(OpFamily):
    alias = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (given(inputs[0]).reshape(op.output.shape),)


def _dropped(op: Op) -> set[int]:
    shape = op.input.shape
    dims = op.attributes_as(Squeeze).dims or [d for d, dim in enumerate(shape) if dim == 1]
    return {d % len(shape) for d in dims}


class SqueezeFamily(_Renamed):
    """SQUEEZE: keeps the bytes; the options name the dimensions to drop."""

    kind = "SQUEEZE"
    options_table = "SqueezeOptions"
    summary = "dimensions of size 1 dropped"
    rules = (
        ends(1),
        Rule("input and output have the same dtype", lambda op: op.input.dtype != op.output.dtype),
        Rule(
            "every dimension to drop is one of the input's, of size 1",
            lambda op: any(
                not -len(op.input.shape) <= d < len(op.input.shape) or op.input.shape[d] != 1
                for d in op.attributes_as(Squeeze).dims
            ),
        ),
        Rule(
            "the output has the other dimensions",
            lambda op: op.output.shape != tuple(e for d, e in enumerate(op.input.shape) if d not in _dropped(op)),
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> Squeeze:
        return Squeeze(tuple(options.get("squeeze_dims", ())))


def _expanded(op: Op) -> tuple[int, ...]:
    shape = op.input.shape
    axis = axis_of(op.operand(1), len(shape) + 1)
    return (*shape[:axis], 1, *shape[axis:])


def _bad_axis(op: Op) -> Tensor | None:
    axis = op.operand(1)
    return None if constant_axis(axis, len(op.input.shape) + 1) and len(axis.shape) <= 1 else axis


class ExpandDimsFamily(_Renamed):
    """EXPAND_DIMS: keeps the bytes; a constant input gives the new dimension's place."""

    kind = "EXPAND_DIMS"
    summary = "a dimension of size 1 added"
    rules = (
        ends(2),
        one_dtype(("int8", "int16", "float32")),
        Rule("the axis is one constant int32, a dimension of the output", _bad_axis),
        Rule(
            "the output has one dimension of size 1 more, at the axis",
            lambda op: op.output if op.output.shape != _expanded(op) else None,
        ),
    )
