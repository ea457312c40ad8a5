"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: windows that reach over every border."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from cases.common import ACTIVATIONS, images, operator, scales, tensor, zero_points
from tinyfuse.ir import Op
from tinyfuse.ops.pooling_reduce.pooling import Pool2D


def _op(kind, shape, size, stride=(1, 1), padding="SAME", activation="NONE", quant=(0.1, -7), dtype="int8") -> Op:
    quant = (None,) if dtype == "float32" else quant
    dims = [
        -(-dim // s) if padding == "SAME" else (dim - k) // s + 1
        for dim, k, s in zip(shape[1:3], size, stride, strict=True)
    ]
    output = tensor((shape[0], *dims, shape[3]), *quant, dtype=dtype)
    return operator(kind, [tensor(shape, *quant, dtype=dtype)], output, Pool2D(padding, size, stride, activation))


@st.composite
def _random(draw, kind: str) -> Op:
    shape = (draw(st.sampled_from([1, 1, 1, 2])), *draw(images)[1:])
    size = (draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    stride = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    assume(padding == "SAME" or (size[0] <= shape[1] and size[1] <= shape[2]))
    quant = (draw(scales), draw(zero_points))
    dtype = "float32" if kind == "L2_POOL_2D" else draw(st.sampled_from(["int8", "int8", "int16", "float32"]))
    return _op(kind, shape, size, stride, padding, draw(st.sampled_from(ACTIVATIONS)), quant, dtype)


def _named(kind: str) -> dict[str, Op]:
    return {
        "two by two": _op(kind, (1, 6, 8, 5), (2, 2), (2, 2), "VALID"),
        "two by two, odd": _op(kind, (1, 7, 5, 5), (2, 2), (2, 2)),
        "three by three": _op(kind, (1, 7, 5, 4), (3, 3)),
        "three by three, stride 2": _op(kind, (1, 8, 6, 16), (3, 3), (2, 2)),
        "whole image": _op(kind, (1, 8, 8, 64), (8, 8), (8, 8), "VALID"),
        "whole odd image, 70 channels": _op(kind, (1, 7, 5, 70), (7, 5), (7, 5), "VALID"),
        "256 pixels": _op(kind, (1, 17, 16, 5), (16, 16), padding="VALID"),
        "more than 256 pixels": _op(kind, (1, 18, 17, 6), (17, 17), padding="VALID"),
        "larger than the image": _op(kind, (1, 3, 2, 3), (9, 7)),
        "stride beyond the window": _op(kind, (1, 7, 7, 3), (1, 2), (3, 4)),
        "one pixel": _op(kind, (1, 1, 1, 1), (1, 1)),
        "one row": _op(kind, (1, 1, 9, 3), (1, 3), (1, 2)),
        "one column": _op(kind, (1, 9, 1, 6), (4, 1), (3, 1), "VALID"),
        "batch 3": _op(kind, (3, 5, 4, 7), (2, 3), (1, 2)),
        "relu": _op(kind, (1, 4, 4, 3), (2, 2), activation="RELU"),
        "relu6": _op(kind, (1, 4, 4, 3), (2, 2), activation="RELU6", quant=(0.05, -100)),
        "relu from -1 to 1": _op(kind, (1, 4, 4, 3), (2, 2), activation="RELU_N1_TO_1"),
    }


def _wide(kind: str, dtype: str, **more) -> dict[str, Op]:
    """Pools of other dtypes, whose kernels take four channels at a time and the rest one by one."""
    more["dtype"] = dtype
    return {
        f"{dtype}, two by two": _op(kind, (1, 6, 8, 5), (2, 2), (2, 2), "VALID", **more),
        f"{dtype}, over every border": _op(kind, (1, 8, 6, 9), (3, 3), (2, 2), **more),
        f"{dtype}, whole image": _op(kind, (1, 7, 5, 6), (7, 5), (7, 5), "VALID", **more),
        f"{dtype}, larger than the image": _op(kind, (1, 3, 2, 3), (9, 7), **more),
        f"{dtype}, stride beyond the window": _op(kind, (1, 7, 7, 4), (1, 2), (3, 4), **more),
        f"{dtype}, batch 3": _op(kind, (3, 5, 4, 7), (2, 3), (1, 2), **more),
        f"{dtype}, relu": _op(kind, (1, 4, 4, 3), (2, 2), activation="RELU", **more),
        f"{dtype}, relu6": _op(kind, (1, 4, 4, 3), (2, 2), activation="RELU6", **more),
        f"{dtype}, relu from -1 to 1": _op(kind, (1, 4, 4, 3), (2, 2), activation="RELU_N1_TO_1", **more),
    }


_INT16_QUANT = (0.0002, 0)
NAMED = {
    kind: _named(kind) | _wide(kind, "int16", quant=_INT16_QUANT) | _wide(kind, "float32")
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D")
} | {"L2_POOL_2D": _wide("L2_POOL_2D", "float32")}
RANDOM = {kind: _random(kind) for kind in NAMED}
