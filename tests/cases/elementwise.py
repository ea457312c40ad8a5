"""ADD and MUL: equal shapes, broadcasting in every direction, constants, extreme multipliers."""

from __future__ import annotations

import numpy as np
from cases.common import (
    ACTIVATIONS, broken_rules, constant, operator, random_data, scales, seeds, shapes, tensor, zero_points,
)  # fmt: skip
from hypothesis import strategies as st

from tinyfuse.ir import Op
from tinyfuse.ops.binary import Binary

_IMAGE = (1, 3, 4, 5)


def _op(kind, a=_IMAGE, b=_IMAGE, quants=((0.1, 3), (0.07, -9), (0.12, 5)), activation="NONE", const=None) -> Op:
    """`const`: the index of the constant operand; quants: (scale, zero point) of a, b and output."""
    rng = np.random.default_rng(2)
    operands = [
        constant(random_data(shape, rng), *quant) if i == const else tensor(shape, *quant)
        for i, (shape, quant) in enumerate(zip((a, b), quants, strict=False))
    ]
    output = tensor(np.broadcast_shapes(a, b), *quants[2])
    return operator(kind, operands, output, Binary(activation))


def _square(kind: str) -> Op:
    operand = tensor(_IMAGE, 0.1, 3)
    return operator(kind, [operand, operand], tensor(_IMAGE, 0.2, -7), Binary())


@st.composite
def _random(draw, kind: str) -> Op:
    shape = draw(shapes)
    quants = [(draw(scales), draw(zero_points)) for _ in range(3)]
    rng = np.random.default_rng(draw(seeds))
    forms = [shape, shape]
    how = draw(st.sampled_from(["equal", "equal", "one", "both"]))
    for i in {"equal": [], "one": [draw(st.integers(0, 1))], "both": [0, 1]}[how]:
        ones = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
        forms[i] = tuple(1 if one else extent for one, extent in zip(ones, shape, strict=True))
        if not i and draw(st.booleans()):  # fewer dimensions, too
            forms[i] = forms[i][draw(st.integers(0, len(shape) - 1)) :]
    const = draw(st.sampled_from([None, None, 0, 1]))
    operands = [
        constant(random_data(form, rng), *quant) if i == const else tensor(form, *quant)
        for i, (form, quant) in enumerate(zip(forms, quants, strict=False))
    ]
    output = tensor(np.broadcast_shapes(*forms), *quants[2])
    return operator(kind, operands, output, Binary(draw(st.sampled_from(ACTIVATIONS))))


def _named(kind: str) -> dict[str, Op]:
    return {
        "equal shapes": _op(kind),
        "many channels": _op(kind, (1, 2, 3, 70), (1, 2, 3, 70)),
        "one pixel": _op(kind, (1, 1, 1, 1), (1, 1, 1, 1)),
        "an operand twice": _square(kind),
        "relu": _op(kind, activation="RELU"),
        "relu6": _op(kind, quants=((0.1, 3), (0.07, -9), (0.12, -100)), activation="RELU6"),
        "relu from -1 to 1": _op(kind, activation="RELU_N1_TO_1"),
        "a constant a channel": _op(kind, b=(5,), const=1),
        "a constant a channel, first": _op(kind, a=(5,), const=0),
        "a constant a row": _op(kind, b=(1, 3, 1, 1), const=1),
        "a constant image": _op(kind, b=_IMAGE, const=1),
        "a constant scalar": _op(kind, b=(), const=1),
        "a factor a channel": _op(kind, b=(1, 1, 1, 5)),
        "both broadcast": _op(kind, a=(1, 3, 1, 5), b=(1, 1, 4, 1)),
        "ranks differ": _op(kind, a=(4, 5)),
        "rank 2": _op(kind, (3, 5), (1, 5)),
        "equal quantization": _op(kind, quants=((0.1, 0), (0.1, 0), (0.1, 0))),
        "zero points at the ends": _op(kind, quants=((0.1, -128), (0.1, 127), (0.1, -128))),
        "far apart": _op(kind, quants=((1e-6, -128), (100.0, 127), (0.5, 0))),
        "finest output": _op(kind, quants=((1.0, -128), (1.0, -128), (2.0**-17, 0)) if kind == "ADD"
                             else ((1.0, -128), (1.0, -128), (2.0**-14, 0))),
        "coarsest output": _op(kind, quants=((1e-5, -128), (1e-5, -128), (1e6, 9))),
    }  # fmt: skip


NAMED = {kind: _named(kind) for kind in ("ADD", "MUL")}
RANDOM = {kind: _random(kind).filter(lambda op: not broken_rules(op)) for kind in NAMED}
