"""DIV, FLOOR_DIV, FLOOR_MOD, POW, ADD_N and SELECT_V2."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import (
    ACTIVATIONS,
    broken_rules,
    constant,
    f32,
    operator,
    random_data,
    scales,
    shapes,
    tensor,
    zero_points,
)
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.core.binary import Binary

_IMAGE = (1, 3, 4, 5)
#: the divisor's zero point lies outside its values where a case must not divide by 0
_QUANTS = ((0.1, 3), (0.07, -9), (0.01, 5))


def _div(dtype="int8", a=_IMAGE, b=_IMAGE, quants=_QUANTS, activation="NONE", const=None) -> Op:
    if dtype != "int8":
        quants = ((None, 0),) * 3
    return operator(
        "DIV",
        [
            _operand(shape, quant, dtype, i == const, i == 1)
            for i, (shape, quant) in enumerate(zip((a, b), quants, strict=False))
        ],
        tensor(np.broadcast_shapes(a, b), *quants[2], dtype=dtype),
        Binary(activation),
    )


def _operand(shape, quant, dtype: str, is_constant: bool, divides: bool) -> Tensor:
    if not is_constant:
        return tensor(shape, *quant, dtype=dtype)
    data = random_data(shape, np.random.default_rng(3), dtype)
    if divides:
        data = np.where(data == quant[1], data.dtype.type(1), data)
    return constant(data, *quant)


def _floored(kind: str, a=_IMAGE, b=_IMAGE) -> Op:
    operands = [tensor(shape, None, dtype="float32") for shape in (a, b)]
    return operator(kind, operands, tensor(np.broadcast_shapes(a, b), None, dtype="float32"))


def _power(exponent: float) -> Op:
    """POW with a constant exponent."""
    operands = [tensor(_IMAGE, None, dtype="float32"), constant(np.array([exponent], np.float32))]
    return operator("POW", operands, tensor(_IMAGE, None, dtype="float32"))


def _whole_power(shape, exponent: int | None = None) -> Op:
    """POW of int32."""
    exponents = tensor(shape, None, dtype="int32") if exponent is None else constant(np.array(exponent, np.int32))
    return operator("POW", [tensor((7, 9), None, dtype="int32"), exponents], tensor((7, 9), None, dtype="int32"))


def _add_n(dtype: str, count: int, shape=_IMAGE, source=(0.1, 3), result=(0.3, -5), const=False) -> Op:
    if dtype != "int8":
        source = result = (None, 0)
    inputs = [tensor(shape, *source, dtype=dtype) for _ in range(count)]
    if const:
        inputs[1] = constant(random_data(shape, np.random.default_rng(5), dtype), *source)
    return operator("ADD_N", inputs, tensor(shape, *result, dtype=dtype))


def _select(dtype: str, condition=_IMAGE, x=_IMAGE, y=_IMAGE, const=None) -> Op:
    quant = (None, 0) if dtype == "float32" else (0.1, 0)
    rng = np.random.default_rng(7)
    inputs = [
        constant(random_data(shape, rng, own), *own_quant) if i == const else tensor(shape, *own_quant, dtype=own)
        for i, (shape, own, own_quant) in enumerate(
            zip((condition, x, y), ("bool", dtype, dtype), ((None, 0), quant, quant), strict=True)
        )
    ]
    return operator("SELECT_V2", inputs, tensor(np.broadcast_shapes(condition, x, y), *quant, dtype=dtype))


_FLOATS = {
    "equal shapes": (_IMAGE, _IMAGE),
    "both broadcast": ((1, 3, 1, 5), (1, 1, 4, 1)),
    "batch 2": ((2, 3, 4, 5), (1, 1, 1, 5)),
}
NAMED: dict[str, dict[str, Op]] = {
    "DIV": {
        **{dtype: _div(dtype) for dtype in ("int8", "int32", "float32")},
        **{
            f"{dtype}, both broadcast": _div(dtype, *_FLOATS["both broadcast"])
            for dtype in ("int8", "int32", "float32")
        },
        "a constant divisor": _div(b=(5,), const=1),
        "float32, a constant divisor": _div("float32", b=(5,), const=1),
        "many pairs of values": _div(a=(1, 2, 16, 16), b=(1, 2, 16, 16), quants=((0.5, -20), (0.1, -128), (0.05, 7))),
        "least shift": _div(quants=((64.0, 3), (1.0, -9), (1.0, 0))),
        "largest shift": _div(quants=((2.0**22, 3), (1.0, -9), (1.0, 0))),
        "relu": _div(activation="RELU"),
        "float32, relu6": _div("float32", activation="RELU6"),
        "int32, relu": _div("int32", activation="RELU"),
        "int32, relu6, both broadcast": _div("int32", *_FLOATS["both broadcast"], activation="RELU6"),
        "int32, relu from -1 to 1": _div("int32", activation="RELU_N1_TO_1"),
    },
    **{kind: {name: _floored(kind, *both) for name, both in _FLOATS.items()} for kind in ("FLOOR_DIV", "FLOOR_MOD")},
    "POW": {
        **{name: _floored("POW", *both) for name, both in _FLOATS.items()},
        **{f"to the power of {exponent}": _power(exponent) for exponent in (2.0, 3.0, 0.5, -1.0)},
        "int32": _whole_power((7, 9)),
        "int32, a power a column": _whole_power((9,)),
        "int32 to a constant power": _whole_power((), 3),
        "int32 to no power": _whole_power((), 0),
    },
    "ADD_N": {
        "int8": _add_n("int8", 3),
        "int8, two": _add_n("int8", 2, result=(0.1, 3)),
        "int8, seven": _add_n("int8", 7, source=(0.1, -128)),
        "int8, a constant": _add_n("int8", 3, const=True),
        "float32": _add_n("float32", 4),
        "float32, rank 2": _add_n("float32", 2, (3, 7), const=True),
    },
    "SELECT_V2": {
        **{dtype: _select(dtype) for dtype in ("int8", "int16", "float32")},
        "a condition a row": _select("int8", (1, 3, 1, 1)),
        "a condition of one": _select("float32", (1,)),
        "all broadcast": _select("int16", (1, 3, 1, 5), (1, 1, 4, 1), (5,)),
        "a constant": _select("float32", (1, 3, 4, 1), y=(1, 1, 1, 5), const=2),
        "rank 5": _select("int8", (2, 1, 3, 1, 2), (2, 2, 1, 3, 1), (2, 2, 3, 3, 2)),
    },
}


@st.composite
def _random_div(draw) -> Op:
    dtype = draw(st.sampled_from(["int8", "int32", "float32"]))
    first, second = draw(scales), draw(scales)
    quants = (
        (first, draw(zero_points)),
        (second, draw(zero_points)),
        (f32(first / second / draw(st.integers(64, 9999))), 0),
    )
    shape = draw(shapes)
    return _div(dtype, shape, shape, quants, draw(st.sampled_from(ACTIVATIONS)))


@st.composite
def _random_floored(draw, kind: str) -> Op:
    shape = draw(shapes)
    return _floored(kind, shape, shape[draw(st.integers(0, len(shape) - 1)) :])


@st.composite
def _random_add_n(draw) -> Op:
    source, result = ((draw(scales), draw(zero_points)) for _ in range(2))
    return _add_n(draw(st.sampled_from(["int8", "float32"])), draw(st.integers(2, 6)), draw(shapes), source, result)


@st.composite
def _random_select(draw) -> Op:
    shape = draw(shapes)
    forms = [tuple(d if draw(st.booleans()) else 1 for d in shape) for _ in range(3)]
    return _select(
        draw(st.sampled_from(["int8", "int16", "float32"])), *forms, const=draw(st.sampled_from([None, 1, 2]))
    )


RANDOM = {
    "DIV": _random_div().filter(lambda op: not broken_rules(op)),
    "FLOOR_DIV": _random_floored("FLOOR_DIV"),
    "FLOOR_MOD": _random_floored("FLOOR_MOD"),
    "ADD_N": _random_add_n().filter(lambda op: not broken_rules(op)),
    "SELECT_V2": _random_select(),
}
