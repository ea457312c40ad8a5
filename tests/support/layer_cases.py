"""Cases of the layers (CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV) in int16 and float32: those of
int8 are in conv_cases.py and cases/matrices.py.

    NAMED["CONV_2D"]    {"int16 grouped": Op}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from cases.common import broken_rules
from cases.matrices import transpose_conv
from conv_cases import Shape, make_op, random_shape
from other_dtypes import other_dtype

from tinyfuse.ir import Op, Quant

DTYPES = ("int16", "float32")

_CONV, _DEPTHWISE, _FULL = "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"

#: one a difficulty: shapes, and blocks of pixels and channels with their rests
SHAPES = {
    "plain": Shape(_CONV, 5, 7, 8, 6, (3, 3)),
    "rests": Shape(_CONV, 4, 5, 7, 5, (2, 3), activation="RELU6"),
    "strides": Shape(_CONV, 7, 6, 4, 9, (3, 2), (2, 2)),
    "dilation": Shape(_CONV, 7, 9, 4, 4, (3, 3), dilation=(2, 3), activation="RELU"),
    "valid": Shape(_CONV, 6, 5, 3, 8, (4, 3), padding="VALID", per_channel=False),
    "groups": Shape(_CONV, 4, 4, 12, 6, (3, 3), groups=3),
    "groups of odd channels": Shape(_CONV, 4, 5, 10, 15, (3, 2), (1, 2), groups=5, activation="RELU6"),
    "groups of many channels": Shape(_CONV, 3, 4, 8, 22, (2, 2), groups=2, dilation=(1, 2)),
    "groups of one": Shape(_CONV, 3, 3, 4, 8, (3, 1), groups=4),
    "groups, pointwise": Shape(_CONV, 3, 5, 8, 8, groups=2),
    "batches": Shape(_CONV, 4, 3, 4, 5, (3, 3), batch=2),
    "no bias": Shape(_CONV, 4, 4, 4, 4, (3, 3), bias=False),
    "pointwise": Shape(_CONV, 4, 7, 16, 11),
    "pointwise, odd": Shape(_CONV, 3, 5, 9, 4, activation="RELU_N1_TO_1"),
    "pointwise, column": Shape(_CONV, 5, 1, 20, 9),
    "deep": Shape(_CONV, 2, 3, 130, 4, (3, 3)),
    "depthwise": Shape(_DEPTHWISE, 6, 7, 8, 8, (3, 3)),
    "depthwise, rests": Shape(_DEPTHWISE, 5, 6, 11, 11, (3, 3), (2, 2), activation="RELU"),
    "depthwise, dilation": Shape(_DEPTHWISE, 8, 7, 6, 6, (3, 2), dilation=(2, 2)),
    "depthwise, multiplier": Shape(_DEPTHWISE, 5, 5, 3, 6, (3, 3), multiplier=2),
    "depthwise, one channel": Shape(_DEPTHWISE, 9, 6, 1, 4, (5, 4), (2, 1), multiplier=4, per_channel=False),
    "depthwise, column": Shape(_DEPTHWISE, 9, 1, 5, 5, (4, 1), padding="VALID", bias=False),
    "depthwise, batches": Shape(_DEPTHWISE, 4, 4, 4, 4, (3, 3), batch=2),
    "full": Shape(_FULL, 2, 1, 36, 9),
    "full, odd": Shape(_FULL, 1, 1, 37, 6, activation="RELU", per_channel=False),
    "full, no bias": Shape(_FULL, 3, 1, 8, 4, bias=False),
    "full, deep": Shape(_FULL, 1, 1, 1100, 5),
}  # fmt: skip

_TRANSPOSED = {
    "twice": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2)),
    "valid, wide": transpose_conv((1, 3, 4, 2), 3, (5, 4), (2, 1), "VALID"),
    "stride beyond the kernel": transpose_conv((1, 3, 4, 5), 2, (1, 2), (3, 3), activation="RELU"),
    "strides of three": transpose_conv((1, 3, 5, 3), 11, (5, 4), (3, 3)),
    "one column": transpose_conv((1, 4, 1, 6), 5, (4, 1), (2, 1), activation="RELU"),
    "wide kernel": transpose_conv((1, 2, 3, 4), 3, (3, 7), (1, 2), "VALID"),
    "odd size": transpose_conv((1, 3, 4, 9), 4, (3, 3), (2, 2), size=(5, 7), per_channel=False),
    "no bias": transpose_conv((1, 3, 4, 8), 4, (3, 3), (1, 2), bias=False, activation="RELU6"),
}


def _layers(dtype: str) -> Iterator[tuple[str, Op]]:
    for number, (name, shape) in enumerate(SHAPES.items()):
        yield name, other_dtype(make_op(shape, np.random.default_rng(number)), dtype)
    for name, op in _TRANSPOSED.items():
        yield f"transposed, {name}", other_dtype(op, dtype)


def _narrow() -> Iterator[tuple[str, Op]]:
    """int16 layers with int32 sums, chosen by a bias's type or by the option; TRANSPOSE_CONV with an int16 bias."""
    rng = np.random.default_rng(40)
    for name, op in _layers("int16"):
        sums_64 = op.kind in (_DEPTHWISE, "TRANSPOSE_CONV")
        if not sums_64 and len(op.inputs) == 3 and op.inputs[2] is not None:
            bias = op.inputs[2]
            yield f"{name}, int32 bias", _with_bias(op, bias.values.astype(np.int32))
        elif not sums_64:
            attributes = replace(op.attributes, quantized_bias_type="INT32")
            yield f"{name}, int32 sums", replace(op, attributes=attributes)
    for name, op in _TRANSPOSED.items():
        if len(op.inputs) == 4:
            wide = other_dtype(op, "int16")
            yield (
                f"transposed, {name}, int16 bias",
                _with_bias(wide, rng.integers(-32768, 32768, wide.inputs[3].shape).astype(np.int16)),
            )


def _with_bias(op: Op, values: np.ndarray) -> Op:
    *others, bias = op.inputs
    return replace(op, inputs=(*others, replace(bias, dtype=str(values.dtype), data=values)))


def _far() -> Iterator[tuple[str, Op]]:
    """int16 layers beyond the bounds of the fast forms."""
    rng = np.random.default_rng(50)
    op = other_dtype(make_op(Shape(_CONV, 3, 4, 200, 4, (3, 3)), rng), "int16")
    weights = op.inputs[1]
    most = replace(weights, data=np.full(weights.shape, -128, np.int8))
    yield "sums beyond int32", replace(op, inputs=(op.inputs[0], most, op.inputs[2]))
    narrow = _with_bias(replace(op, inputs=(op.inputs[0], most, op.inputs[2])), np.array([1, -9, 0, 5], np.int32))
    yield "int32 sums that wrap", narrow
    yield "a bias beyond int32", _with_bias(op, np.array([2**40, -(2**39), 2**33 + 1, 7], np.int64))
    # multipliers from below 2^-17 to above 1
    scales = tuple(float(np.float32(s)) for s in (1e-9, 1e-3, 10.0, 100.0))
    quant = Quant((1e-3,), (0,))
    for kind, shape in ((_CONV, Shape(_CONV, 3, 4, 8, 4, (3, 3))), (_DEPTHWISE, Shape(_DEPTHWISE, 3, 4, 4, 4, (3, 3))),
                        (_FULL, Shape(_FULL, 1, 1, 16, 4))):  # fmt: skip
        op = other_dtype(make_op(shape, rng), "int16")
        weights = replace(op.inputs[1], quant=Quant(scales, (0,) * 4, op.inputs[1].quantization.axis))
        bias = replace(op.inputs[2], data=np.zeros(4, np.int64))
        data = replace(op.inputs[0], quant=quant)
        yield (
            f"far multipliers, {kind}",
            replace(op, inputs=(data, weights, bias), outputs=(replace(op.output, quant=quant),)),
        )
    op = other_dtype(make_op(Shape(_FULL, 2, 1, 24, 5, per_channel=False), rng), "int16")
    data, weights, bias = op.inputs
    data = replace(data, quant=replace(data.quantization, zero_point=(-301,)))
    result = replace(op.output, quant=replace(op.output.quantization, zero_point=(1234,)))
    yield "zero points", replace(op, inputs=(data, weights, bias), outputs=(result,))


def _named() -> dict[str, dict[str, Op]]:
    cases = [(f"{dtype} {name}", op) for dtype in DTYPES for name, op in _layers(dtype)]
    cases += [(f"int16 {name}", op) for name, op in (*_narrow(), *_far())]
    found: dict[str, dict[str, Op]] = {}
    for name, op in cases:
        found.setdefault(op.kind, {})[name] = op
    return found


NAMED = _named()


def random_ops(dtype: str, count: int, seed: int = 3) -> list[Op]:
    """Random convolutions and fully connected layers, without those that int8's rules refuse."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        kind = (_CONV, _DEPTHWISE, _FULL)[len(found) % 3]
        shape = replace(random_shape(kind, rng), weights_zero_point=0)
        op = other_dtype(make_op(shape, rng, extreme=bool(rng.random() < 0.2)), dtype)
        if dtype == "int16" and kind != _DEPTHWISE and shape.bias and rng.random() < 0.3:
            op = _with_bias(op, np.clip(op.inputs[2].values, -(2**30), 2**30).astype(np.int32))
        if not broken_rules(op):
            found.append(op)
    return found


def layer_inputs(op: Op, seed: int = 0) -> list[list[np.ndarray]]:
    """Inputs: both ends, and random ones, small and of every size. No sum contains infinities, whose NaN may have any
    bits."""
    rng, shape = np.random.default_rng(seed), op.first_activation.shape
    if op.output.dtype != "float32":
        ends = [np.full(shape, value, np.int16) for value in (-32768, 32767)]
        drawn = [rng.integers(-(2**b), 2**b, shape).astype(np.int16) for b in (15, 15, 6)]
        return [[data] for data in (*drawn, *ends)]
    sizes = (
        rng.uniform(-1, 1, shape),
        rng.normal(size=shape),
        rng.normal(size=shape) * 2.0 ** rng.uniform(-60, 60, shape),
    )
    found = [data.astype(np.float32) for data in sizes]
    # results that are denormal, and an infinite one
    found.append((rng.uniform(-1, 1, shape) * 2.0**-140).astype(np.float32))
    found.append(np.where(np.arange(found[0].size).reshape(shape) == 0, np.float32(np.inf), found[0]))
    return [[data] for data in found]
