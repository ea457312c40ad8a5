"""MIRROR_PAD, RESIZE_NEAREST_NEIGHBOR, GATHER: elements found by tables of indexes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, random_data, shapes, tensor
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.movement.gather import Gather
from tinyfuse.ops.movement.mirror_pad import MirrorPad
from tinyfuse.ops.movement.resize import Resize

_IMAGE = (1, 4, 5, 6)


def _data(shape, dtype: str = "int8") -> Tensor:
    return tensor(shape, *((0.1, 3) if dtype in ("int8", "int16") else (None, 0)), dtype)


# --- MIRROR_PAD ------------------------------------------------------------------------------


def _mirror(shape, amounts, mode="REFLECT", dtype="int8", amounts_dtype=np.int32) -> Op:
    padded = [before + dim + after for dim, (before, after) in zip(shape, amounts, strict=True)]
    inputs = [_data(shape, dtype), constant(np.array(amounts, amounts_dtype))]
    return operator("MIRROR_PAD", inputs, _data(padded, dtype), MirrorPad(mode))


@st.composite
def _random_mirror(draw) -> Op:
    shape, mode = draw(shapes), draw(st.sampled_from(["REFLECT", "SYMMETRIC"]))
    amounts = []
    for dim in shape:
        amount = st.integers(0, min(3, dim - (mode == "REFLECT")))
        amounts.append((draw(amount), draw(amount)) if draw(st.booleans()) else (0, 0))
    return _mirror(shape, amounts, mode)


# --- RESIZE_NEAREST_NEIGHBOR -----------------------------------------------------------------


def resized(kind: str, shape, size, align_corners=False, half_pixel_centers=False, dtype="int8") -> Op:
    inputs = [_data(shape, dtype), constant(np.array(size, np.int32))]
    output = _data((shape[0], *size, shape[3]), dtype)
    return operator(kind, inputs, output, Resize(align_corners, half_pixel_centers))


@st.composite
def random_resized(draw, kind: str) -> Op:
    dims = st.integers(1, 12)
    shape = (draw(st.sampled_from([1, 1, 2])), draw(dims), draw(dims), draw(st.integers(1, 6)))
    corners, centers = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    dtype = draw(st.sampled_from(["int8", "float32"]))
    return resized(kind, shape, (draw(dims), draw(dims)), corners, centers, dtype)


def resize_cases(kind: str, dtype: str = "int8") -> dict[str, Op]:
    def case(*sizes, **more) -> Op:
        return resized(kind, *sizes, **more, dtype=dtype)

    return {
        "twice": case(_IMAGE, (8, 10)),
        "twice, half pixels": case(_IMAGE, (8, 10), half_pixel_centers=True),
        "twice, corners": case(_IMAGE, (8, 10), align_corners=True),
        "three and two times": case((1, 3, 4, 5), (9, 8)),
        "by a fraction": case((1, 5, 7, 3), (7, 9), half_pixel_centers=True),
        "by a fraction, corners": case((1, 5, 7, 3), (7, 9), align_corners=True),
        "half": case((1, 8, 6, 4), (4, 3)),
        "half, half pixels": case((1, 8, 6, 4), (4, 3), half_pixel_centers=True),
        "smaller by a fraction": case((1, 9, 7, 2), (5, 4), align_corners=True),
        "same": case(_IMAGE, (4, 5)),
        "from one pixel": case((1, 1, 1, 7), (4, 3)),
        "to one pixel": case(_IMAGE, (1, 1), align_corners=True),
        "one channel": case((1, 4, 5, 1), (6, 9)),
        "batch": case((2, 3, 4, 5), (5, 6)),
    }


# --- GATHER ----------------------------------------------------------------------------------


def _gather(data, indexes, axis=0, batch_dims=0, dtype="int8", values=None, constant_data=False) -> Op:
    """One GATHER. `indexes`: their shape; they are constant if `values` are given."""
    ids = tensor(indexes, None, dtype="int32") if values is None else constant(np.array(values, np.int32))
    batch = batch_dims % len(indexes) if indexes else 0
    at = axis % len(data)
    source = _data(data, dtype)
    if constant_data:
        source = constant(random_data(data, np.random.default_rng(5)), 0.1, 3)
    output = _data((*data[:at], *indexes[batch:], *data[at + 1 :]), dtype)
    return operator("GATHER", [source, ids], output, Gather(axis, batch_dims))


@st.composite
def _random_gather(draw) -> Op:
    data = draw(shapes)
    axis = draw(st.integers(0, len(data) - 1))
    batch = draw(st.integers(0, axis))
    indexes = (*data[:batch], *draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))
    return _gather(data, indexes, axis, batch, constant_data=draw(st.booleans()))


NAMED = {
    "MIRROR_PAD": {
        "reflect rows and columns": _mirror(_IMAGE, [(0, 0), (1, 2), (2, 1), (0, 0)]),
        "symmetric rows and columns": _mirror(_IMAGE, [(0, 0), (1, 2), (2, 1), (0, 0)], "SYMMETRIC"),
        "as much as there is": _mirror((1, 3, 4, 2), [(0, 0), (2, 2), (3, 3), (0, 0)]),
        "as much as there is, symmetric": _mirror((1, 3, 4, 2), [(0, 0), (3, 3), (4, 4), (0, 0)], "SYMMETRIC"),
        "rows": _mirror(_IMAGE, [(0, 0), (3, 0), (0, 0), (0, 0)]),
        "columns": _mirror(_IMAGE, [(0, 0), (0, 0), (0, 3), (0, 0)], amounts_dtype=np.int64),
        "channels": _mirror(_IMAGE, [(0, 0), (1, 1), (0, 0), (2, 3)]),
        "batch": _mirror((2, 3, 4, 5), [(1, 0), (1, 1), (0, 1), (0, 0)]),
        "nothing": _mirror(_IMAGE, [(0, 0)] * 4),
        "rank 1": _mirror((5,), [(2, 4)]),
        "rank 2": _mirror((3, 4), [(1, 0), (3, 2)], "SYMMETRIC"),
        "rank 5": _mirror((2, 3, 4, 2, 3), [(0, 0), (0, 0), (1, 2), (0, 0), (2, 0)]),
        "rank 5, batch 1": _mirror((1, 2, 3, 2, 3), [(0, 0), (1, 0), (1, 2), (0, 1), (2, 0)], "SYMMETRIC", "float32"),
        "rank 6": _mirror((2, 3, 2, 2, 2, 3), [(1, 0), (0, 0), (0, 0), (0, 1), (0, 0), (0, 0)], dtype="float32"),
        "floats": _mirror((1, 3, 4, 2), [(0, 0), (1, 1), (1, 1), (0, 0)], dtype="float32"),
    },
    "RESIZE_NEAREST_NEIGHBOR": {
        **resize_cases("RESIZE_NEAREST_NEIGHBOR"),
        "corners and half pixels": resized("RESIZE_NEAREST_NEIGHBOR", (1, 5, 7, 3), (7, 4), True, True),
        "int16": resized("RESIZE_NEAREST_NEIGHBOR", (1, 3, 2, 3), (5, 4), dtype="int16"),
        "floats": resized("RESIZE_NEAREST_NEIGHBOR", (1, 3, 2, 3), (5, 4), dtype="float32"),
    },
    "GATHER": {
        "embedding": _gather((9, 4), (3,), constant_data=True),
        "rows": _gather((9, 4), (2, 3)),
        "columns": _gather((4, 9), (3,), -1),
        "one": _gather((4, 9), (), 1),
        "inside": _gather((2, 5, 3), (4,), 1),
        "constant indexes": _gather((2, 5, 3), (4,), 1, values=(4, 0, 0, 2)),
        "batches": _gather((3, 5, 2), (3, 4), 1, 1),
        "batches from the end": _gather((3, 2, 5, 2), (3, 4), 2, -1),
        "floats": _gather((5, 3), (2,), dtype="float32"),
    },
}
RANDOM = {
    "MIRROR_PAD": _random_mirror(),
    "RESIZE_NEAREST_NEIGHBOR": random_resized("RESIZE_NEAREST_NEIGHBOR"),
    "GATHER": _random_gather(),
}
