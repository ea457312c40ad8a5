"""Elementwise operators of two inputs: equal shapes, broadcasting in every direction, constants, extreme
multipliers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import (
    ACTIVATIONS,
    broken_rules,
    constant,
    operator,
    random_data,
    scales,
    seeds,
    shapes,
    tensor,
    zero_points,
)  # fmt: skip
from tinyfuse.ir import Op
from tinyfuse.ops.binary import Binary

_IMAGE = (1, 3, 4, 5)
#: room for every int8 value, twice
_PAIRS = (1, 2, 16, 16)

ARITHMETIC = ("ADD", "SUB", "MUL")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
LOGIC = ("LOGICAL_AND", "LOGICAL_OR")
INT8 = (*ARITHMETIC, "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM", "PRELU", *COMPARISONS)
INT32 = (*ARITHMETIC, "MAXIMUM", "MINIMUM", *COMPARISONS)

_QUANTS = ((0.1, 3), (0.07, -9), (0.12, 5))


def _result(kind: str, shape, quant, dtype: str):
    if kind in COMPARISONS or dtype == "bool":
        return tensor(shape, None, dtype="bool")
    return tensor(shape, *quant, dtype=dtype)


def _op(kind, a=_IMAGE, b=_IMAGE, quants=_QUANTS, activation="NONE", const=None, dtype="int8") -> Op:
    """`const`: the index of the constant operand; quants: (scale, zero point) of a, b and output."""
    rng = np.random.default_rng(2)
    if dtype != "int8":
        quants = ((None, 0),) * 3
    operands = [
        constant(random_data(shape, rng, dtype), *quant) if i == const else tensor(shape, *quant, dtype=dtype)
        for i, (shape, quant) in enumerate(zip((a, b), quants, strict=False))
    ]
    output = _result(kind, np.broadcast_shapes(a, b), quants[2], dtype)
    return operator(kind, operands, output, Binary(activation) if kind in ARITHMETIC else None)


def _twice(kind: str) -> Op:
    operand = tensor(_IMAGE, 0.1, 3)
    return operator(kind, [operand, operand], _result(kind, _IMAGE, (0.2, -7), "int8"), _op(kind).attributes)


@st.composite
def _random(draw, kind: str, dtype: str = "int8") -> Op:
    shape = draw(shapes)
    quants = [(draw(scales), draw(zero_points)) for _ in range(3)]
    if kind in COMPARISONS and draw(st.booleans()):
        quants[1] = quants[0]
    if dtype != "int8":
        quants = [(None, 0)] * 3
    rng = np.random.default_rng(draw(seeds))
    forms = [shape, shape]
    how = draw(st.sampled_from(["equal", "equal", "one", "both"]))
    for i in {"equal": [], "one": [draw(st.integers(0, 1))], "both": [0, 1]}[how]:
        ones = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
        forms[i] = tuple(1 if one else dim for one, dim in zip(ones, shape, strict=True))
        if not i and draw(st.booleans()):  # fewer dimensions, too
            forms[i] = forms[i][draw(st.integers(0, len(shape) - 1)) :]
    const = draw(st.sampled_from([None, None, 0, 1]))
    operands = [
        constant(random_data(form, rng, dtype), *quant) if i == const else tensor(form, *quant, dtype=dtype)
        for i, (form, quant) in enumerate(zip(forms, quants, strict=False))
    ]
    output = _result(kind, np.broadcast_shapes(*forms), quants[2], dtype)
    activation = None
    if kind in ARITHMETIC:
        activation = draw(st.sampled_from(ACTIVATIONS)) if dtype == "int8" else "NONE"
    return operator(kind, operands, output, activation and Binary(activation))


def _shapes(kind: str, dtype: str = "int8") -> dict[str, Op]:
    """What every kind must take, whatever it computes."""
    return {
        "equal shapes": _op(kind, dtype=dtype),
        "many channels": _op(kind, (1, 2, 3, 70), (1, 2, 3, 70), dtype=dtype),
        "one pixel": _op(kind, (1, 1, 1, 1), (1, 1, 1, 1), dtype=dtype),
        "a constant a channel": _op(kind, b=(5,), const=1, dtype=dtype),
        "a constant a channel, first": _op(kind, a=(5,), const=0, dtype=dtype),
        "a constant a row": _op(kind, b=(1, 3, 1, 1), const=1, dtype=dtype),
        "a constant image": _op(kind, b=_IMAGE, const=1, dtype=dtype),
        "a constant scalar": _op(kind, b=(), const=1, dtype=dtype),
        "a factor a channel": _op(kind, b=(1, 1, 1, 5), dtype=dtype),
        "both broadcast": _op(kind, a=(1, 3, 1, 5), b=(1, 1, 4, 1), dtype=dtype),
        "ranks differ": _op(kind, a=(4, 5), dtype=dtype),
        "rank 0": _op(kind, (), (), dtype=dtype),
        "rank 2": _op(kind, (3, 5), (1, 5), dtype=dtype),
        "rank 5": _op(kind, (2, 3, 1, 2, 3), (4, 2, 1), dtype=dtype),
        "batch 2": _op(kind, (2, 3, 4, 5), (1, 3, 4, 1), dtype=dtype),
    }


def _named(kind: str) -> dict[str, Op]:
    """The same of int8, and what quantization makes difficult."""
    return {
        **_shapes(kind),
        "many pairs of values": _op(kind, _PAIRS, _PAIRS, quants=((0.024, -20), (0.017, 11), (0.04, -3))),
        "an operand twice": _twice(kind),
        "equal quantization": _op(kind, quants=((0.1, 0), (0.1, 0), (0.1, 0))),
        "zero points at the ends": _op(kind, quants=((0.1, -128), (0.1, 127), (0.1, -128))),
    }


def _activations(kind: str) -> dict[str, Op]:
    return {
        "relu": _op(kind, activation="RELU"),
        "relu6": _op(kind, quants=((0.1, 3), (0.07, -9), (0.12, -100)), activation="RELU6"),
        "relu from -1 to 1": _op(kind, activation="RELU_N1_TO_1"),
        "far apart": _op(kind, quants=((1e-6, -128), (100.0, 127), (0.5, 0))),
        "coarsest output": _op(kind, quants=((1e-5, -128), (1e-5, -128), (1e6, 9))),
    }


def _finest(kind: str, scale: float, shift: int) -> dict[str, Op]:
    return {"finest output": _op(kind, quants=((scale, -128), (scale, -128), (2.0**-shift, 0)))}


#: kinds whose C differs from that of another only in a sign: not every shape again
_TWINS = (*COMPARISONS[1:], "MINIMUM", "LOGICAL_OR")
_FEW = ("equal shapes", "many pairs of values", "a constant scalar", "a factor a channel", "both broadcast", "rank 0")


def _of(kind: str, ops: dict[str, Op]) -> dict[str, Op]:
    return {name: ops[name] for name in _FEW if name in ops} if kind in _TWINS else ops


NAMED: dict[str, dict[str, Op]] = {kind: _of(kind, _named(kind)) for kind in INT8}
for _kind in ARITHMETIC:
    NAMED[_kind] |= _activations(_kind) | _finest(_kind, 1.0, 14 if _kind == "MUL" else 17)
for _kind in INT32:
    NAMED[_kind] |= {f"int32, {name}": _shapes(_kind, "int32")[name] for name in ("equal shapes", "both broadcast")}
for _kind in COMPARISONS:
    NAMED[_kind] |= {
        "largest scales": _op(_kind, quants=((0.999, -128), (0.998, 127), _QUANTS[2])),
        "scales too small to differ": _op(_kind, quants=((1e-6, 3), (1e-7, 3), _QUANTS[2])),
        "smallest scale": _op(_kind, quants=((2.0**-32, 3), (2.0**-40, 3), _QUANTS[2])),
    }
NAMED["SQUARED_DIFFERENCE"] |= _finest("SQUARED_DIFFERENCE", 1.0, 11) | {
    "far apart": _op("SQUARED_DIFFERENCE", quants=((1e-6, -128), (100.0, 127), (1e4, -128))),
}
NAMED["PRELU"] |= _finest("PRELU", 1.0, 14) | {
    "far apart": _op("PRELU", quants=((1e-6, -128), (100.0, 127), (1e-5, 0))),
    "widest multiplier": _op("PRELU", quants=((2.0**21 - 0.5, 0), (1e-3, 0), (1.0, 0))),
}
NAMED |= {kind: _of(kind, _shapes(kind, "bool")) for kind in LOGIC}
NAMED["LOGICAL_NOT"] = {
    name: operator("LOGICAL_NOT", [tensor(shape, None, dtype="bool")], tensor(shape, None, dtype="bool"))
    for name, shape in {"image": _IMAGE, "rank 0": (), "rank 2": (3, 7), "batch 2": (2, 3, 4, 5)}.items()
}

RANDOM = {kind: _random(kind).filter(lambda op: not broken_rules(op)) for kind in INT8}
for _kind in INT32:
    RANDOM[_kind] = st.one_of(RANDOM[_kind], RANDOM[_kind], _random(_kind, "int32"))
RANDOM |= {kind: _random(kind, "bool") for kind in LOGIC}
