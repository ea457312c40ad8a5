"""Nodes that move or select elements, or tell shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, prod

import numpy as np

from tinyfuse.frontend.onnx.graph import Converter, checked_axis, require_shape
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.targets import target_of
from tinyfuse.frontend.onnx.values import Constant, Function, Quantization, QuantizedConstant, Real, Stored, Value
from tinyfuse.frontend.tensors import Refused, constant_tensor
from tinyfuse.ir import Array, Quant, Tensor
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.movement.gather import Gather
from tinyfuse.ops.movement.slice import StridedSlice

_HINT_AGAIN = "export the model again, with fixed shapes"


def moved(c: Converter, node: Node, change: Callable[[Tensor], Tensor], of_array: Callable[[Array], Array]) -> None:
    """Convert a node of one output whose elements are elements of its first input."""
    value = c.values[node.input(0)]
    c.set(node, moved_value(c, value, node.input(0), change, of_array))


def moved_value(
    c: Converter, value: Value, name: str, change: Callable[[Tensor], Tensor], of_array: Callable[[Array], Array]
) -> Value:
    """A value whose elements are elements of another one: what is stored stays stored."""
    if isinstance(value, Constant):
        return Constant(of_array(value.array))
    if isinstance(value, QuantizedConstant):
        if not value.quantization.per_tensor:
            return Constant(of_array(value.real))
        return QuantizedConstant(of_array(value.array), value.quantization)
    if isinstance(value, Function):
        source = Stored(change(value.source.tensor), value.source.dtype)
        return Function(source, value.variants, value.kinds, (lambda: change(c.real(name))) if value.kinds else None)
    if isinstance(value, Stored):
        return Stored(change(value.tensor), value.dtype)
    return Real(change(c.real(name)))


def _axis(node: Node, rank: int, default: int = 0) -> int:
    axis = int(node.attributes.get("axis", default))
    return checked_axis(axis, rank)


def _reshape(c: Converter, node: Node, shape: Sequence[int]) -> None:
    before = prod(c.shape(node.input(0)))
    require_shape(shape)
    if prod(shape) != before:
        raise Refused(f"its shape {list(shape)} doesn't hold {before} elements", _HINT_AGAIN)
    moved(c, node, lambda t: c.reshaped(t, shape, node.outputs[0]), lambda a: a.reshape(shape))


def convert_reshape(c: Converter, node: Node) -> None:
    """Reshape: 0 keeps a dimension, -1 takes what is left."""
    wanted, before = c.numbers(node, 1, "shape"), c.shape(node.input(0))
    if wanted is None:
        raise Refused("it has no shape", _HINT_AGAIN)
    if not node.attributes.get("allowzero", 0):
        wanted = [before[i] if dim == 0 and i < len(before) else dim for i, dim in enumerate(wanted)]
    if wanted.count(-1) == 1:
        rest = prod(dim for dim in wanted if dim != -1)
        wanted[wanted.index(-1)] = prod(before) // rest if rest else 0
    _reshape(c, node, wanted)


def convert_flatten(c: Converter, node: Node) -> None:
    """Flatten to two dimensions."""
    shape = c.shape(node.input(0))
    axis = int(node.attributes.get("axis", 1))
    axis = axis + len(shape) if axis < 0 else axis
    _reshape(c, node, (prod(shape[:axis]), prod(shape[axis:])))


def convert_squeeze(c: Converter, node: Node) -> None:
    """Convert Squeeze, which drops dimensions of size 1: the given axes, or all such dimensions without axes."""
    shape, axes = c.shape(node.input(0)), c.numbers(node, 1, "axes")
    dropped = (
        [i for i, dim in enumerate(shape) if dim == 1] if axes is None else [checked_axis(a, len(shape)) for a in axes]
    )
    _reshape(c, node, [dim for i, dim in enumerate(shape) if i not in dropped])


def convert_unsqueeze(c: Converter, node: Node) -> None:
    """Convert Unsqueeze, which adds dimensions of size 1."""
    shape, axes = list(c.shape(node.input(0))), c.numbers(node, 1, "axes")
    if axes is None:
        raise Refused("it has no axes", _HINT_AGAIN)
    rank = len(shape) + len(axes)
    for axis in sorted(checked_axis(a, rank) for a in axes):
        shape.insert(axis, 1)
    _reshape(c, node, shape)


def convert_transpose(c: Converter, node: Node) -> None:
    """Transpose: the dimensions in another order."""
    rank = len(c.shape(node.input(0)))
    order = [int(axis) for axis in node.attributes.get("perm") or reversed(range(rank))]
    if sorted(order) != list(range(rank)):
        raise Refused(f"perm {order} is not an order of {rank} dimensions", _HINT_AGAIN)
    moved(c, node, lambda t: c.transposed(t, order), lambda a: a.transpose(order))


def convert_identity(c: Converter, node: Node) -> None:
    """Identity, and Dropout, which does nothing in an inference."""
    trains = c.constant(node, 2) if node.kind == "Dropout" else None
    if trains is not None and trains.any():
        raise Refused("it drops values at random, as in training", "export the model in eval mode: model.eval()")
    c.set(node, c.values[node.input(0)])


def convert_constant(c: Converter, node: Node) -> None:
    """Constant: the numbers in its attribute."""
    for key in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        found = node.attributes.get(key)
        if found is not None:
            dtype = np.int64 if "int" in key else np.float32
            c.set(node, Constant(np.asarray(found, None if isinstance(found, np.ndarray) else dtype)))
            return
    raise Refused("it holds no numbers", "use a constant of numbers")


def convert_shape(c: Converter, node: Node) -> None:
    """Shape: a constant, because all shapes are fixed."""
    shape = c.shape(node.input(0))
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    c.set(node, Constant(np.array(shape[slice(start, end)], np.int64)))


def convert_constant_of_shape(c: Converter, node: Node) -> None:
    """ConstantOfShape: a constant of one repeated value."""
    shape, value = c.numbers(node, 0), node.attributes.get("value")
    if shape is None or prod(shape) > 1 << 20:
        raise Refused("its shape is unknown or too large", _HINT_AGAIN)
    require_shape(shape)
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    if fill.size != 1:
        raise Refused("its value is not one number", _HINT_AGAIN)
    c.set(node, Constant(np.full(shape, fill.reshape(-1)[0], fill.dtype)))


def convert_cast(c: Converter, node: Node) -> None:
    """Cast of constants, and of float32 numbers to float32."""
    value = c.values[node.input(0)]
    to = {1: "float32", 6: "int32", 7: "int64", 9: "bool"}.get(node.attributes.get("to", 0))
    if isinstance(value, Constant) and to is not None:
        with np.errstate(invalid="ignore"):  # infinities and NaN
            c.set(node, Constant(value.array.astype(to)))
    elif to == "float32" and (isinstance(value, Function) or (isinstance(value, Real) and value.tensor.dtype == to)):
        c.set(node, value)
    else:
        raise Refused("a cast of computed values is not supported", "leave values in float32 or int8")


def convert_gather(c: Converter, node: Node) -> None:
    """Gather by constant indexes along one dimension."""
    shape = c.shape(node.input(0))
    axis = _axis(node, len(shape))
    index = c.constant(node, 1)
    if index is None or index.dtype.kind not in "iu" or not index.size:
        raise Refused("its indexes are no integers", _HINT_AGAIN)
    if not ((index >= -shape[axis]) & (index < shape[axis])).all():
        raise Refused("its indexes are beyond the input", _HINT_AGAIN)
    index = np.where(index < 0, index + shape[axis], index)
    out = (*shape[:axis], *index.shape, *shape[axis + 1 :])
    require_shape(out)
    places = constant_tensor(f"{node.outputs[0]} (indexes)", index.astype(np.int32))

    def gather(tensor: Tensor) -> Tensor:
        return c.emit("GATHER", (tensor, places), out, tensor.dtype, node.outputs[0], tensor.quant, Gather(axis), node)

    moved(c, node, gather, lambda a: a.take(index, axis))


def convert_slice(c: Converter, node: Node) -> None:
    """Slice: a range of indexes of some dimensions."""
    shape = c.shape(node.input(0))
    starts, ends = c.numbers(node, 1, "starts"), c.numbers(node, 2, "ends")
    axes, steps = c.numbers(node, 3, "axes"), c.numbers(node, 4)
    if starts is None or ends is None or len(starts) != len(ends):
        raise Refused("its starts and ends are unknown", _HINT_AGAIN)
    axes = [checked_axis(axis, len(shape)) for axis in (range(len(starts)) if axes is None else axes)]
    steps = [1] * len(starts) if steps is None else steps
    if len(axes) != len(starts) or len(steps) != len(starts) or 0 in steps:
        raise Refused("its starts, ends, axes and steps don't fit each other", _HINT_AGAIN)
    ranges = [range(dim) for dim in shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        taken = range(shape[axis])[start:end:step]
        # the step of a single index means nothing, and may be too large for int32
        ranges[axis] = range(taken.start, taken.start + 1) if len(taken) == 1 else taken
    if not all(len(taken) for taken in ranges):
        raise Refused("nothing is left of a dimension", _HINT_AGAIN)
    cut(c, node, ranges)


def cut(c: Converter, node: Node, ranges: Sequence[range]) -> None:
    """Convert a node that takes a range of indexes of every dimension."""

    def taken_of(array: Array) -> Array:
        taken: Array = array[np.ix_(*(np.array(indexes) for indexes in ranges))]
        return taken

    moved(c, node, lambda t: cut_tensor(c, node, t, ranges, node.outputs[0]), taken_of)


def cut_tensor(c: Converter, node: Node, tensor: Tensor, ranges: Sequence[range], name: str) -> Tensor:
    """The tensor that holds a range of indexes of every dimension of another one."""
    rank = len(ranges)
    backwards = sum(1 << i for i, taken in enumerate(ranges) if taken.step < 0 and taken.stop < 0)
    bounds = [[r.start for r in ranges], [max(r.stop, 0) for r in ranges], [r.step for r in ranges]]
    inputs = [
        constant_tensor(f"{name} ({what})", np.array(numbers, np.int32))
        for what, numbers in zip(("begin", "end", "stride"), bounds, strict=True)
    ]
    shape = [len(r) for r in ranges]
    assert len(shape) == rank
    return c.emit(
        "STRIDED_SLICE",
        (tensor, *inputs),
        shape,
        tensor.dtype,
        name,
        tensor.quant,
        StridedSlice(end_mask=backwards),
        node,
    )


def convert_split(c: Converter, node: Node) -> None:
    """Split along one dimension, each output a range of indexes."""
    shape = c.shape(node.input(0))
    axis, count = _axis(node, len(shape)), len(node.outputs)
    sizes = c.numbers(node, 1, "split")
    if sizes is None:
        each = -(-shape[axis] // count)
        sizes = [min(each, shape[axis] - i * each) for i in range(count)]
    if len(sizes) != count or sum(sizes) != shape[axis] or min(sizes) < 1:
        raise Refused(f"its parts {sizes} don't fit a dimension of {shape[axis]}", _HINT_AGAIN)
    value, at = c.values[node.input(0)], 0
    for i, size in enumerate(sizes):
        ranges = [range(dim) if d != axis else range(at, at + size) for d, dim in enumerate(shape)]
        index = np.ix_(*(np.array(taken) for taken in ranges))
        name = node.outputs[i]

        def part(tensor: Tensor, ranges: Sequence[range] = ranges, name: str = name) -> Tensor:
            return cut_tensor(c, node, tensor, ranges, name)

        c.set(node, moved_value(c, value, node.input(0), part, lambda a, index=index: a[index]), i)  # type: ignore[misc]
        at += size


def convert_concat(c: Converter, node: Node) -> None:
    """Concat: stored inputs are brought to the output's quantization by tables, as QLinearConcat does."""
    if "" in node.inputs:
        raise Refused("one of its inputs is left out", _HINT_AGAIN)
    values = [c.values[name] for name in node.inputs]
    axis = _axis(node, len(c.shape(node.input(0))))
    shapes = [list(c.shape(name)) for name in node.inputs]
    rest = [(len(shape), shape[:axis] + shape[axis + 1 :]) for shape in shapes]
    if any(dims != rest[0] for dims in rest):
        raise Refused(f"its inputs {shapes} don't fit along axis {axis}", _HINT_AGAIN)
    shape = list(shapes[0])
    shape[axis] = sum(s[axis] for s in shapes)
    require_shape(shape)
    if all(isinstance(value, Constant) for value in values):
        c.set(node, Constant(np.concatenate([v.array for v in values if isinstance(v, Constant)], axis)))
        return
    quantized = [isinstance(v, QuantizedConstant) or (isinstance(v, Function) and not v.kinds) for v in values]
    target = target_of(c, node) if all(quantized) else None
    if target is not None and not target.clamps:
        tensors = [_requantized(c, v, name, target.quantization) for v, name in zip(values, node.inputs, strict=True)]
        made = _concatenated(c, node, tensors, shape, axis, target.name, target.quantization.signed)
        target.take(c, made)
        return
    if all(isinstance(v, Stored) for v in values):
        stored = [v for v in values if isinstance(v, Stored)]
        if any(v.tensor.quant != stored[0].tensor.quant or v.dtype != stored[0].dtype for v in stored):
            raise Refused("its stored inputs have different scales", "put DequantizeLinear in front of it")
        made = _concatenated(c, node, [v.tensor for v in stored], shape, axis, node.outputs[0], stored[0].tensor.quant)
        c.set(node, Stored(made, stored[0].dtype))
        return
    tensors = [c.real(name) for name in node.inputs]
    c.set(node, Real(_concatenated(c, node, tensors, shape, axis, node.outputs[0], None)))


def _concatenated(
    c: Converter, node: Node, tensors: Sequence[Tensor], shape: Sequence[int], axis: int, name: str, quant: Quant | None
) -> Tensor:
    return c.emit("CONCATENATION", tensors, shape, tensors[0].dtype, name, quant, Concatenation(axis), node)


def _requantized(c: Converter, value: Value, name: str, to: Quantization) -> Tensor:
    """A concatenation's operand in the output's quantization."""
    if isinstance(value, Function):
        return c.table(value, to, f"{name} (rescaled)", "Concat").tensor
    assert isinstance(value, QuantizedConstant)
    return constant_tensor(name, to.quantize(value.real), to.signed)


def convert_pad(c: Converter, node: Node) -> None:
    """Pad with one value, which must be one of the input's stored values if it has such."""
    shape, pads = c.shape(node.input(0)), c.numbers(node, 1, "pads")
    axes = c.numbers(node, 3)
    if node.attributes.get("mode", "constant") not in ("constant", ""):
        raise Refused(f"mode {node.attributes['mode']} is not supported", "pad with a constant")
    if pads is None:
        raise Refused("its pads are unknown", _HINT_AGAIN)
    rank = len(shape)
    axes = list(range(rank)) if axes is None else [checked_axis(a, rank) for a in axes]
    if len(pads) != 2 * len(axes) or min(pads, default=0) < 0 or max(pads, default=0) >= 1 << 15:
        raise Refused(f"pads {pads} are not supported", "pad by at most 32,767, and by no negative number")
    amounts = np.zeros((rank, 2), np.int32)
    for i, axis in enumerate(axes):
        amounts[axis] = pads[i], pads[i + len(axes)]
    given = c.constant(node, 2)
    number = float(node.attributes.get("value", 0.0) if given is None or not given.size else given.reshape(-1)[0])
    out = [dim + int(before) + int(after) for dim, (before, after) in zip(shape, amounts, strict=True)]
    require_shape(out)
    around = constant_tensor(f"{node.outputs[0]} (pads)", amounts)

    def pad(tensor: Tensor) -> Tensor:
        value = number
        if tensor.quant is not None:
            exact = number / tensor.scale + tensor.zero_point
            value = round(exact) if isfinite(exact) else 128
            if not -128 <= value <= 127 or np.float32(
                (value - tensor.zero_point) * np.float32(tensor.scale)
            ) != np.float32(number):
                raise Refused(f"its value {number} is none of the input's stored values", "pad with 0")
        fill = constant_tensor(f"{node.outputs[0]} (value)", np.array([value], tensor.dtype), tensor.quant)
        return c.emit("PADV2", (tensor, around, fill), out, tensor.dtype, node.outputs[0], tensor.quant, None, node)

    moved(c, node, pad, lambda a: np.pad(a, amounts, constant_values=number))
