"""QUANTIZE and DEQUANTIZE: every pair of dtypes that TFLM has."""

from __future__ import annotations

from hypothesis import strategies as st

from cases.common import broken_rules, f32, operator, scales, shapes, tensor
from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import RANGE

_QUANTIZES = ("float32", "int8"), ("float32", "int16")
_RESCALES = (
    ("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"),
    ("int8", "int16"), ("int16", "int8"), ("int16", "int16"),
    ("int8", "int32"), ("int16", "int32"), ("int32", "int8"), ("int32", "int16"),
)  # fmt: skip
_DEQUANTIZES = ("int8", "float32"), ("uint8", "float32"), ("int16", "float32")
_IMAGE = (1, 5, 8, 8)


def _op(kind, pair, source=(0.1, 3), result=(0.07, -5), shape=_IMAGE) -> Op:
    def end(dtype: str, scale: float, zero_point: int):
        if dtype == "float32":
            return tensor(shape, None, dtype=dtype)
        low, high = RANGE.get(dtype, (0, 0))
        return tensor(shape, scale, min(max(zero_point, low), high), dtype)

    return operator(kind, [end(pair[0], *source)], end(pair[1], *result))


@st.composite
def _random(draw, kind: str, pairs) -> Op:
    quants = [(draw(scales), draw(st.sampled_from([-40000, 0, 40000]) | st.integers(-128, 255))) for _ in range(2)]
    return _op(kind, draw(st.sampled_from(pairs)), *quants, draw(shapes))


NAMED = {
    "QUANTIZE": {
        **{
            f"{a} to {b}": _op("QUANTIZE", (a, b), (0.07 if a == "int32" else 0.1, 3), (0.08, -5))
            for a, b in _QUANTIZES + _RESCALES
        },
        "int32 to int8, from bits that count": _op("QUANTIZE", ("int32", "int8"), (2.0**-28, 0), (0.9, 7)),
        "int32 to int16, from bits that count": _op("QUANTIZE", ("int32", "int16"), (2.0**-20, 0), (0.9, 7)),
        "float, coarse": _op("QUANTIZE", ("float32", "int8"), result=(1e6, 127)),
        "float, fine": _op("QUANTIZE", ("float32", "int8"), result=(1e-6, -128)),
        "float, powers of two": _op("QUANTIZE", ("float32", "int16"), result=(2.0**-7, 0)),
        "same": _op("QUANTIZE", ("int8", "int8"), (0.1, 3), (0.1, 3)),
        "int8 to uint8 by 128": _op("QUANTIZE", ("int8", "uint8"), (0.1, -28), (0.1, 100)),
        "uint8 to int8 by 128": _op("QUANTIZE", ("uint8", "int8"), (0.1, 100), (0.1, -28)),
        "widest": _op("QUANTIZE", ("int8", "int8"), (f32(0.1) * 2.0**12, 3), (0.1, 127)),
        "to nothing": _op("QUANTIZE", ("int8", "int8"), (1e-10, 3), (1e10, 9)),
        "rank 1": _op("QUANTIZE", ("float32", "int8"), shape=(7,)),
    },
    "DEQUANTIZE": {
        **{f"{a} to {b}": _op("DEQUANTIZE", (a, b)) for a, b in _DEQUANTIZES},
        "denormal": _op("DEQUANTIZE", ("int8", "float32"), (1e-40, -128)),
        "huge": _op("DEQUANTIZE", ("int16", "float32"), (1e33, 0)),
        "rank 1": _op("DEQUANTIZE", ("int8", "float32"), shape=(7,)),
    },
}
RANDOM = {
    "QUANTIZE": _random("QUANTIZE", _QUANTIZES + _RESCALES).filter(lambda op: not broken_rules(op)),
    "DEQUANTIZE": _random("DEQUANTIZE", _DEQUANTIZES),
}
