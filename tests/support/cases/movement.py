"""Operators that only move elements: every rank and dtype, ranges to both borders, steps backwards."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import broken_rules, constant, operator, random_data, shapes, tensor
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.movement.pack import Pack
from tinyfuse.ops.movement.slice import StridedSlice
from tinyfuse.ops.movement.space_depth import Block
from tinyfuse.ops.movement.split import Unpack
from tinyfuse.ops.movement.squeeze import Squeeze

_IMAGE = (1, 4, 5, 6)


def _data(shape, dtype: str = "int8") -> Tensor:
    return tensor(shape, *((0.1, 3) if dtype in ("int8", "int16") else (None, 0)), dtype)


def _numbers(values, dtype=np.int32) -> Tensor:
    return constant(np.array(values, dtype))


def _shape(shape, index) -> tuple[int, ...]:
    """Shape of an array after this indexing."""
    return np.empty(shape)[index].shape


def _shape_of(shape, dtype: str = "int8") -> Op:
    return operator("SHAPE", [_data(shape, dtype)], tensor((len(shape),), None, dtype="int32"))


# --- SQUEEZE, EXPAND_DIMS --------------------------------------------------------------------


def _squeeze(shape, dims=(), dtype="int8") -> Op:
    axes = dims or tuple(d for d, dim in enumerate(shape) if dim == 1)
    output = np.squeeze(np.empty(shape), tuple(axes)).shape
    return operator("SQUEEZE", [_data(shape, dtype)], _data(output, dtype), Squeeze(tuple(dims)))


def _expand(shape, axis: int, dtype="int8", axis_shape=()) -> Op:
    at = constant(np.full(axis_shape, axis, np.int32))
    return operator("EXPAND_DIMS", [_data(shape, dtype), at], _data(np.expand_dims(np.empty(shape), axis).shape, dtype))


# --- SLICE, STRIDED_SLICE --------------------------------------------------------------------


def _slice(shape, begin, size, dtype="int8", index_dtype=np.int32) -> Op:
    counts = [dim - b if s == -1 else s for dim, b, s in zip(shape, begin, size, strict=True)]
    inputs = [_data(shape, dtype), _numbers(begin, index_dtype), _numbers(size, index_dtype)]
    return operator("SLICE", inputs, _data(counts, dtype))


@st.composite
def _random_slice(draw) -> Op:
    shape = draw(shapes)
    begin = [draw(st.integers(0, dim - 1)) for dim in shape]
    size = [draw(st.sampled_from([-1]) | st.integers(1, e - b)) for e, b in zip(shape, begin, strict=True)]
    return _slice(shape, begin, size, draw(st.sampled_from(["int8", "int16"])))


def _strided(shape, begin, end, strides, dtype="int8", **masks) -> Op:
    a = StridedSlice(**masks)
    index = tuple(
        b if a.shrink_axis_mask >> d & 1
        else slice(None if a.begin_mask >> d & 1 else b, None if a.end_mask >> d & 1 else e, s)
        for d, (b, e, s) in enumerate(zip(begin, end, strides, strict=True))
    )  # fmt: skip
    inputs = [_data(shape, dtype), *(_numbers(values) for values in (begin, end, strides))]
    return operator("STRIDED_SLICE", inputs, _data(_shape(shape, index), dtype), a)


@st.composite
def _random_strided(draw) -> Op:
    shape, spans = draw(shapes), []
    shrink = draw(st.sampled_from([0, 0, 1, 2, 4, 8])) & ((1 << len(shape)) - 1)
    for d, dim in enumerate(shape):
        if shrink >> d & 1:
            spans.append((draw(st.integers(-dim, dim - 1)), draw(st.integers(-9, 9)), draw(st.integers(1, 3))))
        else:
            bounds = st.integers(-dim - 2, dim + 2)
            spans.append((draw(bounds), draw(bounds), draw(st.sampled_from([1, 1, 2, 3, -1, -2]))))
    masks = st.integers(0, (1 << len(shape)) - 1)
    begin, end, strides = zip(*spans, strict=True)
    return _strided(
        shape, begin, end, strides, begin_mask=draw(masks) & ~shrink, end_mask=draw(masks), shrink_axis_mask=shrink
    )


# --- SPLIT, SPLIT_V, PACK, UNPACK ------------------------------------------------------------


def _pieces(shape, axis: int, counts, dtype: str) -> list[Tensor]:
    return [_data((*shape[:axis], count, *shape[axis + 1 :]), dtype) for count in counts]


def _split(shape, axis: int, parts: int, dtype="int8") -> Op:
    at = axis % len(shape)
    outputs = _pieces(shape, at, [shape[at] // parts] * parts, dtype)
    return operator("SPLIT", [constant(np.array(axis, np.int32)), _data(shape, dtype)], outputs)


def _split_v(shape, axis: int, counts, dtype="int8") -> Op:
    inputs = [_data(shape, dtype), _numbers(counts), constant(np.array(axis, np.int32))]
    return operator("SPLIT_V", inputs, _pieces(shape, axis % len(shape), counts, dtype))


@st.composite
def _random_split_v(draw) -> Op:
    shape = list(draw(shapes))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    shape[axis] = sum(counts)
    return _split_v(tuple(shape), axis, counts, draw(st.sampled_from(["int8", "int16"])))


def _unpack(shape, axis: int, dtype="int8") -> Op:
    at = axis % len(shape)
    outputs = [_data((*shape[:at], *shape[at + 1 :]), dtype) for _ in range(shape[at])]
    return operator("UNPACK", [_data(shape, dtype)], outputs, Unpack(shape[at], axis))


@st.composite
def _random_unpack(draw) -> Op:
    shape = draw(shapes.filter(lambda s: len(s) > 1))
    axis = draw(st.integers(-len(shape), len(shape) - 1).filter(lambda a: shape[a] < 10))
    return _unpack(shape, axis)


def _pack(shape, axis: int, count: int, dtype="int8", constants=()) -> Op:
    rng = np.random.default_rng(4)
    inputs = [
        constant(random_data(shape, rng), 0.1, 3) if i in constants else _data(shape, dtype) for i in range(count)
    ]
    at = axis % (len(shape) + 1)
    output = _data((*shape[:at], count, *shape[at:]), dtype)
    return operator("PACK", inputs, output, Pack(count, axis))


@st.composite
def _random_pack(draw) -> Op:
    shape = draw(shapes.map(lambda s: s[:3]))
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    return _pack(shape, axis, draw(st.integers(1, 5)))


# --- TRANSPOSE, SPACE_TO_DEPTH, DEPTH_TO_SPACE -----------------------------------------------


def _transpose(shape, order, dtype="int8") -> Op:
    return operator("TRANSPOSE", [_data(shape, dtype), _numbers(order)], _data([shape[d] for d in order], dtype))


@st.composite
def _random_transpose(draw) -> Op:
    shape = draw(shapes | st.lists(st.integers(1, 4), min_size=5, max_size=5).map(tuple))
    return _transpose(shape, draw(st.permutations(range(len(shape)))), draw(st.sampled_from(["int8", "int16"])))


def _blocks(kind: str, space, block: int, dtype="int8") -> Op:
    """One operator. `space`: shape of the larger image."""
    n, h, w, c = space
    depth = (n, h // block, w // block, c * block * block)
    before, after = (space, depth) if kind == "SPACE_TO_DEPTH" else (depth, space)
    return operator(kind, [_data(before, dtype)], _data(after, dtype), Block(block))


@st.composite
def _random_blocks(draw, kind: str) -> Op:
    block = draw(st.integers(1, 3))
    h, w = (draw(st.integers(1, 4)) * block for _ in range(2))
    return _blocks(kind, (draw(st.integers(1, 2)), h, w, draw(st.integers(1, 6))), block)


def _block_cases(kind: str) -> dict[str, Op]:
    return {
        "blocks of two": _blocks(kind, (1, 4, 6, 3), 2),
        "blocks of three": _blocks(kind, (1, 6, 3, 2), 3),
        "one channel": _blocks(kind, (1, 4, 4, 1), 2),
        "batch": _blocks(kind, (2, 4, 2, 4), 2),
        "blocks of one": _blocks(kind, (1, 4, 6, 3), 1),
        "floats": _blocks(kind, (1, 4, 4, 3), 2, "float32"),
    }


NAMED = {
    "SQUEEZE": {
        "all": _squeeze((1, 1, 6, 1)),
        "some": _squeeze((1, 4, 1, 6), (2,)),
        "from the end": _squeeze((1, 4, 1, 6), (-2, 0)),
        "nothing": _squeeze((2, 3)),
        "to a scalar": _squeeze((1, 1)),
        **{dtype: _squeeze((1, 4, 1), dtype=dtype) for dtype in ("bool", "uint32", "int64", "uint64", "float32")},
    },
    "EXPAND_DIMS": {
        "first": _expand((4, 5), 0),
        "last": _expand((4, 5), -1),
        "inside": _expand((4, 5), 1, "int16"),
        "axis of rank 1": _expand((4, 5), 2, axis_shape=(1,)),
        "a scalar": _expand((), 0),
        "rank 5 to 6": _expand((2, 1, 3, 2, 2), 3),
        "floats": _expand((4, 5), 1, "float32"),
    },
    "SLICE": {
        "image": _slice(_IMAGE, (0, 1, 2, 3), (1, 2, 3, 2)),
        "channels": _slice(_IMAGE, (0, 0, 0, 2), (-1, -1, -1, 4)),
        "rows": _slice(_IMAGE, (0, 1, 0, 0), (1, 2, -1, -1)),
        "one row of many images": _slice((3, 4, 5, 2), (1, 2, 0, 0), (2, 1, 5, 2)),
        "everything": _slice(_IMAGE, (0, 0, 0, 0), (-1, -1, -1, -1)),
        "int64": _slice(_IMAGE, (0, 1, 2, 3), (1, 2, 3, 2), index_dtype=np.int64),
        "rank 5": _slice((2, 3, 4, 3, 5), (1, 0, 1, 1, 2), (1, 2, 2, 2, 2)),
        "rank 1": _slice((9,), (2,), (5,)),
        "four bytes": _slice(_IMAGE, (0, 0, 0, 1), (1, 4, 5, 4)),
        **{dtype: _slice((3, 4), (1, 1), (2, 2), dtype) for dtype in ("int16", "int32", "float32", "bool")},
    },
    "STRIDED_SLICE": {
        "every second": _strided(_IMAGE, (0, 0, 0, 0), _IMAGE, (1, 2, 2, 1)),
        "every second channel": _strided(_IMAGE, (0, 0, 0, 1), _IMAGE, (1, 1, 1, 2)),
        "backwards": _strided(_IMAGE, (0, -1, -1, -1), (1, -9, -9, -9), (1, -1, -2, -1)),
        "from the end": _strided(_IMAGE, (0, -3, -2, -4), (1, -1, 5, -1), (1, 1, 1, 1)),
        "beyond the border": _strided(_IMAGE, (-9, 1, 0, 0), (9, 99, 99, 99), (1, 1, 1, 1)),
        "masks": _strided(_IMAGE, (0, 2, 3, 4), (0, 3, 1, 1), (1, 1, 1, 1), begin_mask=8, end_mask=5),
        "masks backwards": _strided(_IMAGE, (0, 0, 0, 0), _IMAGE, (1, -1, -1, -1), begin_mask=15, end_mask=15),
        "shrinks": _strided(_IMAGE, (0, 2, 0, 0), (1, 3, 5, 6), (1, 1, 1, 1), shrink_axis_mask=3),
        "shrinks from the end": _strided(_IMAGE, (0, -1, 0, 0), (1, 0, 5, 6), (1, 1, 1, 1), shrink_axis_mask=2),
        "rank 1": _strided((7,), (1,), (6,), (2,)),
        "to a scalar": _strided((7,), (3,), (4,), (1,), "int32", shrink_axis_mask=1),
        **{dtype: _strided((5, 6), (1, 0), (5, 6), (2, 3), dtype) for dtype in ("int16", "int32", "float32", "bool")},
    },
    "SPLIT": {
        "channels": _split(_IMAGE, 3, 3),
        "columns": _split((1, 3, 4, 5), -2, 2),
        "rows": _split(_IMAGE, 1, 2),
        "rank 1": _split((12,), 0, 4),
        "one part": _split(_IMAGE, 3, 1),
        "rank 6": _split((2, 3, 1, 4, 2, 2), 3, 2),
        **{dtype: _split((4, 6), 1, 2, dtype) for dtype in ("int16", "int32", "float32")},
    },
    "SPLIT_V": {
        "channels": _split_v(_IMAGE, 3, (1, 3, 2)),
        "rows": _split_v(_IMAGE, -3, (3, 1)),
        "one part": _split_v(_IMAGE, 3, (6,)),
        "rank 5": _split_v((2, 3, 5, 2, 2), 2, (1, 4)),
        **{dtype: _split_v((4, 6), 1, (4, 2), dtype) for dtype in ("int16", "int32", "float32")},
    },
    "UNPACK": {
        "channels": _unpack((1, 3, 2, 4), 3),
        "rows": _unpack((1, 3, 2, 4), 1),
        "from the end": _unpack((2, 3, 4), -2),
        "scalars": _unpack((3,), 0, "int32"),
        "rank 6": _unpack((2, 1, 3, 2, 2, 2), 4),
        **{dtype: _unpack((3, 2), 0, dtype) for dtype in ("int16", "int32", "float32")},
    },
    "PACK": {
        "first": _pack((3, 4), 0, 3),
        "last": _pack((3, 4), -1, 2),
        "inside": _pack((3, 4, 5), 1, 2),
        "constant between": _pack((3, 4), 1, 3, constants=(1,)),
        "scalars": _pack((), 0, 3, "int32"),
        "one": _pack((3, 4), 2, 1),
        "to rank 6": _pack((2, 1, 3, 2, 2), 4, 2),
        **{dtype: _pack((3, 2), 1, 2, dtype) for dtype in ("int16", "int32", "int64", "float32")},
    },
    "TRANSPOSE": {
        "rows and columns": _transpose(_IMAGE, (0, 2, 1, 3)),
        "channels first": _transpose(_IMAGE, (0, 3, 1, 2)),
        "channels last": _transpose(_IMAGE, (0, 2, 3, 1)),
        "matrix": _transpose((5, 7), (1, 0)),
        "backwards": _transpose((2, 3, 4, 5), (3, 2, 1, 0)),
        "nothing": _transpose(_IMAGE, (0, 1, 2, 3)),
        "only ones": _transpose((1, 4, 1, 6), (2, 1, 0, 3)),
        "heads": _transpose((1, 6, 2, 4), (0, 2, 1, 3)),
        "rank 5": _transpose((2, 3, 2, 3, 2), (4, 2, 0, 3, 1)),
        "int16": _transpose((3, 4), (1, 0), "int16"),
        "floats": _transpose((3, 4), (1, 0), "float32"),
    },
    "SPACE_TO_DEPTH": _block_cases("SPACE_TO_DEPTH"),
    "DEPTH_TO_SPACE": _block_cases("DEPTH_TO_SPACE"),
    "SHAPE": {
        "image": _shape_of(_IMAGE),
        "vector": _shape_of((7,), "float32"),
    },
}
RANDOM = {
    "SLICE": _random_slice(),
    "STRIDED_SLICE": _random_strided().filter(lambda op: 0 not in op.output.shape and not broken_rules(op)),
    "SPLIT_V": _random_split_v(),
    "UNPACK": _random_unpack(),
    "PACK": _random_pack(),
    "TRANSPOSE": _random_transpose(),
    "SPACE_TO_DEPTH": _random_blocks("SPACE_TO_DEPTH"),
    "DEPTH_TO_SPACE": _random_blocks("DEPTH_TO_SPACE"),
}
