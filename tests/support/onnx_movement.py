"""Draws of ONNX operators that move elements, or resize images (onnx_operators.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx_draw import OperatorDraw
from onnx_networks import Value


def concat(d: OperatorDraw) -> list[Value]:
    shape = d.shape(d.rng.choice((2, 3, 4)))
    axis = d.rng.randrange(1, len(shape))
    names, sizes, spread = [], 0, 0.0
    for _ in range(d.rng.randint(2, 3)):
        part = list(shape)
        part[axis] = d.rng.randint(1, 4)
        if names and d.rng.random() < 0.2:
            names.append(d.constant(part)[0])
        else:
            name, value = d.real(part)
            names.append(name)
            spread = max(spread, value.scale * 128)
        sizes += part[axis]
    out = list(shape)
    out[axis] = sizes
    return d.stored(d.w.node("Concat", names, axis=axis)[0], out, spread)


def split(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4))))
    axis = d.rng.randrange(len(value.shape))
    size, parts = value.shape[axis], []
    while size:
        parts.append(d.rng.randint(1, size))
        size -= parts[-1]
    if d.w.opset < 13:
        made = d.w.node("Split", [name], len(parts), axis=axis, split=parts)
    else:
        made = d.w.node("Split", [name, d.w.constant(np.array(parts, np.int64))], len(parts), axis=axis)
    shapes = [(*value.shape[:axis], part, *value.shape[axis + 1 :]) for part in parts]
    return [each for part, shape in zip(made, shapes, strict=True) for each in d.like(part, shape, value)]


def slice_(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4))))
    axes = d.rng.sample(range(len(value.shape)), d.rng.randint(1, len(value.shape)))
    ranges = [range(dim) for dim in value.shape]
    starts, ends, steps = [], [], []
    for axis in axes:
        size = value.shape[axis]
        step = d.rng.choice((1, 1, 2, -1, -2))
        low, high = sorted(d.rng.sample(range(size + 1), 2))
        start, end = (low, high) if step > 0 else (high - 1, low - 1 if low else -size - 1)
        starts.append(start - size if d.rng.random() < 0.3 else start)
        ends.append(2**40 if step > 0 and high == size else end)
        steps.append(step)
        ranges[axis] = ranges[axis][start:end:step]
    numbers = [d.w.constant(np.array(each, np.int64)) for each in (starts, ends, axes, steps)]
    made = d.w.node("Slice", [name, *numbers])[0]
    return d.like(made, [len(taken) for taken in ranges], value)


def pad(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4))))
    rank = len(value.shape)
    pads = [0 if i % rank == 0 else d.rng.randint(0, 3) for i in range(2 * rank)]
    shape = [dim + pads[i] + pads[i + rank] for i, dim in enumerate(value.shape)]
    stored = d.rng.randint(d.w.low, d.w.low + 255)
    number = d.rng.choice((None, float((stored - value.zero_point) * np.float32(value.scale))))
    if d.w.opset < 11:
        made = d.w.node("Pad", [name], pads=pads, **({} if number is None else {"value": number}))[0]
    else:
        more = [] if number is None else [d.w.constant(np.float32(number))]
        made = d.w.node("Pad", [name, d.w.constant(np.array(pads, np.int64)), *more])[0]
    return d.like(made, shape, value)


def gather(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4))))
    axis = d.rng.randrange(len(value.shape))
    size = value.shape[axis]
    count = d.rng.choice(((), (d.rng.randint(1, 4),)))
    index = d.arrays.integers(-size if d.rng.random() < 0.3 else 0, size, count)
    made = d.w.node("Gather", [name, d.w.constant(np.asarray(index, np.int64))], axis=axis)[0]
    return d.like(made, (*value.shape[:axis], *count, *value.shape[axis + 1 :]), value)


def transpose(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4))))
    order = d.rng.sample(range(len(value.shape)), len(value.shape))
    return d.like(d.w.node("Transpose", [name], perm=order)[0], [value.shape[i] for i in order], value)


def reshape(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4))))
    size = int(np.prod(value.shape))
    kind = d.rng.choice(("Reshape", "Flatten", "Squeeze", "Unsqueeze"))
    if kind == "Reshape":
        return d.like(d.w.node(kind, [name, d.w.constant(np.array([-1, size], np.int64))])[0], (1, size), value)
    if kind == "Flatten":
        return d.like(d.w.node(kind, [name])[0], (value.shape[0], size // value.shape[0]), value)
    axes = np.array([0], np.int64)
    inputs, more = ([name], {"axes": [0]}) if d.w.opset < 13 else ([name, d.w.constant(axes)], {})
    shape = value.shape[1:] if kind == "Squeeze" else (1, *value.shape)
    return d.like(d.w.node(kind, inputs, **more)[0], shape, value)


def resize_nearest(d: OperatorDraw) -> list[Value]:
    whole = d.rng.random() < 0.6
    factors = [d.rng.choice((1, 2, 3)) if whole else d.rng.choice((0.5, 1.5, 2.0, 1.25)) for _ in range(2)]
    nearest = d.rng.choice(("floor", "round_prefer_floor", "ceil", "round_prefer_ceil"))
    places = d.rng.choice(("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"))
    return _resize(d, factors, coordinate_transformation_mode=places, mode="nearest", nearest_mode=nearest)


def resize_linear(d: OperatorDraw) -> list[Value]:
    factors = [d.rng.choice((2, 4, 0.5, 1.5, 1.25, 3)) for _ in range(2)]
    places = d.rng.choice(("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"))
    return _resize(d, factors, coordinate_transformation_mode=places, mode="linear")


def _resize(d: OperatorDraw, factors: Sequence[float], **attributes: str) -> list[Value]:
    value = d.input(d.shape(4, most=6))
    linear = attributes["mode"] == "linear"
    if linear and d.rng.random() < 0.5:  # behind a layer onnxruntime resizes images with channels last
        value = d.pointwise(value)
    out = [max(1, int(size * factor)) for size, factor in zip(value.shape[2:], factors, strict=True)]
    if linear and any(o == s for o, s in zip(out, value.shape[2:], strict=True)):
        out = [2 * size for size in value.shape[2:]]
    empty = d.w.constant(np.zeros(0, np.float32))
    if d.rng.random() < 0.5:
        inputs = [empty, empty, d.w.constant(np.array([*value.shape[:2], *out], np.int64))]
    else:
        factors = [f if int(s * f) == o else o / s for f, o, s in zip(factors, out, value.shape[2:], strict=True)]
        inputs = [empty, d.w.constant(np.array([1.0, 1.0, *factors], np.float32))]
        out = [int(np.float32(s) * np.float32(f)) for s, f in zip(value.shape[2:], factors, strict=True)]
    made = d.w.node("Resize", [d.w.real(value), *inputs], **attributes)[0]
    (resized,) = d.like(made, (*value.shape[:2], *out), value)
    return [d.pointwise(resized) if linear and d.rng.random() < 0.5 else resized]
