"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_ALL: every set of axes of every rank."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from cases.common import broken_rules, constant, operator, scales, shapes, tensor, zero_points
from tinyfuse.ir import Op
from tinyfuse.ops.pooling_reduce.reduce import Reducer

_SUBSETS = [axes for count in range(1, 5) for axes in combinations(range(4), count)]


def _op(shape, axes, keep_dims=True, source=(0.1, 3), result=(0.09, -5), kind="MEAN", dtype="int8") -> Op:
    if dtype in ("float32", "bool"):
        source = result = (None,)
    reduced = {axis % len(shape) for axis in np.atleast_1d(axes)}
    kept = [1 if axis in reduced else dim for axis, dim in enumerate(shape) if keep_dims or axis not in reduced]
    inputs = [tensor(shape, *source, dtype=dtype), constant(np.array(axes, np.int32))]
    return operator(kind, inputs, tensor(kept, *result, dtype=dtype), Reducer(keep_dims))


@st.composite
def _random(draw, kind: str) -> Op:
    shape = draw(shapes)
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=4))
    quants = [(draw(scales), draw(zero_points)) for _ in range(2)]
    if kind.startswith("REDUCE"):
        quants[1] = quants[0]
    return _op(shape, axes, draw(st.booleans()), *quants, kind, draw(st.sampled_from(_DTYPES[kind])))


_DTYPES = {
    "MEAN": ("int8", "int8", "int16", "float32"),
    "SUM": ("int8", "int8", "int16", "float32"),
    "REDUCE_MAX": ("int8", "float32"),
    "REDUCE_MIN": ("int8", "float32"),
    "REDUCE_ALL": ("bool",),
}


def _wide(kind: str, dtype: str, source=(0.001, 0), result=(0.0009, 0)) -> dict[str, Op]:
    """Reductions of other dtypes than int8."""

    def case(shape, axes, keep_dims=False) -> Op:
        return _op(shape, axes, keep_dims, source, result, kind, dtype)

    return {
        **{f"{dtype}, axes {axes}": case((2, 3, 4, 5), axes, len(axes) % 2 == 0) for axes in _SUBSETS[1::2]},
        f"{dtype}, rows and columns": case((1, 7, 5, 33), (1, 2), keep_dims=True),
        f"{dtype}, columns before rows": case((2, 7, 5, 3), (-2, -3)),
        f"{dtype}, everything": case((4, 6), (0, 1)),
        f"{dtype}, an axis twice": case((5, 6), (0, -2)),
        **_high_ranks(kind, dtype, source, result),
    }


def _high_ranks(kind: str, dtype: str, source=(0.1, 3), result=(0.1, 3)) -> dict[str, Op]:
    def case(shape, axes) -> Op:
        return _op(shape, axes, True, source, result, kind, dtype)

    return {
        f"{dtype}, rank 5": case((2, 3, 2, 3, 2), (1, 3)),
        f"{dtype}, rank 6": case((2, 3, 1, 2, 2, 3), (0, 2, 4)),
    }


def _extreme_cases(kind: str) -> dict[str, Op]:
    def case(shape, axes, keep_dims=False) -> Op:
        return _op(shape, axes, keep_dims, result=(0.1, 3), kind=kind)

    return {
        **{f"axes {axes}": case((2, 3, 4, 5), axes, keep_dims=len(axes) % 2 == 0) for axes in _SUBSETS[::2]},
        "channels": case((1, 3, 4, 33), -1),
        "rows and columns": case((1, 7, 5, 33), (2, 1)),
        "everything": case((4, 6), (0, 1)),
        "rank 1": case((9,), (0,), keep_dims=True),
    }


NAMED = {
    "MEAN": {
        **{f"axes {axes}": _op((2, 3, 4, 5), axes, keep_dims=len(axes) % 2 == 0) for axes in _SUBSETS},
        "rows and columns": _op((1, 7, 5, 33), (1, 2)),
        "rows and columns, dropped": _op((1, 7, 5, 33), (1, 2), keep_dims=False),
        "columns before rows": _op((1, 7, 5, 3), (2, 1)),
        "axes from the end": _op((1, 7, 5, 3), (-2, -3)),
        "an axis twice": _op((1, 7, 5, 3), (1, -3, 1)),
        "a scalar axis": _op((4, 6), 1, keep_dims=False),
        "everything": _op((4, 6), (0, 1), keep_dims=False),
        "rank 1": _op((9,), (0,)),
        "a power of two": _op((1, 8, 8, 4), (1, 2)),
        "one element": _op((1, 1, 1, 4), (1, 2)),
        "equal quantization": _op((1, 5, 5, 4), (1, 2), source=(0.1, -128), result=(0.1, -128)),
        "finer output": _op((1, 5, 5, 4), (1, 2), source=(100.0, 9), result=(0.003, 0)),
        "coarser output": _op((1, 5, 5, 4), (1, 2), source=(1e-6, -128), result=(100.0, 7)),
        "shift at its end": _op((1, 5, 5, 4), (1, 2), source=(2.0**-29, -128), result=(1.0, 7)),
        "many": _op((1, 64, 64, 1), (1, 2), source=(0.1, -128)),
        **_high_ranks("MEAN", "int8"),
        **_wide("MEAN", "int16"),
        **_wide("MEAN", "float32"),
        "int16, zero points": _op((1, 5, 5, 4), (1, 2), source=(0.1, 300), result=(0.07, -20), dtype="int16"),
        "int16, finer output": _op((1, 5, 5, 4), (1, 2), source=(0.1, 0), result=(0.001, 0), dtype="int16"),
        "int16, many": _op((1, 128, 64, 1), (1, 2), source=(0.1, 0), dtype="int16"),
    },
    "SUM": {
        **{
            f"axes {axes}": _op((2, 3, 4, 5), axes, len(axes) % 2 == 0, result=(0.4, -5), kind="SUM")
            for axes in _SUBSETS
        },
        "rows and columns": _op((1, 7, 5, 33), (1, 2), result=(1.3, 9), kind="SUM"),
        "finer output": _op((1, 5, 5, 4), (1, 2), source=(100.0, 9), result=(0.003, 0), kind="SUM"),
        "coarser output": _op((1, 5, 5, 4), (1, 2), source=(1e-6, -128), result=(100.0, 7), kind="SUM"),
        "many": _op((1, 64, 64, 1), (1, 2), source=(0.1, -128), result=(50.0, -128), kind="SUM"),
        **_wide("SUM", "int16", result=(0.01, 0)),
        **_wide("SUM", "float32"),
    },
    "REDUCE_MAX": _extreme_cases("REDUCE_MAX") | _wide("REDUCE_MAX", "float32") | _high_ranks("REDUCE_MAX", "int8"),
    "REDUCE_MIN": _extreme_cases("REDUCE_MIN") | _wide("REDUCE_MIN", "float32"),
    "REDUCE_ALL": _wide("REDUCE_ALL", "bool"),
}
RANDOM = {kind: _random(kind).filter(lambda op: not broken_rules(op)) for kind in NAMED}
