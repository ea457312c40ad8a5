"""PAD and PADV2: every dimension, zero points at the ends."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, shapes, tensor, zero_points
from tinyfuse.ir import Op


def _op(shape, amounts, zero_point=-7, value=None) -> Op:
    """PADV2 where there is a value."""
    padded = [before + dim + after for dim, (before, after) in zip(shape, amounts, strict=True)]
    inputs = [tensor(shape, 0.1, zero_point), constant(np.array(amounts, np.int32))]
    if value is not None:
        inputs.append(constant(np.array(value, np.int8), 0.1, zero_point))
    return operator("PAD" if value is None else "PADV2", inputs, tensor(padded, 0.1, zero_point))


@st.composite
def _random(draw, kind: str) -> Op:
    shape = draw(shapes)
    amount = st.sampled_from([0, 0, 1, 2, 5])
    amounts = [(draw(amount), draw(amount)) for _ in shape]
    if len(shape) == 4 and draw(st.booleans()):
        amounts[0] = (0, 0)
    return _op(shape, amounts, draw(zero_points), draw(st.integers(-128, 127)) if kind == "PADV2" else None)


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
    },
    "PADV2": {
        "rows and columns": _op((1, 3, 4, 5), [(0, 0), (1, 1), (1, 2), (0, 0)], value=-128),
        "zero point": _op((1, 3, 4, 5), [(0, 0), (1, 1), (1, 2), (0, 0)], value=-7),
        "channels": _op((1, 3, 4, 5), [(0, 0), (1, 0), (0, 0), (2, 1)], value=127),
        "value of rank 1": _op((2, 3), [(1, 0), (0, 1)], value=[9]),
    },
}
RANDOM = {kind: _random(kind) for kind in NAMED}
