"""CONCATENATION: every axis, constants between, one input twice."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, random_data, seeds, shapes, tensor
from tinyfuse.ir import Op
from tinyfuse.ops.movement.concatenation import Concatenation


def _op(parts, axis: int, constants=()) -> Op:
    """An operator with inputs of these shapes; those at the indexes in `constants` are constant."""
    rng = np.random.default_rng(1)
    inputs = [
        constant(random_data(shape, rng), 0.1, 3) if i in constants else tensor(shape, 0.1, 3)
        for i, shape in enumerate(parts)
    ]
    return _concatenate(inputs, axis)


def _concatenate(inputs, axis: int) -> Op:
    shape = list(inputs[0].shape)
    shape[axis] = sum(t.shape[axis] for t in inputs)
    return operator("CONCATENATION", inputs, tensor(shape, 0.1, 3), Concatenation(axis))


@st.composite
def _random(draw) -> Op:
    shape = draw(shapes)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    rng = np.random.default_rng(draw(seeds))
    inputs = []
    for i in range(draw(st.integers(1, 5))):
        part = list(shape)
        part[axis] = draw(st.integers(1, 6))
        make_constant = i > 0 and draw(st.integers(0, 3)) == 0
        inputs.append(constant(random_data(part, rng), 0.1, 3) if make_constant else tensor(part, 0.1, 3))
    if draw(st.booleans()):
        inputs.append(draw(st.sampled_from(inputs)))
    return _concatenate(inputs, axis)


def _of(dtype: str, *parts, axis: int = -1) -> Op:
    """The operator in another dtype."""
    inputs = [tensor(shape, 0.1 if dtype == "int16" else None, 0, dtype) for shape in parts]
    op = _concatenate(inputs, axis)
    output = tensor(op.output.shape, 0.1 if dtype == "int16" else None, 0, dtype)
    return operator("CONCATENATION", inputs, output, Concatenation(axis))


_TWICE = tensor((1, 3, 2, 5), 0.1, 3)
NAMED = {
    "CONCATENATION": {
        "channels": _op([(1, 3, 4, 2), (1, 3, 4, 7)], 3),
        "channels, counted from the end": _op([(1, 3, 4, 2), (1, 3, 4, 7), (1, 3, 4, 1)], -1),
        "columns": _op([(1, 3, 4, 5), (1, 3, 1, 5)], 2),
        "rows": _op([(1, 3, 4, 5), (1, 1, 4, 5)], 1),
        "batch": _op([(1, 3, 4, 5), (2, 3, 4, 5)], 0),
        "constant between": _op([(1, 3, 4, 2), (1, 3, 4, 3), (1, 3, 4, 2)], 3, constants=(1,)),
        "constant first": _op([(1, 3, 1, 2), (1, 3, 4, 2)], 2, constants=(0,)),
        "one input twice": _concatenate([_TWICE, _TWICE], 3),
        "one input": _op([(1, 3, 4, 2)], 3),
        "rank 1": _op([(3,), (4,)], 0),
        "rank 2": _op([(2, 3), (2, 4)], -1),
        "rank 5": _op([(2, 1, 3, 2, 2), (2, 3, 3, 2, 2)], 1),
        "rank 6": _op([(2, 1, 3, 2, 2, 3), (2, 1, 3, 2, 1, 3)], 4),
        **{dtype: _of(dtype, (1, 2, 3, 2), (1, 2, 3, 3)) for dtype in ("int16", "int32", "int64", "float32", "bool")},
        "ten inputs": _op([(1, 2, 2, 1 + i % 3) for i in range(10)], 3),
    }
}
RANDOM = {"CONCATENATION": _random()}
