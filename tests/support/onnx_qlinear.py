"""Draws of operators of onnxruntime's QOperator format (onnx_operators.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx_draw import Builder, OperatorDraw
from onnx_networks import Value

_MICROSOFT = "com.microsoft"


def _stored(d: OperatorDraw, kind: str, inputs: list[str], like: Value, **more: Any) -> list[Value]:
    domain = {} if kind in ("QLinearConv", "QLinearMatMul") else {"domain": _MICROSOFT}
    made = d.w.node(kind, inputs, **domain, **more)[0]
    return [Value(made, like.shape, like.scale, like.zero_point)]


def _operand(d: OperatorDraw, value: Value) -> list[str]:
    return [value.name, *d.w.scales(value)]


def _like(d: OperatorDraw, shape: tuple[int, ...], spread: float) -> Value:
    return Value("", shape, float(np.float32(spread / 128 * d.rng.choice((0.5, 1.0, 2.0)))), d.point())


def _weights(d: OperatorDraw, shape: tuple[int, ...], axis: int) -> tuple[list[str], np.ndarray]:
    array = d.arrays.integers(-127, 128, shape).astype(np.int8)
    scales = d.arrays.uniform(0.002, 0.02, shape[axis] if d.rng.random() < 0.6 else ()).astype(np.float32)
    return [d.w.constant(each) for each in (array, scales, np.zeros(scales.shape, np.int8))], scales


def conv(d: OperatorDraw) -> list[Value]:
    value = d.input(d.shape(4))
    outs, channels = d.rng.randint(1, 6), value.shape[1]
    weights, scales = _weights(d, (outs, channels, 1, 1), 0)
    like = _like(d, (1, outs, *value.shape[2:]), value.scale * float(scales.mean()) * 4000 * channels**0.5)
    bias = [d.w.constant(d.arrays.integers(-3000, 3000, outs).astype(np.int32))] if d.rng.random() < 0.6 else []
    return _stored(d, "QLinearConv", [*_operand(d, value), *weights, *d.w.scales(like), *bias], like)


def gemm(d: OperatorDraw) -> list[Value]:
    value = d.input(d.shape(2, most=12))
    outs, size, flip = d.rng.randint(1, 9), value.shape[1], d.rng.randint(0, 1)
    weights, scales = _weights(d, (outs, size) if flip else (size, outs), 0 if flip else 1)
    like = _like(d, (1, outs), value.scale * float(scales.mean()) * 4000 * size**0.5)
    bias = d.w.constant(d.arrays.integers(-3000, 3000, outs).astype(np.int32)) if d.rng.random() < 0.6 else ""
    return _stored(d, "QGemm", [*_operand(d, value), *weights, bias, *d.w.scales(like)], like, transB=flip)


def matmul(d: OperatorDraw) -> list[Value]:
    m, k, n = (d.rng.randint(1, 9) for _ in range(3))
    one = d.input((1, m, k))
    if d.rng.random() < 0.5:
        second, scales = _weights(d, (k, n), 1)
        spread = float(scales.mean())
    else:
        two = d.input((1, k, n))
        second, spread = _operand(d, two), two.scale
    like = _like(d, (1, m, n), one.scale * spread * 4000 * k**0.5)
    return _stored(d, "QLinearMatMul", [*_operand(d, one), *second, *d.w.scales(like)], like)


def binary(kind: str) -> Builder:
    def build(d: OperatorDraw) -> list[Value]:
        one, two = (d.input((1, 4, 5, 3)) for _ in range(2))
        spread = one.scale * two.scale * 8000 if kind == "QLinearMul" else (one.scale + two.scale) * 128
        like = _like(d, one.shape, spread)
        return _stored(d, kind, [*_operand(d, one), *_operand(d, two), *d.w.scales(like)], like)

    return build


def unary(kind: str) -> Builder:
    def build(d: OperatorDraw) -> list[Value]:
        value = d.input(d.shape(4))
        dims, more = value.shape[2:], dict[str, Any]()
        if kind == "QLinearAveragePool":
            kernel = [d.rng.randint(1, min(3, size)) for size in dims]
            dims = tuple(size - k + 1 for size, k in zip(dims, kernel, strict=True))
            more["kernel_shape"] = kernel
        if kind == "QLinearSoftmax":
            more |= {"axis": 3, "opset": 13}
        shape = (*value.shape[:2], *((1, 1) if "Global" in kind else dims))
        like = _like(d, shape, 1.0 if kind in ("QLinearSigmoid", "QLinearSoftmax") else value.scale * 128)
        return _stored(d, kind, [*_operand(d, value), *d.w.scales(like)], like, **more)

    return build


def concat(d: OperatorDraw) -> list[Value]:
    parts = [d.input((1, d.rng.randint(1, 4), 3, 5)) for _ in range(d.rng.randint(2, 3))]
    like = _like(d, (1, sum(part.shape[1] for part in parts), 3, 5), max(part.scale for part in parts) * 128)
    operands = [name for part in parts for name in _operand(d, part)]
    return _stored(d, "QLinearConcat", [*d.w.scales(like), *operands], like, axis=1)


_ONES = ("Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool", "Softmax")
QLINEAR: dict[str, Builder] = {
    "QLinearConv": conv,
    "QGemm": gemm,
    "QLinearMatMul": matmul,
    "QLinearConcat": concat,
    **{kind: binary(kind) for kind in ("QLinearAdd", "QLinearMul")},
    **{f"QLinear{kind}": unary(f"QLinear{kind}") for kind in _ONES},
}
