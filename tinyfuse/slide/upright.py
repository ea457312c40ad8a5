"""Makes frames rows: every tensor that follows the frames becomes an image [1, H, W, C] with one frame per row.

before   in %x[1,128,3];  %e[1,1,128,3] = EXPAND_DIMS(%x);  %c[1,1,126,8] = CONV_2D(%e, weights[8,1,3,3])
         %s[1,126,8] = RESHAPE(%c);  %m[1,8] = MEAN(%s)
after    in %x[1,128,1,3];  %c[1,126,1,8] = CONV_2D(%x, weights[8,3,1,3]);  %s[1,126,8] = RESHAPE(%c);  %m = MEAN(%s)

Where a frame is contiguous, that is, where the dimensions in front of it are 1, this moves no byte. An operator that
cannot be turned reads its inputs in the shapes of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.movement.slice import slice_of
from tinyfuse.ops.pooling_reduce.reduce import Reducer
from tinyfuse.ops.pooling_reduce.reduce_scaling import reduced_axes


@dataclass(frozen=True)
class _Upright:
    """Image that replaces a tensor of the file whose dimension `axis` has the frames."""

    image: Tensor
    axis: int


def upright(graph: Graph, number: int, axis: int) -> tuple[Graph, Tensor]:
    """Turns the graph; returns it with its input `number`, whose dimension `axis` has the frames, as an image."""
    return _Uprighting(graph).graph_of(number, axis)


class _Uprighting:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.known: dict[Tensor, _Upright] = {}
        self.in_file_shape: dict[Tensor, Tensor] = {}
        self.ops: list[Op] = []

    def graph_of(self, number: int, axis: int) -> tuple[Graph, Tensor]:
        graph, frames = self.graph, self._image(self.graph.inputs[number], axis)
        for op in graph.ops:
            if self.known.keys().isdisjoint(op.activations) or not self._add(op):
                self.ops.append(op.reading({t: self._as_in_file(t, op.index) for t in op.activations}))
        inputs = tuple(frames if i == number else t for i, t in enumerate(graph.inputs))
        outputs = tuple(self._as_in_file(t, -1) for t in graph.outputs)
        return replace(graph, ops=tuple(self.ops), inputs=inputs, outputs=outputs), frames

    def _image(self, tensor: Tensor, axis: int) -> Tensor:
        """Image in place of a tensor that the file has in another shape."""
        shape = _image_shape(tensor.shape, axis)
        image = tensor if shape == tensor.shape else replace(tensor, shape=shape)
        self.known[tensor] = _Upright(image, axis)
        return image

    def _as_in_file(self, tensor: Tensor, index: int) -> Tensor:
        """Tensor in the shape that the file gives it."""
        found = self.known.get(tensor)
        if found is None or found.image is tensor:
            return tensor
        if tensor not in self.in_file_shape:
            # the image keeps the tensor's index in the file
            shaped = replace(tensor, index=-1)
            self.ops.append(Op("RESHAPE", (found.image,), (shaped,), index=index))
            self.in_file_shape[tensor] = shaped
        return self.in_file_shape[tensor]

    def _add(self, op: Op) -> bool:
        """Adds the operator on images; False if there is no such operator."""
        family = FAMILIES[op.kind]
        if len(op.outputs) != 1 or any(t not in self.known for t in op.activations):
            return False
        axes = {self.known[t].axis for t in op.activations}
        if len(axes) > 1:
            return False
        (axis,) = axes
        if family.alias:
            return self._add_alias(op)
        if family.reduces:
            return self._add_reduction(op, axis)
        if len(op.output.shape) <= axis or prod(op.output.shape[:axis]) != 1:
            return False
        made = _on_images(op, tuple(self.known[t].image if t in self.known else t for t in op.inputs), axis)
        if made is None:
            return False
        self.ops.append(replace(made, outputs=(self._image(op.output, axis),)))
        return True

    def _add_reduction(self, op: Op, axis: int) -> bool:
        """Adds a reduction over frames, or within each frame. Returns False if the image cannot be reduced in the same
        way."""
        image, reduced = self.known[op.input].image, _reduced_of_image(op, axis)
        if not reduced:
            return False
        shape = tuple(1 if d in reduced else dim for d, dim in enumerate(image.shape))
        axes = Tensor("", (len(reduced),), "int32", data=np.array(sorted(reduced), np.int32))
        output, made = op.output, op.output
        if output.shape != shape:
            made = replace(output, name=f"{output.name} (of images)", shape=shape, index=-1)
        self.ops.append(
            replace(
                op, inputs=(image, axes), outputs=(made,), attributes=replace(op.attributes_as(Reducer), keep_dims=True)
            )
        )
        if 1 not in reduced:
            kept = op.attributes_as(Reducer).keep_dims
            output = self._image(output, axis if kept else axis - sum(d < axis for d in reduced_axes(op)))
        if made is not output:
            self.ops.append(Op("RESHAPE", (made,), (output,), index=op.index))
        return True

    def _add_alias(self, op: Op) -> bool:
        """Adds an operator that reshapes frames: nothing, or a RESHAPE of images; False if frames do not stay
        contiguous."""
        source, shape = self.known[op.input].image, op.output.shape
        # as many frames, or several in the place of one
        axes = [
            i for i in range(len(shape)) if shape[i] > 1 and not source.shape[1] % shape[i] and prod(shape[:i]) == 1
        ]
        if not axes:
            return False
        axis = axes[0]
        if _image_shape(shape, axis) == source.shape and op.output.quant == source.quant:
            self.known[op.output] = _Upright(source, axis)
        else:
            self.ops.append(Op("RESHAPE", (source,), (self._image(op.output, axis),), index=op.index))
        return True


def _reduced_of_image(op: Op, axis: int) -> set[int] | None:
    """Dimensions that the reduction has in the image that replaces its input; None if it reduces only part of an image
    dimension."""
    rank, axes = len(op.input.shape), reduced_axes(op)
    between = [d for d in range(axis + 1, rank - 1) if op.input.shape[d] > 1]
    reduced = {d for d in between if d in axes}
    if reduced and len(reduced) < len(between):
        return None
    found = {1} if axis in axes else set()
    return found | ({2} if reduced else set()) | ({3} if axis < rank - 1 in axes else set())


def _image_shape(shape: tuple[int, ...], axis: int) -> tuple[int, int, int, int]:
    """Shape of the image that replaces a tensor: the frames, dimension `axis`, become its rows."""
    rest = shape[axis + 1 :]
    return (1, shape[axis], prod(rest[:-1]), rest[-1] if rest else 1)


def _broadcast(constant: Tensor, shape: tuple[int, ...], axis: int) -> Tensor | None:
    """Constant operand for images, from one that was broadcast to `shape`; None if images cannot be broadcast so."""
    if len(shape) - axis > 3 or len(constant.shape) > len(shape):
        return None
    if constant.elements == 1 and len(constant.shape) <= 1:
        return constant
    full = (1,) * (len(shape) - len(constant.shape)) + constant.shape
    image = _image_shape(full, axis)
    return constant if image == constant.shape else replace(constant, shape=image, data=constant.values.reshape(image))


def _on_images(op: Op, images: tuple[Tensor | None, ...], axis: int) -> Op | None:
    """Operator on the images in place of its inputs, whose dimension `axis` has the frames; its output is an image too.
    None if there is no such operator."""
    family, shapes = FAMILIES[op.kind], [(op.output.shape, axis), *((t.shape, axis) for t in op.activations)]
    if all(_image_shape(*shape) == shape[0] for shape in shapes):
        return replace(op, inputs=images)
    if family.pads:
        return _pad(op, images, axis)
    if op.kind == "SLICE":
        return _slice(op, images, axis)
    if family.by_vectors(op):
        return replace(op, inputs=images) if axis < len(op.output.shape) - 1 else None
    if family.rows_alike:
        return _rows_alike(op, images, axis)
    return family.with_axes_swapped(op, images) if axis == 2 and op.input.is_image and op.output.is_image else None


def _rows_alike(op: Op, images: tuple[Tensor | None, ...], axis: int) -> Op | None:
    constant = {t: _broadcast(t, op.output.shape, axis) for t in op.inputs if t is not None and t.is_constant}
    if None in constant.values():
        return None
    inputs = tuple(
        constant.get(t, image) if t is not None else None for t, image in zip(op.inputs, images, strict=True)
    )
    if not isinstance(op.attributes, Concatenation):
        return replace(op, inputs=inputs)
    rank = len(op.output.shape)
    along = op.attributes.axis % rank
    if along < axis or rank - axis > 3:
        return None
    # frames are rows; the last dimension is the channels
    place = 1 if along == axis else 4 - (rank - along)
    return replace(op, inputs=inputs, attributes=replace(op.attributes, axis=place))


def _slice(op: Op, images: tuple[Tensor | None, ...], axis: int) -> Op | None:
    """SLICE of frames, or within each of them; None if it has too many dimensions."""
    image, beside = images[0], op.operand(1).values[axis + 1 :].tolist()
    if image is None or len(beside) > 2:
        return None
    begin = (0, int(op.operand(1).values[axis]), *[0] * (2 - len(beside)), *beside)
    return slice_of(image, begin, replace(op.output, shape=_image_shape(op.output.shape, axis)), op.index)


def _pad(op: Op, images: tuple[Tensor | None, ...], axis: int) -> Op | None:
    """PAD before and after frames, or within each frame; None if it has too many dimensions."""
    rank = len(op.output.shape)
    if rank - axis > 3 or op.operand(1).values[:axis].any():
        return None
    amounts = op.operand(1).values[axis:]
    beside = amounts[1:]
    rows = [[0, 0], amounts[0], *([[0, 0]] * (2 - len(beside))), *beside]
    data = np.array(rows, op.operand(1).dtype)
    return replace(op, inputs=(images[0], replace(op.operand(1), shape=data.shape, data=data), *op.inputs[2:]))
