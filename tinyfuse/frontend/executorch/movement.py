"""Pools, Softmax, and calls that move elements."""

from __future__ import annotations

import numpy as np

from tinyfuse.frontend.executorch.arguments import INT8, Arguments, real
from tinyfuse.frontend.executorch.graph import Converter
from tinyfuse.frontend.executorch.memory import VIEW
from tinyfuse.frontend.executorch.quantization import Quantizations
from tinyfuse.frontend.tensors import HINT_UNSOUND, Refused, constant_tensor
from tinyfuse.ir import Quant
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.pooling_reduce.pooling import Pool2D
from tinyfuse.ops.pooling_reduce.softmax_scaling import Softmax, difference_scaling

# --- pools and Softmax -----------------------------------------------------------------------


def state_average(q: Quantizations, a: Arguments) -> None:
    """State that an average has its input's quantization."""
    q.has(a.value("input"), a.integer("zero_point", INT8))
    q.alike(a.value("input"), a.out)


def state_maximum(q: Quantizations, a: Arguments) -> None:
    """State that a maximum has its input's quantization."""
    q.has(a.value("input"), a.integer("input_zero_point", INT8))
    q.alike(a.value("input"), a.out)


def convert_pool(c: Converter, a: Arguments) -> None:
    """quantized_avg_pool2d and quantized_max_pool2d. The average's kernel rounds halves away from zero and leaves
    padding out, as AVERAGE_POOL_2D does."""
    average = "avg" in a.call.kind
    if not average and a.pair("dilation") != (1, 1):
        raise Refused("dilations are not supported here", "use a pool without dilation")
    value = a.value("input")
    image = c.read(value, c.image_shape(a, value), c.quant(a.out))
    kernel, stride, padding = a.pair("kernel_size"), a.pair("stride"), a.pair("padding")
    if not all(1 <= number < 2**15 for number in (*kernel, *stride)):
        raise Refused(f"its window is {list(kernel)}, its stride {list(stride)}", HINT_UNSOUND)
    if not all(0 <= pad < size for pad, size in zip(padding, kernel, strict=True)):
        raise Refused(f"its padding {list(padding)} is not smaller than its window", HINT_UNSOUND)
    sides = []
    for size, window, step, pad, count in zip(
        image.shape[1:3], kernel, stride, padding, c.image_shape(a, a.out)[1:3], strict=True
    ):
        # with ceil_mode the last window goes beyond the padding, but begins before it
        behind = max(pad, (count - 1) * step + window - size - pad)
        begins = (count - 1) * step < size + pad
        if not begins or (behind != pad and not a.integer("ceil_mode", (0, 1))):
            raise Refused(f"its result has sizes {list(a.out.sizes)}", HINT_UNSOUND)
        sides += [pad, behind]
    attributes = Pool2D(
        (sides[0], sides[1], sides[2], sides[3]) if any(sides) else "VALID",
        kernel,
        stride,
        clamp=None if average else a.clamp(),
    )
    c.set_image(a, "AVERAGE_POOL_2D" if average else "MAX_POOL_2D", (image,), attributes)


#: scale and zero point of what arm_softmax_s8 computes
_SOFTMAX_SCALE, _SOFTMAX_ZERO_POINT = 1 / 256, -128


def _input_scale(a: Arguments) -> float:
    """Return the scale of Softmax' input, which its multiplier implies."""
    return real(*a.multiplier("input")) / 2.0**26


def state_softmax(q: Quantizations, a: Arguments) -> None:
    """State the scales that arm_softmax_s8 has built in."""
    q.has(a.value("input"), a.integer("input_zero_point", INT8), _input_scale(a) or None)
    q.has(a.out, a.integer("output_zero_point", INT8), _SOFTMAX_SCALE)


def convert_softmax(c: Converter, a: Arguments) -> None:
    """softmax along the last dimension."""
    value = a.value("input")
    wanted = (*a.multiplier("input"), a.integer("diff_min"))
    last = a.integer("dim") in (-1, len(value.sizes) - 1)
    c.require_plain(a.out)
    if not last or not value.sizes or wanted[0] == 0 or difference_scaling(_input_scale(a)) != wanted:
        raise Refused("it is not along the last dimension, or its parameters contradict each other", HINT_UNSOUND)
    if a.integer("output_zero_point") != _SOFTMAX_ZERO_POINT:
        raise Refused("its result's zero point is not -128", HINT_UNSOUND)
    c.require_plain(value)
    quant = c.quantizations.quant(value)
    if difference_scaling(quant.scale[0]) != wanted:
        quant = Quant((_input_scale(a),), quant.zero_point)
    data = c.read(value, value.sizes, quant)
    c.set_scaled(a, "SOFTMAX", (data,), value.sizes, Softmax(1.0), _SOFTMAX_SCALE)


_HINT_PLAIN = (
    "lower the module with use_explicit_layout=True, in CortexMQuantizer and CortexMPassManager, or call contiguous() "
    "before permute(): PyTorch and ExecuTorch's kernel compute different results here"
)

# --- movement --------------------------------------------------------------------------------


def state_moved(q: Quantizations, a: Arguments) -> None:
    """State that the result has the input's quantization, because elements are only moved."""
    if a.value("input").dtype == "int8":
        q.alike(a.value("input"), a.out)


def require_one_quantization(q: Quantizations, a: Arguments) -> None:
    """Give the inputs and the output of a concatenation one quantization."""
    for value in a.values("tensors"):
        if value.dtype == "int8":
            q.alike(value, a.out)


def _require_same_dtype(a: Arguments) -> None:
    if a.value("input").dtype != a.out.dtype:
        raise Refused(f"it makes {a.out.dtype} of {a.value('input').dtype}", "convert dtypes outside the model")


def convert_view(c: Converter, a: Arguments) -> None:
    """A view of another value's memory, or a copy with other sizes (view, unsqueeze and squeeze)."""
    value, out = a.value("input"), a.out
    _require_same_dtype(a)
    if a.call.kind != VIEW:
        c.require_plain(value)
        c.require_plain(out)
    if value.elements != out.elements:
        raise Refused(f"it makes {out} of {value}", HINT_UNSOUND)
    c.set(a, "RESHAPE", (c.read(value, c.memory_shape(value), c.quant(out)),), c.memory_shape(out))


def convert_copy(c: Converter, a: Arguments) -> None:
    """A copy in another order of dimensions in memory."""
    value, out = a.value("input"), a.out
    _require_same_dtype(a)
    if value.sizes != out.sizes:
        raise Refused(f"it makes {out} of {value}", HINT_UNSOUND)
    data = c.read(value, [value.sizes[d] for d in value.dim_order], c.quant(out))
    if value.lies_as(out.dim_order):
        c.set(a, "RESHAPE", (data,), c.memory_shape(out))
        return
    c.set_permuted(a, data, [value.dim_order.index(d) for d in out.dim_order])


def convert_transpose(c: Converter, a: Arguments) -> None:
    """transpose and permute_copy of tensors whose dimensions lie in memory in order."""
    value, order = a.value("input"), a.integers("dims")
    rank = len(value.sizes)
    axes = [axis + rank if axis < 0 else axis for axis in order]
    if sorted(axes) != list(range(rank)):
        raise Refused(f"it permutes {list(order)} of {rank} dimensions", HINT_UNSOUND)
    _require_same_dtype(a)
    for end in (value, a.out):
        if not end.lies_as(range(len(end.sizes))):
            raise Refused(
                "its kernel expects dimensions in order in memory, but they are in another one", _HINT_PLAIN, str(end)
            )
    c.set_permuted(a, c.read(value, value.sizes, c.quant(a.out)), axes)


def convert_pad(c: Converter, a: Arguments) -> None:
    """pad; its numbers are for four dimensions, in the order of memory."""
    value = a.value("input")
    before, behind = a.integers("pre_pad", 4), a.integers("post_pad", 4)
    shape = c.memory_shape(value)
    if len(shape) > 4 or min(*before, *behind) < 0 or max(*before, *behind) >= 2**15:
        raise Refused(f"it pads {value} by {list(before)} and {list(behind)}", HINT_UNSOUND)
    shape = (1,) * (4 - len(shape)) + shape
    padded = tuple(size + b + e for size, b, e in zip(shape, before, behind, strict=True))
    out_shape = c.memory_shape(a.out)
    if (1,) * (4 - len(out_shape)) + out_shape != padded:
        raise Refused(f"its result has sizes {list(a.out.sizes)}", HINT_UNSOUND)
    amounts = constant_tensor(f"pads_{a.call.index}", np.array([before, behind], np.int32).T)
    number, quant = a.integer("pad_value", INT8), c.quantizations.quant(a.out)
    data = c.read(value, shape, quant)
    if number == quant.zero_point[0]:
        c.set(a, "PAD", (data, amounts), padded)
        return
    filler = constant_tensor(f"pad_value_{a.call.index}", np.array(number, np.int8), quant)
    c.set(a, "PADV2", (data, amounts, filler), padded)


def convert_join(c: Converter, a: Arguments) -> None:
    """cat of tensors with one order of dimensions in memory."""
    values, out = a.values("tensors"), a.out
    rank = len(out.sizes)
    axis = a.integer("dim", (-rank, rank - 1)) % max(rank, 1)
    alike = all(len(value.sizes) == rank and value.dtype == out.dtype for value in values)
    if not rank or not alike or not all(value.lies_as(out.dim_order) for value in values):
        raise Refused("its tensors have other dtypes, ranks or orders in memory than its result", HINT_UNSOUND)
    shapes = [[value.sizes[d] for d in out.dim_order] for value in values]
    place = out.dim_order.index(axis)
    wanted = [out.sizes[d] for d in out.dim_order]
    fits = all(shape[:place] + shape[place + 1 :] == wanted[:place] + wanted[place + 1 :] for shape in shapes)
    if not fits or sum(shape[place] for shape in shapes) != wanted[place]:
        raise Refused(f"its result has sizes {list(out.sizes)}", HINT_UNSOUND)
    quant = c.quant(out)
    tensors = [c.read(value, shape, quant) for value, shape in zip(values, shapes, strict=True)]
    c.set(a, "CONCATENATION", tensors, wanted, Concatenation(place))
