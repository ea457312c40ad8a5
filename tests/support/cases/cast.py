"""CAST between every pair of dtypes."""

from __future__ import annotations

from hypothesis import strategies as st

from cases.common import operator, shapes, tensor
from tinyfuse.ir import Op
from tinyfuse.ops.elementwise.cast import CASTS

_IMAGE = (1, 3, 4, 5)


def _op(kind: str, source: str, result: str, shape=_IMAGE) -> Op:
    return operator(kind, [tensor(shape, None, dtype=source)], tensor(shape, None, dtype=result))


@st.composite
def _random(draw) -> Op:
    source, result = draw(st.sampled_from(CASTS))
    return _op("CAST", source, result, draw(shapes))


NAMED = {
    "CAST": {f"{a} to {b}": _op("CAST", a, b) for a, b in CASTS}
    | {"rank 0": _op("CAST", "bool", "int8", ()), "batch 2": _op("CAST", "float32", "int8", (2, 3, 4, 5))},
}
RANDOM = {"CAST": _random()}
