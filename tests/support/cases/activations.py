"""Functions of one value: nearly every int8 case has room for all 256 stored values; of int16 there is a random
sample and the ends; of float32 every exponent."""

from __future__ import annotations

from hypothesis import strategies as st

from cases.common import broken_rules, f32, operator, scales, shapes, tensor, zero_points
from tinyfuse.ir import Op
from tinyfuse.ops.elementwise.activations import LeakyRelu
from tinyfuse.ops.elementwise.gelu import Gelu

_ALL = (1, 4, 8, 8)  # 256 elements


#: outputs whose quantization is that of the function
_FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


def _op(kind: str, shape, in_scale, in_zero, out_scale, out_zero, alpha: float | None = None) -> Op:
    attributes = None if alpha is None else LeakyRelu(f32(alpha))
    if kind == "GELU":
        attributes = Gelu(bool(alpha))
    return operator(kind, [tensor(shape, in_scale, in_zero)], tensor(shape, out_scale, out_zero), attributes)


def _saturating(kind: str) -> dict[str, Op]:
    """LOGISTIC and TANH with input scales from all zero to all saturated."""
    return {
        f"scale {scale:.3g}, zero point {zero_point}": _op(kind, _ALL, scale, zero_point, *_FIXED[kind])
        for scale in (2.0**-28, 1e-4, 1 / 256, f32(0.0235), 0.1, 0.5, 1.0, 15.0, 16.0, 100.0, 2.0**30)
        for zero_point in (-128, 0, 127)
    }


def _rescaling(kind: str, *alpha: float) -> dict[str, Op]:
    """Cases for every function whose output has its own quantization."""
    return {
        "same quantization": _op(kind, _ALL, 0.05, -20, 0.05, -20, *alpha),
        "finer output": _op(kind, _ALL, 0.05, 3, 0.021, -128, *alpha),
        "coarser output": _op(kind, _ALL, 0.05, 100, 0.3, -100, *alpha),
        "zero point at the low end": _op(kind, _ALL, 0.024, -128, 0.02, -128, *alpha),
        "zero point at the high end": _op(kind, _ALL, 0.024, 127, 0.02, 127, *alpha),
        "products that are halves, nearly": _op(kind, _ALL, 1 / 8, 3, 0.1, -20, *alpha),
        "rank 2": _op(kind, (3, 5), 0.05, 3, 0.021, -128, *alpha),
        "rank 0": _op(kind, (), 0.05, 3, 0.021, -128, *alpha),
        "rank 5": _op(kind, (2, 1, 3, 2, 2), 0.05, 3, 0.021, -128, *alpha),
        "batch 2": _op(kind, (2, 4, 8, 4), 0.05, 3, 0.021, -128, *alpha),
    }


@st.composite
def _random(draw, kind: str) -> Op:
    shape = draw(shapes)
    source = (draw(scales), draw(zero_points))
    result = draw(st.one_of(st.just(source), st.tuples(scales, zero_points)))
    alpha = {"LEAKY_RELU": st.floats(-3, 3), "GELU": st.integers(0, 1)}.get(kind)
    alpha = None if alpha is None else draw(alpha)
    if kind == "RSQRT":
        source = (source[0], -128)
    return _op(kind, shape, *source, *_FIXED.get(kind, result), alpha)


NAMED = {
    "RELU": {
        "same quantization": _op("RELU", _ALL, 0.05, -20, 0.05, -20),
        "full range": _op("RELU", _ALL, 0.05, -128, 0.05, -128),
        "other zero point": _op("RELU", _ALL, 0.05, 3, 0.05, -128),
        "finer output": _op("RELU", _ALL, 0.05, 3, 0.021, -128),
        "coarser output": _op("RELU", _ALL, 0.05, 100, 0.3, -100),
        "products that are halves, nearly": _op("RELU", _ALL, 1 / 8, 3, 0.1, -20),
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
    "LOGISTIC": _saturating("LOGISTIC"),
    "TANH": _saturating("TANH"),
    "LEAKY_RELU": {
        **_rescaling("LEAKY_RELU", 0.2),
        "alpha of zero": _op("LEAKY_RELU", _ALL, 0.05, 3, 0.04, -20, 0.0),
        "alpha of one": _op("LEAKY_RELU", _ALL, 0.05, 3, 0.05, 3, 1.0),
        "alpha above one": _op("LEAKY_RELU", _ALL, 0.05, 3, 0.07, 20, 1.7),
        "negative alpha": _op("LEAKY_RELU", _ALL, 0.05, 3, 0.04, -20, -0.3),
        "tiny alpha": _op("LEAKY_RELU", _ALL, 0.05, 3, 0.04, -20, 1e-12),
        "alpha that saturates": _op("LEAKY_RELU", _ALL, 0.05, 3, 0.04, -20, 4e5),
        "widest multiplier": _op("LEAKY_RELU", _ALL, 2.0**21 - 0.5, 0, 1.0, 0, 0.01),
    },
    "GELU": {
        **_rescaling("GELU"),
        "by tanh": _op("GELU", _ALL, 0.04, -10, 0.03, -100, 1),
        "by tanh, coarse": _op("GELU", _ALL, 0.5, 20, 0.4, -120, 1),
        "by tanh, fine": _op("GELU", _ALL, 0.004, 5, 0.003, 0, 1),
        "below all of it": _op("GELU", _ALL, 2.0**90, 0, 2.0**90, -128),
    },
    "HARD_SWISH": {
        **_rescaling("HARD_SWISH"),
        **{
            f"scale {scale:.3g}": _op("HARD_SWISH", _ALL, scale, zero_point, scale * ratio, 11)
            for scale, zero_point, ratio in (
                (2.0**-22, 0, 1.0),
                (1e-3, -100, 0.01),
                (6 / 255, -20, 0.6),
                (0.1, 3, 2.0),
                (1.5, -8, 7.0),
                (40.0, 0, 100.0),
                (1000.0, 0, 511.0),
                (2.0**24, 9, 1.0),
            )
        },
        "finest output": _op("HARD_SWISH", _ALL, 1.0, 0, 1 / 127, 0),
    },
    "ELU": {
        **_rescaling("ELU"),
        "steep": _op("ELU", _ALL, 1.0, 0, 0.01, -27),
        "flat": _op("ELU", _ALL, 1e-6, 0, 0.1, 5),
    },
    "ABS": {**_rescaling("ABS"), "widest multiplier": _op("ABS", _ALL, 2.0**21 - 0.5, 0, 1.0, 0)},
    "RSQRT": {
        f"scale {scale:.3g}, output {out:.3g}": _op("RSQRT", shape, scale, -128, out, zero_point)
        for scale, out, zero_point, shape in (
            (1.0, 1 / 127, 0, _ALL),
            (0.05, 0.02, -128, _ALL),
            (1e-4, 0.5, 127, (2, 4, 8, 4)),
            (3.0, 1e-3, 5, (3, 5)),
            (2.0**-40, 2.0**-9, 0, _ALL),
            (2.0**12, 2.0**6, 9, ()),
        )
    },
}
_WIDE = (1, 2, 16, 16)


def _wide(kind: str, shape=_WIDE, in_scale=2.0**-12, out_scale=2.0**-15, alpha: float | None = None) -> Op:
    attributes = None if alpha is None else LeakyRelu(f32(alpha))
    return operator(kind, [tensor(shape, in_scale, 0, "int16")], tensor(shape, out_scale, 0, "int16"), attributes)


def _real(kind: str, shape=_WIDE, alpha: float | None = None) -> Op:
    attributes = None if alpha is None else LeakyRelu(f32(alpha))
    if kind == "GELU":
        attributes = Gelu(bool(alpha))
    return operator(kind, [tensor(shape, None, dtype="float32")], tensor(shape, None, dtype="float32"), attributes)


NAMED["RELU"] |= {
    "int16": _wide("RELU", in_scale=1e-4, out_scale=1e-4),
    "int16, finer output": _wide("RELU", in_scale=1e-4, out_scale=3e-5),
    "int16, coarser output": _wide("RELU", in_scale=1e-4, out_scale=7e-3),
    "int16, widest multiplier": _wide("RELU", in_scale=2.0**14 - 1, out_scale=1.0),
}
NAMED["RELU6"] |= {
    "int16, six inside": _wide("RELU6", in_scale=7e-4, out_scale=7e-4),
    "int16, six beyond": _wide("RELU6", in_scale=1e-4, out_scale=1e-4),
}
NAMED["LEAKY_RELU"] |= {
    "int16": _wide("LEAKY_RELU", in_scale=1e-4, out_scale=1e-4, alpha=0.2),
    "int16, negative alpha": _wide("LEAKY_RELU", in_scale=1e-4, out_scale=1.3e-4, alpha=-1.7),
    "int16, batch 2": _wide("LEAKY_RELU", (2, 3, 4, 5), 1e-4, 3e-5, 0.01),
    "float32": _real("LEAKY_RELU", alpha=0.2),
    "float32, negative alpha": _real("LEAKY_RELU", alpha=-1.7),
}
NAMED["GELU"] |= {
    "float32": _real("GELU"),
    "float32, rank 0": _real("GELU", ()),
    "float32, by tanh": _real("GELU", alpha=1),
    "float32, by tanh, batch 2": _real("GELU", (2, 3, 4, 5), 1),
}
NAMED["ABS"] |= {
    "int16": _wide("ABS", in_scale=1e-4, out_scale=1e-4),
    "int16, halves": _wide("ABS", in_scale=1e-4, out_scale=2e-4),
    "int16, finer output": _wide("ABS", in_scale=1e-4, out_scale=3e-5),
}
#: left shifts of none to all; scales that are a power of two and others
_SCALES = (2.0**-44, 1e-6, 2.0**-14, 2.0**-12, 2.0**-11, 3e-4, 2.6e-3, 0.1, 1.0, 2.0)
for _kind in ("LOGISTIC", "TANH"):
    NAMED[_kind] |= {f"int16, scale {scale:.3g}": _wide(_kind, in_scale=scale) for scale in _SCALES}
for _kind in ("RELU", "RELU6", "ABS", "HARD_SWISH"):
    NAMED[_kind] |= {"float32": _real(_kind), "float32, batch 2": _real(_kind, (2, 3, 4, 5))}
FLOATS = ("NEG", "SQUARE", "SQRT", "FLOOR", "CEIL", "ROUND")
_SHAPES = {"image": _WIDE, "rank 0": (), "rank 2": (5, 3), "batch 2": (2, 3, 4, 5)}
for _kind in FLOATS:
    NAMED[_kind] = {name: _real(_kind, shape) for name, shape in _SHAPES.items()}
NAMED["RSQRT"]["float32"] = _real("RSQRT")
#: those of libm are compared within a bound (OpFamily.ulp)
LIBM = ("EXP", "LOG", "SIN", "COS", "LOGISTIC", "TANH", "ELU")
for _kind in LIBM:
    NAMED.setdefault(_kind, {})
    NAMED[_kind] |= {"float32": _real(_kind), "float32, rank 0": _real(_kind, ())}


@st.composite
def _random_wide(draw, kind: str) -> Op:
    alpha = {"LEAKY_RELU": st.floats(-3, 3), "GELU": st.integers(0, 1)}.get(kind)
    alpha = None if alpha is None else draw(alpha)
    fixed = 2.0**-15 if kind in ("LOGISTIC", "TANH") else None
    return _wide(kind, draw(shapes), draw(scales), fixed or draw(scales), alpha)


@st.composite
def _random_real(draw, kind: str) -> Op:
    alpha = {"LEAKY_RELU": st.floats(-3, 3, width=32), "GELU": st.integers(0, 1)}.get(kind, st.none())
    return _real(kind, draw(shapes), draw(alpha))


def _strategy(kind: str) -> st.SearchStrategy[Op]:
    if kind in (*FLOATS, "EXP", "LOG", "SIN", "COS"):
        return _random_real(kind)
    sorts = [_random(kind), _random_real(kind)]
    if kind in ("RELU", "RELU6", "LEAKY_RELU", "ABS", "LOGISTIC", "TANH"):
        sorts.append(_random_wide(kind))
    return st.one_of(*sorts).filter(lambda op: not broken_rules(op))


RANDOM = {kind: _strategy(kind) for kind in NAMED}
