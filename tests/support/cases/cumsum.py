"""CUMSUM: forward and back, with the element and without it."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import broken_rules, constant, operator, scales, shapes, tensor, zero_points
from tinyfuse.ir import Op
from tinyfuse.ops.pooling_reduce.cumsum import Cumsum


def _op(shape, axis, exclusive=False, reverse=False, source=(0.1, 3), result=(0.4, -7), dtype="int8") -> Op:
    if dtype == "float32":
        source = result = (None,)
    inputs = [tensor(shape, *source, dtype=dtype), constant(np.array(axis, np.int32))]
    return operator("CUMSUM", inputs, tensor(shape, *result, dtype=dtype), Cumsum(exclusive, reverse))


@st.composite
def _random(draw) -> Op:
    shape, (flags, flag) = draw(shapes), (st.booleans(), st.booleans())
    axis, dtype = draw(st.integers(-len(shape), len(shape) - 1)), draw(st.sampled_from(["int8", "float32"]))
    quants = [(draw(scales), draw(zero_points)) for _ in range(2)]
    return _op(shape, axis, draw(flags), draw(flag), *quants, dtype)


def _both(dtype: str) -> dict[str, Op]:
    return {
        f"{dtype}, last axis": _op((3, 8), -1, dtype=dtype),
        f"{dtype}, rows": _op((2, 5, 3, 4), 1, dtype=dtype),
        f"{dtype}, first axis": _op((6, 3), 0, dtype=dtype),
        f"{dtype}, exclusive": _op((2, 3, 5), 1, exclusive=True, dtype=dtype),
        f"{dtype}, reverse": _op((2, 7), 1, reverse=True, dtype=dtype),
        f"{dtype}, exclusive and reverse": _op((2, 5, 3), 1, True, True, dtype=dtype),
        f"{dtype}, exclusive, last axis": _op((2, 7), 1, exclusive=True, dtype=dtype),
        f"{dtype}, rank 5": _op((2, 2, 3, 2, 2), 2, dtype=dtype),
    }


NAMED = {
    "CUMSUM": {
        **_both("int8"),
        **_both("float32"),
        "equal quantization": _op((3, 8), 1, source=(0.1, 3), result=(0.1, 3)),
        "sums that wrap": _op((2, 70), 1, source=(0.1, -128), result=(9.0, -128)),
    }
}
RANDOM = {"CUMSUM": _random().filter(lambda op: not broken_rules(op))}
