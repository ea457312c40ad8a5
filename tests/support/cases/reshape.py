"""RESHAPE: any dtype, with and without a shape input."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, operator, shapes, tensor
from tinyfuse.ir import Op


def _op(before, after, shape_input=True, dtype="int8") -> Op:
    quantization = (0.1, 3) if dtype == "int8" else (None, 0)
    inputs = [tensor(before, *quantization, dtype)]
    if shape_input:
        inputs.append(constant(np.array(after, np.int32)))
    return operator("RESHAPE", inputs, tensor(after, *quantization, dtype))


@st.composite
def _random(draw) -> Op:
    before = draw(shapes)
    count = prod(before)
    divisor = draw(st.sampled_from([d for d in range(1, count + 1) if count % d == 0]))
    after = draw(
        st.sampled_from([(count,), (1, count), (divisor, count // divisor), (1, divisor, count // divisor, 1)])
    )
    return _op(before, after, draw(st.booleans()))


#: TFLM reshapes whatever has bytes
_OTHERS = ("bool", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32")
NAMED = {
    "RESHAPE": {
        "flat": _op((1, 3, 4, 5), (1, 60)),
        "without a shape input": _op((1, 3, 4, 5), (1, 60), shape_input=False),
        "to an image": _op((60,), (1, 4, 5, 3)),
        "same": _op((1, 3, 4, 5), (1, 3, 4, 5)),
        "to a scalar": _op((1, 1), ()),
        "rank 6": _op((2, 6, 2), (1, 2, 3, 2, 1, 2)),
        **{dtype: _op((2, 6), (3, 4), dtype=dtype) for dtype in _OTHERS},
    }
}
RANDOM = {"RESHAPE": _random()}
