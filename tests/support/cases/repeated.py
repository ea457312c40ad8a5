"""Operators that fill, repeat or reverse: BROADCAST_TO, TILE, REVERSE_V2, FILL, and those that become constants,
ZEROS_LIKE, BROADCAST_ARGS and REDUCE_PROD."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, shapes, tensor
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.pooling_reduce.reduce import Reducer

_IMAGE = (1, 4, 5, 6)
_ANY = ("bool", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32")


def _data(shape, dtype: str = "int8") -> Tensor:
    return tensor(shape, *((0.1, 3) if dtype == "int8" else (None, 0)), dtype)


def _numbers(values, dtype=np.int32) -> Tensor:
    return constant(np.array(values, dtype))


def _broadcast(before, after, dtype="int8", shape_dtype=np.int32) -> Op:
    return operator("BROADCAST_TO", [_data(before, dtype), _numbers(after, shape_dtype)], _data(after, dtype))


@st.composite
def _random_broadcast(draw) -> Op:
    after = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    before = [draw(st.sampled_from([1, dim])) for dim in after][draw(st.integers(0, len(after))) :]
    return _broadcast(before, after, draw(st.sampled_from(["int8", "int16", "float32"])))


def _tile(shape, times, dtype="int8", times_dtype=np.int32) -> Op:
    output = [dim * n for dim, n in zip(shape, times, strict=True)]
    return operator("TILE", [_data(shape, dtype), _numbers(times, times_dtype)], _data(output, dtype))


@st.composite
def _random_tile(draw) -> Op:
    shape = draw(shapes)
    return _tile(shape, [draw(st.integers(1, 3)) for _ in shape], draw(st.sampled_from(["int8", "int16"])))


def _reverse(shape, axes, dtype="int8") -> Op:
    return operator("REVERSE_V2", [_data(shape, dtype), _numbers(axes)], _data(shape, dtype))


@st.composite
def _random_reverse(draw) -> Op:
    shape = draw(shapes)
    first = draw(st.integers(0, len(shape) - 1))
    axes = draw(st.permutations(range(first, draw(st.integers(first + 1, len(shape))))))
    return _reverse(shape, [axis - draw(st.sampled_from([0, len(shape)])) for axis in axes])


def _fill(shape, dtype="int8", dims_dtype=np.int32) -> Op:
    return operator("FILL", [_numbers(shape, dims_dtype), _data((), dtype)], _data(shape, dtype))


def _zeros(shape, dtype="int8") -> Op:
    return operator("ZEROS_LIKE", [_data(shape, dtype)], _data(shape, dtype))


def _shapes(first, second, dtype=np.int32) -> Op:
    output = np.broadcast_shapes(first, second)
    inputs = [_numbers(first, dtype), _numbers(second, dtype)]
    return operator("BROADCAST_ARGS", inputs, tensor((len(output),), None, dtype=np.dtype(dtype).name))


def _product(shape, axes, keep_dims=False) -> Op:
    values = np.arange(2, 2 + np.prod(shape), dtype=np.int32).reshape(shape)
    output = np.prod(values, axis=axes, keepdims=keep_dims).shape
    inputs = [constant(values), _numbers(axes)]
    return operator("REDUCE_PROD", inputs, tensor(output, None, dtype="int32"), Reducer(keep_dims))


NAMED = {
    "BROADCAST_TO": {
        "channels": _broadcast((6,), _IMAGE),
        "columns": _broadcast((1, 4, 1, 6), _IMAGE),
        "rows": _broadcast((1, 5, 6), _IMAGE),
        "a scalar": _broadcast((), (2, 3)),
        "every other": _broadcast((2, 1, 3, 1, 2), (2, 3, 3, 2, 2)),
        "new dimensions": _broadcast((3, 4), (2, 2, 3, 4)),
        "nothing": _broadcast((3, 4), (3, 4), shape_dtype=np.int64),
        **{dtype: _broadcast((3, 1), (2, 3, 4), dtype) for dtype in _ANY},
    },
    "TILE": {
        "channels": _tile(_IMAGE, (1, 1, 1, 3)),
        "rows": _tile(_IMAGE, (1, 2, 1, 1)),
        "everything": _tile((2, 3, 4), (2, 3, 2), times_dtype=np.int64),
        "rank 1": _tile((7,), (3,)),
        "rank 5": _tile((2, 1, 3, 2, 2), (2, 2, 1, 3, 2)),
        "seven loops": _tile((2, 2, 2, 2), (2, 2, 2, 2)),
        "nothing": _tile((3, 4), (1, 1)),
        **{dtype: _tile((2, 3), (2, 2), dtype) for dtype in _ANY},
    },
    "REVERSE_V2": {
        "rows": _reverse(_IMAGE, (1,)),
        "columns": _reverse(_IMAGE, (-2,)),
        "channels": _reverse(_IMAGE, (3,)),
        "rows and columns": _reverse(_IMAGE, (2, 1)),
        "everything": _reverse((2, 3, 4), (0, 1, 2)),
        "rank 1": _reverse((9,), (0,)),
        "rank 6": _reverse((2, 3, 1, 2, 2, 2), (3, 4)),
        **{
            dtype: _reverse((2, 3, 4), (1,), dtype) for dtype in ("bool", "uint8", "int16", "int32", "int64", "float32")
        },
    },
    "FILL": {
        "image": _fill(_IMAGE),
        "vector": _fill((5,), dims_dtype=np.int64),
        "rank 6": _fill((2, 1, 2, 1, 2, 3)),
        **{dtype: _fill((2, 3), dtype) for dtype in ("int32", "float32")},
    },
    "ZEROS_LIKE": {dtype: _zeros((2, 3), dtype) for dtype in ("int8", "int32", "int64", "float32")},
    "BROADCAST_ARGS": {
        "equally long": _shapes((1, 4, 1), (3, 1, 1)),
        "one shorter": _shapes((5, 1, 2), (4, 1)),
        "the other shorter": _shapes((3,), (2, 1), np.int64),
    },
    "REDUCE_PROD": {
        "a shape": _product((4,), (0,)),
        "columns": _product((2, 3), (1,), keep_dims=True),
        "beyond int32": _product((20,), (0,)),
    },
}
RANDOM = {"BROADCAST_TO": _random_broadcast(), "TILE": _random_tile(), "REVERSE_V2": _random_reverse()}
