"""RELU, RELU6, LOGISTIC: nearly every case has room for all 256 stored values."""

from __future__ import annotations

from cases.common import broken_rules, f32, operator, scales, shapes, tensor, zero_points
from hypothesis import strategies as st

from tinyfuse.ir import Op

_ALL = (1, 4, 8, 8)  # 256 elements


def _op(kind: str, shape, in_scale, in_zero, out_scale, out_zero) -> Op:
    return operator(kind, [tensor(shape, in_scale, in_zero)], tensor(shape, out_scale, out_zero))


@st.composite
def _random(draw, kind: str) -> Op:
    shape = draw(shapes)
    source = (draw(scales), draw(zero_points))
    result = draw(st.one_of(st.just(source), st.tuples(scales, zero_points)))
    if kind == "LOGISTIC":
        result = (1 / 256, -128)
    return _op(kind, shape, *source, *result)


NAMED = {
    "RELU": {
        "same quantization": _op("RELU", _ALL, 0.05, -20, 0.05, -20),
        "full range": _op("RELU", _ALL, 0.05, -128, 0.05, -128),
        "other zero point": _op("RELU", _ALL, 0.05, 3, 0.05, -128),
        "finer output": _op("RELU", _ALL, 0.05, 3, 0.021, -128),
        "coarser output": _op("RELU", _ALL, 0.05, 100, 0.3, -100),
        "widest multiplier": _op("RELU", _ALL, 2.0**21 - 0.5, 0, 1.0, 0),
        "multiplier of zero": _op("RELU", _ALL, 1e-20, 0, 1e10, 7),
        "rank 2": _op("RELU", (3, 5), 0.05, 3, 0.021, -128),
    },
    "RELU6": {
        "six inside": _op("RELU6", _ALL, 0.05, -100, 0.05, -100),
        "six beyond": _op("RELU6", _ALL, 6 / 255, -128, 6 / 255, -128),
        "half way": _op("RELU6", _ALL, 12 / 5, 0, 12 / 5, 0),
        "output quantization is not looked at": _op("RELU6", _ALL, 0.05, -100, 0.5, 3),
    },
    "LOGISTIC": {
        f"scale {scale:.3g}, zero point {zero_point}": _op("LOGISTIC", _ALL, scale, zero_point, 1 / 256, -128)
        for scale in (2.0**-28, 1e-4, 1 / 256, f32(0.0235), 0.1, 0.5, 1.0, 15.0, 16.0, 100.0, 2.0**30)
        for zero_point in (-128, 0, 127)
    },
}
RANDOM = {kind: _random(kind).filter(lambda op: not broken_rules(op)) for kind in NAMED}
