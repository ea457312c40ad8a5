"""Calls of portable operators: float32 arithmetic, and movement that CortexMQuantizer leaves as it is.

Each operation is rounded once, in the order of the C++ in kernels/portable/cpu of ExecuTorch's public repository.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.frontend.executorch.graph import NHWC, Converter
from tinyfuse.frontend.executorch.program import Value
from tinyfuse.frontend.tensors import HINT_UNSOUND, Refused, constant_tensor
from tinyfuse.ir import Quant, Tensor
from tinyfuse.ops.core.binary import Binary
from tinyfuse.ops.movement.resize import Resize
from tinyfuse.ops.movement.slice import StridedSlice
from tinyfuse.ops.pooling_reduce.reduce import Reducer

_HINT_FLOAT = "give portable operators float32 tensors"


def _require_float32(*values: Value) -> None:
    wrong = next((value for value in values if value.dtype != "float32"), None)
    if wrong is not None:
        raise Refused(f"it computes {wrong.dtype}", _HINT_FLOAT, str(wrong))


def broadcast_operands(
    c: Converter, a: Arguments, names: Sequence[str], quant: Quant | None = None
) -> tuple[list[Tensor], tuple[int, ...]]:
    """Operands that broadcast to a call's result, and its shape, all in the order of the result's memory.

    quant  quantization of int8 operands
    """
    out, values = a.out, [a.value(name) for name in names]
    rank, order = len(out.sizes), out.dim_order
    plain = out.lies_as(range(rank))
    shapes = []
    for value in values:
        sizes = (1,) * (rank - len(value.sizes)) + value.sizes
        lies = value.lies_as(range(len(value.sizes))) if plain else value.sizes == sizes and value.lies_as(order)
        if len(sizes) > rank or not (lies or value.elements == 1):
            raise Refused(f"{value} lies in memory in another order than {out}", HINT_UNSOUND, str(value))
        shapes.append(tuple(sizes[d] for d in order))
    shape = tuple(out.sizes[d] for d in order)
    if any(size not in (1, whole) for dims in shapes for size, whole in zip(dims, shape, strict=True)):
        raise Refused(f"{' and '.join(str(list(v.sizes)) for v in values)} don't broadcast to {out}", HINT_UNSOUND)
    return [c.read(value, dims, quant) for value, dims in zip(values, shapes, strict=True)], shape


# --- float32 ---------------------------------------------------------------------------------


def convert_arithmetic(c: Converter, a: Arguments) -> None:
    """Convert add, sub, mul and div of float32 tensors that broadcast."""
    _require_float32(a.value("self"), a.value("other"), a.out)
    if a.has("alpha") and a.number("alpha") != 1:
        raise Refused(f"its alpha is {a.number('alpha')}, not 1", "multiply the second operand before")
    operands, shape = broadcast_operands(c, a, ("self", "other"))
    c.set(a, a.call.name.upper(), operands, shape, Binary())


def convert_function(c: Converter, a: Arguments) -> None:
    """Convert relu, abs, neg, sqrt, floor and ceil of float32."""
    _require_float32(a.value("input"), a.out)
    operands, shape = broadcast_operands(c, a, ("input",))
    c.set(a, a.call.name.upper(), operands, shape)


def convert_clamp(c: Converter, a: Arguments) -> None:
    """Convert clamp and hardtanh of float32. The bound is the first operand, so a zero has the same sign as by
    std::max."""
    _require_float32(a.value("input"), a.out)
    (data,), shape = broadcast_operands(c, a, ("input",))
    bounds = [(kind, number) for kind, name in (("MAXIMUM", "min"), ("MINIMUM", "max"))
              if (number := a.optional_number(name)) is not None]  # fmt: skip
    if not bounds:
        c.set(a, "RESHAPE", (data,), shape)
        return
    for i, (kind, number) in enumerate(bounds):
        name = f"bound_{a.call.index}_{i}"
        operands = (constant_tensor(name, np.full((1,) * len(shape), number, np.float32)), data)
        if i + 1 < len(bounds):
            data = c.emit(kind, operands, shape, "float32", None, f"{name} (result)", None, a.call.index)
    c.set(a, kind, operands, shape)


def convert_mean(c: Converter, a: Arguments) -> None:
    """Convert mean of float32 over some dimensions: a sum in the order of memory, divided by the count."""
    value = a.value("input")
    _require_float32(value, a.out)
    axes = _axes(a.integers("dim"), len(value.sizes))
    keeps = bool(a.integer("keepdim", (0, 1)))
    kept = [1 if i in axes else size for i, size in enumerate(value.sizes) if keeps or i not in axes]
    c.require_plain(a.out)
    if tuple(kept) != a.out.sizes:
        raise Refused(f"its result has sizes {list(a.out.sizes)}, not {kept}", HINT_UNSOUND)
    over = constant_tensor(f"axes_{a.call.index}", np.array(axes, np.int32))
    c.set(a, "MEAN", (c.plain(value), over), kept, Reducer(keeps))


def _axes(numbers: Sequence[int], rank: int) -> list[int]:
    """Dimensions of a tensor, counted from the first, in order."""
    axes = sorted({number + rank if number < 0 else number for number in numbers})
    if not axes or len(axes) != len(numbers) or not all(0 <= axis < rank for axis in axes):
        raise Refused(f"its dimensions {list(numbers)} are not among {rank} dimensions, or are none", HINT_UNSOUND)
    return axes


def convert_layer_norm(c: Converter, a: Arguments) -> None:
    """Convert native_layer_norm: (x - mean) / sqrt(mean of squares - mean * mean + eps) * weight + bias, sums in
    order."""
    value, dims = a.value("input"), a.integers("normalized_shape")
    rank = len(value.sizes)
    _require_float32(value, a.out)
    if not dims or value.sizes[rank - len(dims) :] != dims or a.out.sizes != value.sizes:
        raise Refused(f"it normalizes {list(dims)}, which are not the last sizes of {value}", HINT_UNSOUND)
    count = math.prod(dims)
    c.require_plain(a.out)
    c.require_plain(value)
    shape = (value.elements // count, count)
    data = c.read(value, shape)
    axis = constant_tensor(f"axis_{a.call.index}", np.array([1], np.int32))

    def made(kind: str, *inputs: Tensor, dims: Sequence[int] = (shape[0], 1)) -> Tensor:
        attributes = Reducer(True) if kind == "MEAN" else None if kind == "SQRT" else Binary()
        name = f"{kind.lower()}_{a.call.index}_{len(c.ops)}"
        return c.emit(kind, inputs, dims, "float32", None, name, attributes, a.call.index)

    mean = made("MEAN", data, axis)
    of_squares = made("MEAN", made("MUL", data, data, dims=shape), axis)
    variance = made("SUB", of_squares, made("MUL", mean, mean))
    eps = constant_tensor(f"eps_{a.call.index}", np.full((1, 1), a.number("eps"), np.float32))
    deviation = made("SQRT", made("ADD", variance, eps))
    result = made("DIV", made("SUB", data, mean, dims=shape), deviation, dims=shape)
    for kind, name in (("MUL", "weight"), ("ADD", "bias")):
        if a.optional(name) is not None:
            factors = a.constant(name, "float32")
            if factors.size != count:
                raise Refused(f"its {name} has {factors.size} values, not {count}", HINT_UNSOUND)
            constant = constant_tensor(f"{name}_{a.call.index}", factors.reshape(1, count))
            result = made(kind, result, constant, dims=shape)
    c.set(a, "RESHAPE", (result,), value.sizes)


# --- movement --------------------------------------------------------------------------------


def convert_upsample(c: Converter, a: Arguments) -> None:
    """Convert upsample_nearest2d by whole factors: rows and columns are repeated."""
    value = a.value("input")
    planes = not value.lies_as(NHWC)
    if planes:
        image = c.permuted(a, c.plain(value), NHWC)
        c.require_plain(a.out)
    else:
        image = c.image(a)
        c.image_shape(a, a.out)
    out = [a.out.sizes[d] for d in NHWC]
    factors = a.optional_numbers("scale_factors", 2)
    for axis in (1, 2):
        count, wanted = image.shape[axis], out[axis]
        factor = np.float32(1 / (wanted / count if factors is None else factors[axis - 1]))
        taken = np.minimum(np.floor(np.arange(wanted) * factor), count - 1)
        if wanted % count or not np.array_equal(taken, np.arange(wanted) * count // wanted):
            raise Refused(f"it resizes {value} to {a.out}, not by whole factors", "upsample by whole factors")
    size = constant_tensor(f"size_{a.call.index}", np.array(out[1:3], np.int32))
    if not planes:
        c.set_image(a, "RESIZE_NEAREST_NEIGHBOR", (image, size), Resize())
        return
    name = f"value_{a.out.number} (image)"
    made = c.emit(
        "RESIZE_NEAREST_NEIGHBOR", (image, size), out, value.dtype, c.quant(a.out), name, Resize(), a.call.index
    )
    c.set_permuted(a, made, (0, 3, 1, 2))


def convert_slice(c: Converter, a: Arguments) -> None:
    """Convert slice_copy and select_copy: a range of indexes, or a single one, of one dimension."""
    value = a.value("input")
    c.require_plain(a.out)
    rank = len(value.sizes)
    (axis,) = _axes((a.integer("dim"),), rank)
    size = value.sizes[axis]
    if a.has("index"):
        first = a.integer("index", (-size, size - 1)) % size
        taken = range(first, first + 1)
    else:
        bounds = (a.optional_integer("start"), a.optional_integer("end"), a.integer("step", (1, 2**31 - 1)))
        taken = range(*slice(*bounds).indices(size))
    if not taken:
        raise Refused("nothing is left of a dimension", HINT_UNSOUND)
    begin, end, step = [0] * rank, list(value.sizes), [1] * rank
    begin[axis], end[axis], step[axis] = taken.start, taken.stop, taken.step
    shape = [len(taken) if i == axis else dim for i, dim in enumerate(value.sizes)]
    numbers = [
        constant_tensor(f"{what}_{a.call.index}", np.array(found, np.int32))
        for what, found in (("begin", begin), ("end", end), ("step", step))
    ]
    if math.prod(a.out.sizes) != math.prod(shape):
        raise Refused(f"its result has sizes {list(a.out.sizes)}", HINT_UNSOUND)
    c.require_plain(value)
    data = c.read(value, value.sizes, c.quant(a.out))
    c.set(a, "STRIDED_SLICE", (data, *numbers), shape, StridedSlice())
