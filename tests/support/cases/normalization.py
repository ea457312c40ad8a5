"""LOG_SOFTMAX, L2_NORMALIZATION, ARG_MAX, ARG_MIN, RESIZE_BILINEAR."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import broken_rules, constant, operator, scales, shapes, tensor, zero_points
from cases.indexed import random_resized, resize_cases, resized
from tinyfuse.ir import Op
from tinyfuse.ops.pooling_reduce.l2_normalization import L2Norm


def _log_softmax(shape, scale=0.1, zero_point=3, dtype="int8") -> Op:
    if dtype == "float32":
        return operator("LOG_SOFTMAX", [tensor(shape, None, dtype=dtype)], tensor(shape, None, dtype=dtype))
    return operator("LOG_SOFTMAX", [tensor(shape, scale, zero_point)], tensor(shape, 1 / 16, 127))


def _l2(shape, zero_point=3, result=(1 / 128, 0), dtype="int8") -> Op:
    if dtype == "float32":
        floats = tensor(shape, None, dtype=dtype)
        return operator("L2_NORMALIZATION", [floats], tensor(shape, None, dtype=dtype), L2Norm())
    return operator("L2_NORMALIZATION", [tensor(shape, 0.1, zero_point)], tensor(shape, *result), L2Norm())


def _arg(kind: str, shape, axis: int, axis_shape=(), dtype="int8") -> Op:
    at = axis % len(shape)
    inputs = [
        tensor(shape, 0.1 if dtype == "int8" else None, dtype=dtype),
        constant(np.full(axis_shape, axis, np.int32)),
    ]
    return operator(kind, inputs, tensor((*shape[:at], *shape[at + 1 :]), None, dtype="int32"))


@st.composite
def _random_rows(draw, kind: str) -> Op:
    shape = draw(shapes | st.tuples(st.integers(1, 3), st.integers(1, 300)))
    if kind == "LOG_SOFTMAX":
        return _log_softmax(shape, draw(scales), draw(zero_points), draw(st.sampled_from(["int8", "float32"])))
    return _l2(shape, draw(zero_points), dtype=draw(st.sampled_from(["int8", "float32"])))


@st.composite
def _random_arg(draw, kind: str) -> Op:
    shape = draw(shapes)
    dtype = draw(st.sampled_from(["int8", "float32"]))
    return _arg(kind, shape, draw(st.integers(-len(shape), len(shape) - 1)), dtype=dtype)


def _arg_cases(kind: str) -> dict[str, Op]:
    return {
        "classes": _arg(kind, (1, 10), -1),
        "channels": _arg(kind, (1, 3, 4, 5), 3),
        "rows": _arg(kind, (2, 3, 4, 5), 1),
        "first": _arg(kind, (3, 4), 0, axis_shape=(1,)),
        "to a scalar": _arg(kind, (9,), 0),
        "one": _arg(kind, (4, 1), 1),
        "many": _arg(kind, (1, 300), 1),
        "floats, classes": _arg(kind, (1, 10), -1, dtype="float32"),
        "floats, rows": _arg(kind, (2, 3, 4, 5), 1, dtype="float32"),
        "floats, to a scalar": _arg(kind, (9,), 0, dtype="float32"),
    }


NAMED = {
    "LOG_SOFTMAX": {
        "ten classes": _log_softmax((1, 10)),
        "one class": _log_softmax((1, 1)),
        "rank 1": _log_softmax((12,)),
        "pixels": _log_softmax((1, 3, 4, 5)),
        "fine input": _log_softmax((1, 33), 1e-5),
        "finest input": _log_softmax((2, 33), 2.0**-25),
        "coarse input": _log_softmax((2, 256), 3.0),
        "beyond the clamp": _log_softmax((2, 33), 1e4),
        "long": _log_softmax((1, 4095), 2.0**-20),
        "every value": _log_softmax((1, 256), 0.05, -128),
        "floats, ten classes": _log_softmax((1, 10), dtype="float32"),
        "floats, one class": _log_softmax((3, 1), dtype="float32"),
        "floats, pixels": _log_softmax((1, 3, 4, 5), dtype="float32"),
        "floats, long": _log_softmax((2, 300), dtype="float32"),
    },
    "L2_NORMALIZATION": {
        "vectors": _l2((4, 8)),
        "pixels": _l2((1, 3, 4, 5)),
        "one value": _l2((6, 1)),
        "rank 1": _l2((33,), -128),
        "long": _l2((2, 3000), 127),
        "every value": _l2((256, 1), 0),
        "output quantization is not looked at": _l2((4, 8), result=(0.3, 9)),
        "floats, vectors": _l2((4, 8), dtype="float32"),
        "floats, pixels": _l2((1, 3, 4, 5), dtype="float32"),
        "floats, one value": _l2((6, 1), dtype="float32"),
        "floats, long": _l2((2, 300), dtype="float32"),
    },
    "ARG_MAX": _arg_cases("ARG_MAX"),
    "ARG_MIN": _arg_cases("ARG_MIN"),
    "RESIZE_BILINEAR": {
        **resize_cases("RESIZE_BILINEAR"),
        "many times": resized("RESIZE_BILINEAR", (1, 2, 3, 2), (15, 17), half_pixel_centers=True),
        **{f"floats, {name}": op for name, op in resize_cases("RESIZE_BILINEAR", "float32").items()},
    },
}
RANDOM = {
    "LOG_SOFTMAX": _random_rows("LOG_SOFTMAX").filter(lambda op: not broken_rules(op)),
    "L2_NORMALIZATION": _random_rows("L2_NORMALIZATION"),
    "ARG_MAX": _random_arg("ARG_MAX"),
    "ARG_MIN": _random_arg("ARG_MIN"),
    "RESIZE_BILINEAR": random_resized("RESIZE_BILINEAR").filter(lambda op: not broken_rules(op)),
}
