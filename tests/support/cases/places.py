"""GATHER_ND, EMBEDDING_LOOKUP, DYNAMIC_UPDATE_SLICE: elements picked or replaced where indexes say."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, random_data, shapes, tensor
from tinyfuse.ir import Op, Tensor

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
    """`indexes`: their shape; they are constant where `values` are given."""
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
    """Inputs in `constants` (0: the tensor, 1: the part) are constant, and the starts where they are given."""
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
}
RANDOM = {"GATHER_ND": _random_gather(), "DYNAMIC_UPDATE_SLICE": _random_update()}
