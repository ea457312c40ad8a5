"""CAST: converts stored numbers to another dtype and ignores their quantization."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.core.unary import ONE_INPUT, ONE_SHAPE

#: dtypes that TFLM can cast from, and dtypes that it can cast to
SOURCES = ("int8", "int16", "int32", "uint32", "bool", "float32")
RESULTS = ("int8", "int16", "int32", "uint32", "bool", "float32")
CASTS = tuple((a, b) for a in SOURCES for b in RESULTS)


class CastFamily(OpFamily):
    """CAST. From a wider integer: the low bits. From a float: rounded towards zero and saturated, NaN becomes 0. To
    bool: whether the value is not zero, which is false for NaN."""

    kind = "CAST"
    elementwise = True
    rows_alike = True
    summary = "stored numbers as another dtype"
    rules = (
        ONE_INPUT,
        Rule(
            f"from {', '.join(SOURCES)} to {', '.join(RESULTS)}",
            lambda op: (op.input.dtype, op.output.dtype) not in CASTS,
            "TensorFlow Lite Micro has no kernel for other pairs",
        ),
        ONE_SHAPE,
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        data = given(inputs[0])
        if op.input.dtype == "float32" and op.output.dtype not in ("float32", "bool"):
            limits = np.iinfo(op.output.dtype)
            data = np.nan_to_num(np.trunc(data.astype(np.float64)), nan=0.0).clip(limits.min, limits.max)
        return (data.astype(op.output.dtype),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None
