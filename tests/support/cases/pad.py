"""PAD and PADV2: every dimension, zero points at the ends."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, shapes, tensor, zero_points
from tinyfuse.ir import Op


def _op(shape, amounts, zero_point=-7, value=None, dtype="int8") -> Op:
    """PAD, or PADV2 if there is a value."""
    quant = (0.1, zero_point) if dtype in ("int8", "int16") else (None,)
    padded = [before + dim + after for dim, (before, after) in zip(shape, amounts, strict=True)]
    inputs = [tensor(shape, *quant, dtype=dtype), constant(np.array(amounts, np.int32))]
    if value is not None:
        inputs.append(constant(np.array(value, dtype), *quant))
    return operator("PAD" if value is None else "PADV2", inputs, tensor(padded, *quant, dtype=dtype))


@st.composite
def _random(draw, kind: str) -> Op:
    shape = draw(shapes)
    amount = st.sampled_from([0, 0, 1, 2, 5])
    amounts = [(draw(amount), draw(amount)) for _ in shape]
    if len(shape) == 4 and draw(st.booleans()):
        amounts[0] = (0, 0)
    dtype = draw(st.sampled_from(["int8", "int8", "int16", "int32", "float32"]))
    value = draw(st.integers(-128, 127)) if kind == "PADV2" else None
    return _op(shape, amounts, draw(zero_points) if dtype == "int8" else 0, value, dtype)


_IMAGE, _AROUND = (1, 3, 4, 5), [(0, 0), (1, 1), (1, 2), (0, 0)]


def _wide(value=None, **values) -> dict[str, Op]:
    """PAD of dtypes other than int8."""
    more: dict[str, Op] = {}
    for dtype in ("int16", "int32", "float32"):
        found = values.get(dtype, value)
        more |= {
            f"{dtype}, rows and columns": _op(_IMAGE, _AROUND, 0, found, dtype),
            f"{dtype}, channels": _op(_IMAGE, [(0, 0), (1, 0), (0, 0), (2, 1)], 0, found, dtype),
            f"{dtype}, batch": _op((2, 3, 4, 5), [(1, 1), (1, 0), (0, 1), (1, 1)], 0, found, dtype),
            f"{dtype}, rank 2": _op((3, 4), [(2, 1), (0, 3)], 0, found, dtype),
        }
    return more


def _rank_5(dtype: str, value=None) -> dict[str, Op]:
    def case(amounts, shape=(2, 3, 4, 2, 3)) -> Op:
        return _op(shape, amounts, -7 if dtype == "int8" else 0, value, dtype)

    return {
        f"{dtype}, rank 5, outer dimensions": case([(1, 1), (0, 2), (0, 0), (0, 0), (0, 0)]),
        f"{dtype}, rank 5, inner dimensions": case([(0, 0), (0, 0), (1, 2), (2, 0), (0, 1)]),
        f"{dtype}, rank 5, batch 1": case([(0, 0), (1, 2), (2, 0), (0, 1), (1, 1)], (1, 2, 3, 2, 3)),
    }


NAMED = {
    "PAD": {
        "rows and columns": _op((1, 3, 4, 5), [(0, 0), (1, 1), (1, 1), (0, 0)]),
        "uneven": _op((1, 3, 4, 5), [(0, 0), (0, 2), (3, 0), (0, 0)]),
        "channels": _op((1, 3, 4, 5), [(0, 0), (1, 0), (0, 0), (2, 1)]),
        "channels of many": _op((1, 2, 2, 64), [(0, 0), (0, 0), (0, 0), (0, 6)]),
        "batch": _op((2, 3, 4, 5), [(1, 1), (1, 0), (0, 1), (1, 1)]),
        "nothing": _op((1, 3, 4, 5), [(0, 0)] * 4),
        "more than there is": _op((1, 1, 1, 1), [(0, 0), (9, 9), (9, 9), (0, 0)]),
        "rank 1": _op((3,), [(2, 1)]),
        "rank 2": _op((3, 4), [(2, 1), (0, 3)]),
        "rank 3": _op((3, 4, 2), [(2, 1), (0, 3), (1, 1)]),
        "lowest zero point": _op((1, 3, 4, 5), [(0, 0), (1, 1), (1, 1), (0, 0)], -128),
        "highest zero point": _op((1, 3, 4, 5), [(0, 0), (1, 1), (1, 1), (0, 0)], 127),
        **_wide(),
        "int16, another zero point": _op(_IMAGE, _AROUND, 40, dtype="int16"),
        **_rank_5("int8"),
        **_rank_5("float32"),
    },
    "PADV2": {
        "rows and columns": _op((1, 3, 4, 5), [(0, 0), (1, 1), (1, 2), (0, 0)], value=-128),
        "zero point": _op((1, 3, 4, 5), [(0, 0), (1, 1), (1, 2), (0, 0)], value=-7),
        "channels": _op((1, 3, 4, 5), [(0, 0), (1, 0), (0, 0), (2, 1)], value=127),
        "value of rank 1": _op((2, 3), [(1, 0), (0, 1)], value=[9]),
        **_wide(int16=-30000, int32=-(2**31), float32=-0.1),
        "float32, the lowest value": _op(_IMAGE, _AROUND, 0, -np.inf, "float32"),
        **_rank_5("int16", 777),
    },
}
RANDOM = {kind: _random(kind) for kind in NAMED}
