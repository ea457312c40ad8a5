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
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.core.binary import Binary

_IMAGE = (1, 3, 4, 5)
#: room for every int8 value, twice
_PAIRS = (1, 2, 16, 16)

ARITHMETIC = ("ADD", "SUB", "MUL")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
LOGIC = ("LOGICAL_AND", "LOGICAL_OR")
INT8 = (*ARITHMETIC, "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM", "PRELU", *COMPARISONS)
INT32 = (*ARITHMETIC, "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM", *COMPARISONS)
INT16 = (*ARITHMETIC, "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM", "PRELU")
FLOAT32 = INT8
INT64 = ("MAXIMUM", "MINIMUM", *COMPARISONS)
BOOL = ("EQUAL", "NOT_EQUAL")

_QUANTS = ((0.1, 3), (0.07, -9), (0.12, 5))
_QUANTS_16 = ((1e-4, 0), (7e-5, 0), (1.2e-4, 0))


def _result(kind: str, shape, quant, dtype: str):
    if kind in COMPARISONS or dtype == "bool":
        return tensor(shape, None, dtype="bool")
    return tensor(shape, *quant, dtype=dtype)


def _op(kind, a=_IMAGE, b=_IMAGE, quants=_QUANTS, activation="NONE", const=None, dtype="int8") -> Op:
    """One operator. `const`: index of the constant operand; quants: (scale, zero point) of a, b and output."""
    rng = np.random.default_rng(2)
    if dtype == "int16" and quants is _QUANTS:
        quants = _QUANTS_16
    if dtype not in ("int8", "int16"):
        quants = ((None, 0),) * 3
    operands = _operands(kind, (a, b), quants, const, dtype, rng)
    output = _result(kind, np.broadcast_shapes(a, b), quants[2], dtype)
    return operator(kind, operands, output, Binary(activation) if kind in ARITHMETIC else None)


def _operands(kind, forms, quants, const, dtype: str, rng) -> list[Tensor]:
    """Two operands, `const` the index of a constant one; PRELU's alpha of int16 data is int8."""
    dtypes = (dtype, "int8" if (kind, dtype) == ("PRELU", "int16") else dtype)
    return [
        constant(random_data(form, rng, own), *quant) if i == const else tensor(form, *quant, dtype=own)
        for i, (form, quant, own) in enumerate(zip(forms, quants, dtypes, strict=False))
    ]


def _twice(kind: str) -> Op:
    operand = tensor(_IMAGE, 0.1, 3)
    return operator(kind, [operand, operand], _result(kind, _IMAGE, (0.2, -7), "int8"), _op(kind).attributes)


@st.composite
def _random(draw, kind: str, dtype: str = "int8") -> Op:
    shape = draw(shapes)
    quants = [(draw(scales), draw(zero_points)) for _ in range(3)]
    if kind in COMPARISONS and draw(st.booleans()):
        quants[1] = quants[0]
    if dtype == "int16":
        quants = [(scale, 0) for scale, _ in quants]
    elif dtype != "int8":
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
    operands = _operands(kind, forms, quants, const, dtype, rng)
    output = _result(kind, np.broadcast_shapes(*forms), quants[2], dtype)
    activation = None
    if kind in ARITHMETIC:
        activation = draw(st.sampled_from(ACTIVATIONS))  # ADD of int32 has none: broken_rules
    return operator(kind, operands, output, activation and Binary(activation))


def _shapes(kind: str, dtype: str = "int8") -> dict[str, Op]:
    """Shapes that every kind must accept."""
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
    """int8 cases of `_shapes`, and cases with difficult quantization."""
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
#: of the dtypes that came later, what tells most
_TELLING = ("equal shapes", "a constant a channel", "a constant image", "both broadcast", "rank 5")
for _kind in INT16:
    NAMED[_kind] |= {f"int16, {name}": _shapes(_kind, "int16")[name] for name in _TELLING}
for _kind in FLOAT32:
    # TFLM's float PRELU reads beyond the shapes of more than four dimensions
    _names = _TELLING[:-1] if _kind == "PRELU" else _TELLING[::3] if _kind in COMPARISONS else _TELLING
    NAMED[_kind] |= {f"float32, {name}": _shapes(_kind, "float32")[name] for name in _names}
for _kind, _dtype in (*((kind, "int64") for kind in INT64), *((kind, "bool") for kind in BOOL)):
    NAMED[_kind] |= {f"{_dtype}, {name}": _shapes(_kind, _dtype)[name] for name in _TELLING[::3]}
for _kind in ARITHMETIC:
    NAMED[_kind] |= {
        f"{dtype}, {activation}": _op(_kind, activation=activation, dtype=dtype)
        for dtype in ("int16", "float32")
        for activation in ("RELU", "RELU6", "RELU_N1_TO_1")
    } | {
        "int16, all of both": _op(_kind, _PAIRS, _PAIRS, dtype="int16"),
        "int16, far apart": _op(_kind, quants=((1e-6, 0), (0.5, 0), (0.1, 0)), dtype="int16"),
        "int16, coarse output": _op(_kind, quants=((1e-5, 0), (3e-5, 0), (1e5, 0)), dtype="int16"),
    }
for _kind in ("SUB", "MUL"):
    NAMED[_kind] |= {
        "int32, RELU": _op(_kind, activation="RELU", dtype="int32"),
        "int32, RELU6, both broadcast": _op(_kind, (1, 3, 1, 5), (1, 1, 4, 1), activation="RELU6", dtype="int32"),
        "int32, RELU_N1_TO_1": _op(_kind, activation="RELU_N1_TO_1", dtype="int32"),
    }
NAMED["SQUARED_DIFFERENCE"] |= {
    "int16, all of both": _op("SQUARED_DIFFERENCE", _PAIRS, _PAIRS, dtype="int16"),
    "int16, equal scales": _op("SQUARED_DIFFERENCE", quants=((1e-4, 0), (1e-4, 0), (2e-4, 0)), dtype="int16"),
}
NAMED["PRELU"] |= {
    "int16, alpha with a zero point": _op("PRELU", quants=((1e-4, 0), (0.01, -7), (2e-4, 0)), dtype="int16"),
}
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
for _dtype, _kinds in (("int32", INT32), ("int16", INT16), ("float32", FLOAT32), ("int64", INT64), ("bool", BOOL)):
    for _kind in _kinds:
        more = _random(_kind, _dtype).filter(lambda op: not broken_rules(op))
        RANDOM[_kind] = st.one_of(RANDOM[_kind], more)
RANDOM |= {kind: _random(kind, "bool") for kind in LOGIC}
