"""Operators to be measured that compute elements of any dtype, one by one: comparisons, logic, conversions, choices."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from cost_tensors import image, like, operator, tensor

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.core.binary import Binary

#: dtypes without scale
PLAIN = ("int32", "uint32", "int64", "bool")


def draw_comparison(rng: random.Random, kind: str) -> Op:
    """One in two with a constant a channel, or a single one."""
    shape = image(rng)
    other = _constant(rng, rng.choice([shape[3:], ()])) if rng.random() < 0.5 else tensor(shape, 0.04, 5)
    return operator(kind, [tensor(shape), other], tensor(shape, 0.0, 0, "bool"))


def draw_logic(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    operands = [tensor(shape, 0.0, 0, "bool") for _ in range(1 if kind == "LOGICAL_NOT" else 2)]
    if len(operands) == 2 and rng.random() < 0.5:
        data = np.random.default_rng(rng.randrange(2**31)).integers(0, 2, shape[3:]).astype(bool)
        operands[1] = tensor(shape[3:], 0.0, 0, "bool", data)
    return operator(kind, operands, tensor(shape, 0.0, 0, "bool"))


def draw_sum_of_many(rng: random.Random, kind: str) -> Op:
    x = tensor(image(rng), 0.05, 3)
    return operator(kind, [x, *(like(x) for _ in range(rng.choice([1, 2, 3])))], like(x))


def draw_choice_of_two(rng: random.Random, kind: str) -> Op:
    """SELECT_V2; one condition in three is of a column."""
    x = tensor(image(rng), 0.05, 3)
    condition = (*x.shape[:3], 1) if rng.random() < 0.33 else x.shape
    return operator(kind, [tensor(condition, 0.0, 0, "bool"), x, like(x)], like(x))


def draw_cast(rng: random.Random, kind: str, source: str = "int8", result: str = "int32") -> Op:
    shape = image(rng)
    return operator(kind, [tensor(shape, 0.0, 0, source)], tensor(shape, 0.0, 0, result))


def draw_cumsum(rng: random.Random, kind: str) -> Op:
    x = tensor(image(rng), 0.05, 3)
    axis = tensor((), 0.0, 0, "int32", np.array(rng.choice([1, 2, 3]), np.int32))
    return operator(kind, [x, axis], tensor(x.shape, 0.3, -7), exclusive=rng.random() < 0.3, reverse=False)


def draw_extreme_place(rng: random.Random, kind: str) -> Op:
    """Of channels, two in three."""
    shape, axis = image(rng), rng.choice([3, 3, 1])
    axes = tensor((), 0.0, 0, "int32", np.array(axis, np.int32))
    kept = [dim for d, dim in enumerate(shape) if d != axis]
    return operator(kind, [tensor(shape), axes], tensor(kept, 0.0, 0, "int32"))


def plain(op: Op, dtype: str, activation: str = "NONE") -> Op:
    """The operator with int8's tensors in a dtype without scale; constants that no division or power refuses."""

    def of(given: Tensor | None) -> Tensor | None:
        if given is None or given.dtype != "int8":
            return given
        data = None if given.data is None else (np.abs(given.values.astype(np.int16)) % 5 + 1).astype(dtype)
        return replace(given, dtype=dtype, quant=None, data=data)

    attributes = Binary(activation) if isinstance(op.attributes, Binary) else op.attributes
    inputs, outputs = tuple(map(of, op.inputs)), tuple(map(of, op.outputs))
    return replace(op, inputs=inputs, outputs=tuple(t for t in outputs if t), attributes=attributes)


def _constant(rng: random.Random, shape) -> Tensor:
    values = np.random.default_rng(rng.randrange(2**31))
    return tensor(shape, 0.03, 3, data=values.integers(-127, 128, shape).astype(np.int8))
