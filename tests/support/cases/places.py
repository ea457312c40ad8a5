"""Elements picked, replaced or added where indexes say: GATHER_ND, EMBEDDING_LOOKUP, DYNAMIC_UPDATE_SLICE, SCATTER_ND,
ONE_HOT, REVERSE_SEQUENCE; and WHERE, which gives such places, of a constant."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, random_data, shapes, tensor
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.movement.one_hot import OneHot
from tinyfuse.ops.movement.reverse_sequence import Sequences

_IMAGE = (1, 4, 5, 6)


def _data(shape, dtype: str = "int8") -> Tensor:
    return tensor(shape, *((0.1, 3) if dtype == "int8" else (None, 0)), dtype)


def _constant(shape, dtype: str = "int8", zero_point: int = 3) -> Tensor:
    rng = np.random.default_rng(5)
    if dtype == "float32":
        return constant(rng.normal(size=shape).astype(np.float32))
    return constant(random_data(shape, rng, dtype), 0.1, zero_point)


# --- GATHER_ND -------------------------------------------------------------------------------


def _gather(shape, indexes, dtype="int8", values=None, constant_data=False) -> Op:
    """One operator. `indexes`: their shape; they are constant if `values` are given."""
    source = _constant(shape, dtype) if constant_data else _data(shape, dtype)
    ids = tensor(indexes, None, dtype="int32") if values is None else constant(np.array(values, np.int32))
    return operator("GATHER_ND", [source, ids], _data((*indexes[:-1], *shape[indexes[-1] :]), dtype))


@st.composite
def _random_gather(draw) -> Op:
    shape = draw(shapes)
    outer = draw(st.lists(st.integers(1, 4), max_size=2))
    return _gather(shape, (*outer, draw(st.integers(1, len(shape)))), constant_data=draw(st.booleans()))


# --- EMBEDDING_LOOKUP ------------------------------------------------------------------------


def _lookup(table, count: int, dtype="int8", result="float32", values=None, run_time_table=False) -> Op:
    ids = tensor((count,), None, dtype="int32") if values is None else constant(np.array(values, np.int32))
    quantization = (0.1, 0) if dtype == "int8" else (None, 0)
    source = tensor(table, *quantization, dtype) if run_time_table else _constant(table, dtype, 0)
    return operator("EMBEDDING_LOOKUP", [ids, source], _data((count, *table[1:]), result))


# --- DYNAMIC_UPDATE_SLICE --------------------------------------------------------------------


def _update(shape, part, dtype="int8", starts_dtype="int32", starts=None, constants=()) -> Op:
    """One DYNAMIC_UPDATE_SLICE. Inputs in `constants` (0: the tensor, 1: the part) are constant, and so are starts if
    given."""
    data, update = (_constant(s, dtype) if i in constants else _data(s, dtype) for i, s in enumerate((shape, part)))
    where = tensor((len(shape),), None, dtype=starts_dtype)
    if starts is not None:
        where = constant(np.array(starts, starts_dtype))
    return operator("DYNAMIC_UPDATE_SLICE", [data, update, where], _data(shape, dtype))


def _constant_starts(*starts: int) -> Tensor:
    return constant(np.array(starts, np.int32))


@st.composite
def _random_update(draw) -> Op:
    shape = draw(shapes)
    part = [draw(st.integers(1, dim)) for dim in shape]
    starts = [draw(st.integers(-2, dim)) for dim in shape]
    return _update(shape, part, draw(st.sampled_from(["int8", "int16"])), starts=starts)


# --- SCATTER_ND ------------------------------------------------------------------------------


def _scatter(shape, indexes, dtype="int8", values=None, constant_updates=False) -> Op:
    """One SCATTER_ND. `indexes`: their shape; they are constant if `values` are given."""
    ids = tensor(indexes, None, dtype="int32") if values is None else constant(np.array(values, np.int32))
    updates = (*indexes[:-1], *shape[indexes[-1] :])
    source = _constant(updates, dtype) if constant_updates else _data(updates, dtype)
    return operator("SCATTER_ND", [ids, source, constant(np.array(shape, np.int32))], _data(shape, dtype))


@st.composite
def _random_scatter(draw) -> Op:
    shape = draw(shapes)
    outer = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    dtype = draw(st.sampled_from(["int8", "int32", "bool"]))
    return _scatter(shape, (*outer, draw(st.integers(1, len(shape)))), dtype)


# --- ONE_HOT ---------------------------------------------------------------------------------


def _one_hot(shape, depth: int, axis=-1, dtype="int8", index_dtype="int32", values=()) -> Op:
    """One ONE_HOT. `values`: constant values for the index and for other places."""
    at = len(shape) if axis == -1 else axis
    pair = [constant(np.array(value, dtype), 0.1, 3) for value in values] or [_data((), dtype), _data((), dtype)]
    inputs = [tensor(shape, None, dtype=index_dtype), constant(np.array(depth, np.int32)), *pair]
    return operator("ONE_HOT", inputs, _data((*shape[:at], depth, *shape[at:]), dtype), OneHot(axis))


# --- REVERSE_SEQUENCE ------------------------------------------------------------------------


def _reverse(shape, seq_dim: int, batch_dim: int, dtype="int16", length_dtype="int32", values=None) -> Op:
    lengths = tensor((shape[batch_dim],), None, dtype=length_dtype)
    if values is not None:
        lengths = constant(np.array(values, length_dtype))
    attributes = Sequences(seq_dim, batch_dim)
    return operator("REVERSE_SEQUENCE", [_data(shape, dtype), lengths], _data(shape, dtype), attributes)


# --- WHERE -----------------------------------------------------------------------------------


def _where(condition, dtype) -> Op:
    values = np.array(condition, dtype)
    places = (int(np.count_nonzero(values)), values.ndim)
    return operator("WHERE", [constant(values)], tensor(places, None, dtype="int64"))


_SAME = _data((3, 4))
NAMED = {
    "GATHER_ND": {
        "elements": _gather((4, 5), (3, 2)),
        "rows": _gather((4, 5), (3, 1)),
        "pixels": _gather(_IMAGE, (2, 3, 3)),
        "one": _gather((4, 5), (2,)),
        "five indexes": _gather((2, 3, 2, 2, 3, 2), (4, 5)),
        "constant data": _gather((9, 4), (3, 1), constant_data=True),
        "constant indexes": _gather((2, 5, 3), (2, 2), values=((1, 4), (0, 0))),
        "an index into the next row": _gather((3, 5), (2, 2), values=((0, 7), (2, -3))),
        "floats": _gather((5, 3), (2, 1), dtype="float32"),
        "single floats": _gather((5, 3), (2, 2), dtype="float32", constant_data=True),
    },
    "EMBEDDING_LOOKUP": {
        "dequantized": _lookup((9, 4), 3),
        "dequantized, rank 3": _lookup((5, 2, 3), 2),
        "dequantized, table at run time": _lookup((5, 7), 2, run_time_table=True),
        "dequantized, constant indexes": _lookup((5, 7), 2, values=(4, 0), run_time_table=True),
        "int8": _lookup((9, 4), 3, result="int8"),
        "floats": _lookup((9, 4), 3, "float32"),
        "floats, table at run time": _lookup((3, 2), 5, "float32", run_time_table=True),
    },
    "DYNAMIC_UPDATE_SLICE": {
        "one row of a cache": _update((1, 8, 2, 4), (1, 1, 2, 4), starts=(0, 3, 0, 0)),
        "at run time": _update((4, 5), (2, 3)),
        "int64 starts": _update((4, 5), (2, 3), starts_dtype="int64"),
        "constant int64 starts": _update((4, 5), (2, 3), starts_dtype="int64", starts=(1, 2)),
        "moved inside": _update((4, 5), (2, 3), starts=(-7, 100)),
        "everything": _update((3, 4), (3, 4), starts=(1, 2)),
        "by itself": operator("DYNAMIC_UPDATE_SLICE", [_SAME, _SAME, _constant_starts(1, 2)], _data((3, 4))),
        "rank 1": _update((9,), (4,)),
        "rank 6": _update((2, 2, 3, 2, 2, 3), (1, 2, 2, 1, 2, 2)),
        "into a constant": _update((4, 5), (1, 5), constants=(0,)),
        "a constant": _update((4, 5), (2, 2), constants=(1,)),
        **{dtype: _update((3, 4), (2, 2), dtype) for dtype in ("int16", "int32", "float32")},
    },
    "SCATTER_ND": {
        "elements": _scatter((4, 5), (3, 2)),
        "rows": _scatter((4, 5), (3, 1)),
        "one place twice": _scatter((4, 3), (3, 1), values=((1,), (2,), (1,))),
        "pixels": _scatter(_IMAGE, (2, 2, 3), constant_updates=True),
        "five indexes": _scatter((2, 1, 2, 2, 2, 3), (4, 5)),
        **{
            dtype: _scatter((2, 3), (8, 1), dtype, [(i % 2,) for i in range(8)])
            for dtype in ("bool", "uint8", "int32", "int64", "float32")
        },
    },
    "ONE_HOT": {
        "last": _one_hot((5,), 4),
        "first": _one_hot((2, 3), 4, 0),
        "inside": _one_hot((2, 3), 4, 1),
        "a scalar": _one_hot((), 3),
        "constant values": _one_hot((5,), 4, values=(7, -7)),
        "int64 indexes": _one_hot((2, 3), 4, 1, index_dtype="int64"),
        **{dtype: _one_hot((4,), 3, 0, dtype) for dtype in ("bool", "uint8", "int32", "int64", "float32")},
    },
    "REVERSE_SEQUENCE": {
        "in rows of a batch": _reverse((3, 5, 2), 1, 0),
        "batch behind": _reverse((5, 2, 3), 0, 2),
        "far apart": _reverse((2, 3, 2, 4, 2), 1, 3),
        "constant lengths": _reverse((3, 5), 1, 0, values=(5, 0, -1)),
        "int64 lengths": _reverse((3, 5), 1, 0, length_dtype="int64"),
        **{dtype: _reverse((4, 3), 0, 1, dtype) for dtype in ("uint8", "int32", "int64", "float32")},
    },
    "WHERE": {
        "bools": _where([[True, False], [True, True]], np.bool_),
        "numbers": _where([0, 3, 0, -1], np.int32),
        "floats": _where([[[0.5, -0.0]]], np.float32),
    },
}
RANDOM = {"GATHER_ND": _random_gather(), "DYNAMIC_UPDATE_SLICE": _random_update(), "SCATTER_ND": _random_scatter()}
