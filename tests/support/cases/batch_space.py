"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: blocks, paddings and crops of rows and columns, or of rows alone."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, tensor
from tinyfuse.ir import Op, Tensor


def _data(shape, dtype: str = "int8") -> Tensor:
    return tensor(shape, *((0.1, 3) if dtype == "int8" else (None, 0)), dtype)


def _op(kind: str, image, block, around, dtype="int8") -> Op:
    """One operator. `image`: shape of the side without blocks; `around`: paddings or crops."""
    counts = [(dim + sum(pair)) // b for dim, b, pair in zip(image[1:-1], block, around, strict=True)]
    batch = (image[0] * prod(block), *counts, image[-1])
    source, result = (image, batch) if kind == "SPACE_TO_BATCH_ND" else (batch, image)
    numbers = [constant(np.array(values, np.int32)) for values in (block, around)]
    return operator(kind, [_data(source, dtype), *numbers], _data(result, dtype))


def _cases(kind: str) -> dict[str, Op]:
    return {
        "blocks of four": _op(kind, (1, 4, 6, 3), (2, 2), [(0, 0), (0, 0)]),
        "around": _op(kind, (1, 5, 4, 3), (3, 2), [(1, 0), (1, 3)]),
        "more than a block around": _op(kind, (1, 3, 3, 2), (2, 2), [(4, 1), (3, 2)]),
        "images": _op(kind, (2, 4, 3, 5), (2, 3), [(1, 1), (0, 0)]),
        "rows alone": _op(kind, (1, 7, 4), (4,), [(0, 1)]),
        "rows alone, around": _op(kind, (2, 6, 3), (3,), [(4, 2)]),
        "blocks of one": _op(kind, (1, 2, 3, 4), (1, 1), [(0, 0), (0, 0)]),
        "floats": _op(kind, (1, 5, 4, 2), (3, 2), [(1, 0), (1, 1)], "float32"),
        "floats, rows alone": _op(kind, (1, 5, 2), (2,), [(0, 1)], "float32"),
    }


@st.composite
def _random(draw, kind: str) -> Op:
    rank = draw(st.integers(1, 2))
    block = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    around = [(draw(st.integers(0, 4)), draw(st.integers(0, 4))) for _ in block]
    counts = [-(-(1 + sum(pair)) // b) + draw(st.integers(0, 3)) for b, pair in zip(block, around, strict=True)]
    dims = [n * b - sum(pair) for n, b, pair in zip(counts, block, around, strict=True)]
    return _op(kind, (draw(st.integers(1, 2)), *dims, draw(st.integers(1, 5))), block, around)


KINDS = ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
NAMED = {kind: _cases(kind) for kind in KINDS}
RANDOM = {kind: _random(kind) for kind in KINDS}
