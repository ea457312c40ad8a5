"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN: every set of axes of every rank."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from cases.common import broken_rules, constant, operator, scales, shapes, tensor, zero_points
from tinyfuse.ir import Op
from tinyfuse.ops.reduce import Reducer

_SUBSETS = [axes for count in range(1, 5) for axes in combinations(range(4), count)]


def _op(shape, axes, keep_dims=True, source=(0.1, 3), result=(0.09, -5), kind="MEAN") -> Op:
    reduced = {axis % len(shape) for axis in np.atleast_1d(axes)}
    kept = [1 if axis in reduced else dim for axis, dim in enumerate(shape) if keep_dims or axis not in reduced]
    inputs = [tensor(shape, *source), constant(np.array(axes, np.int32))]
    return operator(kind, inputs, tensor(kept, *result), Reducer(keep_dims))


@st.composite
def _random(draw, kind: str) -> Op:
    shape = draw(shapes)
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=4))
    quants = [(draw(scales), draw(zero_points)) for _ in range(2)]
    if kind.startswith("REDUCE"):
        quants[1] = quants[0]
    return _op(shape, axes, draw(st.booleans()), *quants, kind)


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
    },
    "REDUCE_MAX": _extreme_cases("REDUCE_MAX"),
    "REDUCE_MIN": _extreme_cases("REDUCE_MIN"),
}
RANDOM = {kind: _random(kind).filter(lambda op: not broken_rules(op)) for kind in NAMED}
