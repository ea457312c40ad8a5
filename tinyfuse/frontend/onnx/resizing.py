"""Converts Resize of rows and columns.

Nearest pixels are copied, whatever their quantization; linear interpolation is computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.frontend.onnx.elementwise import real_arithmetic
from tinyfuse.frontend.onnx.graph import Converter, require_shape
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.movement import moved
from tinyfuse.frontend.onnx.values import Function, Real
from tinyfuse.frontend.tensors import Refused, constant_tensor
from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.movement.gather import Gather
from tinyfuse.ops.movement.resize import Resize, nearest_rows_and_columns

_F32 = np.float32

#: coordinate_transformation_mode -> places in the input of the indexes `i` of the output, float32 as onnxruntime
#: computes them (upsamplebase.h); `scale` is that of the output, `n` and `m` the sizes of input and output
_PLACES: dict[str, Callable[[Array, np.float32, int, int], Array]] = {
    "asymmetric": lambda i, scale, n, m: i / scale,
    "half_pixel": lambda i, scale, n, m: (i + _F32(0.5)) / scale - _F32(0.5),
    "pytorch_half_pixel": lambda i, scale, n, m: (i + _F32(0.5)) / scale - _F32(0.5) if m > 1 else i * 0,
    "align_corners": lambda i, scale, n, m: i * _F32(n - 1) / _F32(m - 1) if m > 1 else i * 0,
    "tf_half_pixel_for_nn": lambda i, scale, n, m: (i + _F32(0.5)) / scale,
}
#: nearest_mode -> integers of places
_NEAREST: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda place: np.ceil(place.astype(np.float64) - 0.5),
    "round_prefer_ceil": lambda place: np.floor(place.astype(np.float64) + 0.5),
}


class _Sizes:
    """Rows and columns of the output, and the scales that lead to them."""

    def __init__(self, c: Converter, node: Node):
        shape, a = c.shape(node.input(0)), node.attributes
        if len(shape) != 4 or shape[0] != 1 or 0 in shape:
            raise Refused(f"its input is {list(shape)}", "resize images [1, channels, rows, columns]")
        if a.get("axes") or a.get("antialias", 0) or a.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise Refused(
                "axes, antialias and keep_aspect_ratio_policy are not supported", "give scales or sizes alone"
            )
        scales = c.constant(node, 2 if c.model.opset > 10 else 1)
        sizes = c.numbers(node, 3)
        if sizes is not None and len(sizes) == 4:
            found = [_F32(size) / _F32(dim) for size, dim in zip(sizes, shape, strict=True)]
        elif scales is not None and scales.size == 4 and (scales > 0).all() and (scales < 2**24).all():
            found = list(scales.reshape(-1).astype(_F32))
            sizes = [int(np.floor(_F32(dim) * scale)) for dim, scale in zip(shape, found, strict=True)]
        else:
            raise Refused("its sizes are unknown", "export the model again, with fixed shapes")
        if tuple(sizes[:2]) != shape[:2] or min(sizes) < 1:
            raise Refused(f"sizes {sizes} are not supported", "resize rows and columns alone")
        require_shape(sizes)
        self.before, self.after, self.scales = shape[2:], sizes[2:], found[2:]
        place = a.get("coordinate_transformation_mode", "half_pixel")
        self.place = "asymmetric" if c.model.opset < 11 else place
        if self.place not in _PLACES:
            raise Refused(f"coordinate_transformation_mode {self.place} is not supported", "use half_pixel")

    def places(self, axis: int) -> Array:
        """float32: where in the input each row (axis 0) or column (axis 1) of the output lies."""
        n, m, scale = self.before[axis], self.after[axis], self.scales[axis]
        index = np.arange(m).astype(_F32)
        return index if scale == 1 else _PLACES[self.place](index, scale, n, m)


def convert_resize(c: Converter, node: Node) -> None:
    """Converts a Resize. Raises Refused for a mode other than nearest and linear."""
    sizes, mode = _Sizes(c, node), node.attributes.get("mode", "nearest")
    if mode == "nearest":
        _convert_nearest(c, node, sizes)
    elif mode == "linear":
        _convert_linear(c, node, sizes)
    else:
        raise Refused(f"mode {mode} is not supported", "use mode nearest or linear")


def _convert_nearest(c: Converter, node: Node, sizes: _Sizes) -> None:
    default = "round_prefer_floor" if c.model.opset > 10 else "floor"
    nearest = node.attributes.get("nearest_mode", default)
    if nearest not in _NEAREST or (c.model.opset < 11 and min(sizes.scales) < 1):
        raise Refused(f"nearest_mode {nearest} is not supported", "export the model with opset_version=17")
    rows, columns = (
        np.clip(_NEAREST[nearest](sizes.places(axis)), 0, sizes.before[axis] - 1).astype(np.int32) for axis in (0, 1)
    )
    moved(
        c, node, lambda tensor: c.planes(_nearest(c, node, c.image(tensor), rows, columns)),
        lambda array: array[:, :, rows[:, None], columns[None, :]],
    )  # fmt: skip


def _nearest(c: Converter, node: Node, image: Tensor, rows: Array, columns: Array) -> Tensor:
    """Return the image of those rows and columns: by RESIZE_NEAREST_NEIGHBOR if it takes them, else by two GATHERs."""
    name, channels = node.outputs[0], image.shape[3]
    size = constant_tensor(f"{name} (size)", np.array([rows.size, columns.size], np.int32))
    output = Tensor(name, (1, rows.size, columns.size, channels), image.dtype, image.quant)
    for align in (False, True):
        for half in (False, True):
            op = Op("RESIZE_NEAREST_NEIGHBOR", (image, size), (output,), Resize(align, half), node.index)
            if all(np.array_equal(*pair) for pair in zip(nearest_rows_and_columns(op), (rows, columns), strict=True)):
                c.ops.append(op)
                return output
    for axis, index in ((1, rows), (2, columns)):
        places = constant_tensor(f"{name} (indexes of dimension {axis})", index)
        shape = (*image.shape[:axis], index.size, *image.shape[axis + 1 :])
        image = c.emit("GATHER", (image, places), shape, image.dtype, name, image.quant, Gather(axis), node)
    return image


def _convert_linear(c: Converter, node: Node, sizes: _Sizes) -> None:
    """Convert a Resize by linear interpolation, in float32: each pixel is the sum of four products with its neighbours,
    added one after the other."""
    value, name = c.values[node.input(0)], node.outputs[0]
    if sum(scale == 1 for scale in sizes.scales) == 1:
        # onnxruntime may choose channels last, and then mistakes the scale of one dimension for another's
        raise Refused("it interpolates rows or columns alone", "use mode nearest, or resize both", node.input(0))
    stored = value.source if isinstance(value, Function) and not value.kinds else None
    image = c.image(c.real(node.input(0)) if stored is None else stored.tensor)
    (rows, down), (columns, right) = (_neighbours(sizes, axis) for axis in (0, 1))
    total: Tensor | None = None
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        pixel = _nearest(c, node, image, rows[i], columns[j])
        if stored is not None:
            pixel = c.emit("DEQUANTIZE", (pixel,), pixel.shape, "float32", f"{name} (pixel {i} {j})")
        weights = constant_tensor(f"{name} (weights {i} {j})", np.outer(down[i], right[j])[None, :, :, None])
        product = real_arithmetic(c, "MUL", pixel, weights, f"{name} (product {i} {j})", node)
        total = product if total is None else real_arithmetic(c, "ADD", total, product, f"{name} (sum {i} {j})", node)
    assert total is not None, "there are four neighbours"
    c.set(node, Real(c.planes(total)))


def _neighbours(sizes: _Sizes, axis: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return, for each output row (or column, by `axis`), the two input rows that it interpolates, and their float32
    weights."""
    most = sizes.before[axis] - 1
    place = np.clip(sizes.places(axis), _F32(0), _F32(most)).astype(_F32)
    first = np.minimum(place.astype(np.int32), most)
    second = np.minimum(first + 1, most)
    to_first, to_second = (np.abs(place - other.astype(_F32)) for other in (first, second))
    alone = first == second
    return (first, second), (np.where(alone, _F32(0.5), to_second), np.where(alone, _F32(0.5), to_first))
