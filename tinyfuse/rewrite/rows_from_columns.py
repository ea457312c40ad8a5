"""Turns images of a single row into images of a single column, so that the long axis is the one that is streamed.

before   %e[1,1,128,3] = EXPAND_DIMS(%x[1,128,3]);  %c[1,1,126,8] = CONV_2D(%e, weights[8,1,3,3])
         %s[1,126,8] = RESHAPE(%c);  %d[1,1,126,8] = EXPAND_DIMS(%s);  %p[1,1,63,8] = MAX_POOL_2D(%d);  ...
after    %e[1,128,1,3] = RESHAPE(%x);  %c[1,126,1,8] = CONV_2D(%e, weights[8,3,1,3])
         %p[1,63,1,8] = MAX_POOL_2D(%c);  ...

Converters write layers over time (Keras' Conv1D) in this form. Both images have the same bytes in memory, so reshapes
at both ends cost nothing, and those in between are removed. Strides, dilations, paddings and kernels change axes
(`OpFamily.with_axes_swapped`).

A region of such operators is rewritten if it has a window that slides along the sequence, and if its sequences are not
made from an image of several rows, where the rewrite would divide one group into two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.pooling_reduce.reduce import Reducer
from tinyfuse.ops.pooling_reduce.reduce_scaling import reduced_axes
from tinyfuse.rewrite.on_images import OnImages


def rows_from_columns(graph: Graph) -> Graph:
    """Turn sequences into images of a single column."""
    regions = _Regions(graph)
    rewritten = {op for region in regions.found() if _pays(graph, region) for op in region}
    return _Writer(graph, rewritten).written() if rewritten else graph


# --- sequences -----------------------------------------------------------------------------------


def _sequence_axis(shape: tuple[int, ...]) -> int | None:
    """Return the number of the long dimension of a sequence [1, L, C] or [1, 1, L, C]; None for other shapes."""
    rank = len(shape)
    if rank in (3, 4) and prod(shape[: rank - 2]) == 1 and shape[-1] > 0:
        return rank - 2
    return None


def _image_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return a sequence's shape as an image of a single column, [1, L, 1, C]."""
    return (1, shape[-2], 1, shape[-1])


def _is_sequence(tensor: Tensor) -> bool:
    return _sequence_axis(tensor.shape) is not None


def _is_upright(tensor: Tensor) -> bool:
    """Tell whether a tensor is an image of a single column already."""
    return tensor.is_image and tensor.shape[2] == 1


def _renames(op: Op) -> bool:
    """Tell whether the operator reshapes a sequence, or an image of a single column, to a sequence with the
    same bytes."""
    if not FAMILIES[op.kind].alias or op.input.is_constant or op.input.is_state or not _is_sequence(op.output):
        return False
    source, result = op.input, op.output
    same_sequence = _is_sequence(source) and _image_shape(source.shape) == _image_shape(result.shape)
    upright = _is_upright(source) and source.shape == _image_shape(result.shape)
    return (same_sequence or upright) and source.quant == result.quant


def _on_images(op: Op, images: dict[Tensor, Tensor]) -> Op | None:
    """Return the operator on `images` of a single column in place of its sequences; None if no operator computes that.

    The output is still the file's: the caller changes its shape.
    """
    if op.states or not op.activations or len(op.outputs) != 1 or any(t not in images for t in op.activations):
        return None
    family = FAMILIES[op.kind]
    if isinstance(op.attributes, Reducer):
        return _reduced(op, images)
    if not _is_sequence(op.output):
        return None
    if family.pads:
        return _padded(op, images)
    if family.rows_alike:
        return _pointwise(op, images)
    if not (op.first_activation.is_image and op.output.is_image):
        return None
    return family.with_axes_swapped(op, tuple(t if t is None else images.get(t, t) for t in op.inputs))


def _pointwise(op: Op, images: dict[Tensor, Tensor]) -> Op | None:
    """Return an elementwise operator on images, its operands broadcast to one sequence shape."""
    rank, inputs = len(op.output.shape), []
    for tensor in op.inputs:
        if tensor is None or tensor in images:
            inputs.append(tensor if tensor is None else images[tensor])
            continue
        if len(tensor.shape) > rank:
            return None
        full = (1,) * (rank - len(tensor.shape)) + tensor.shape
        if prod(full[: rank - 2]) != 1:
            return None
        keeps = tensor.shape == () or len(tensor.shape) == 1 or _image_shape(full) == tensor.shape
        inputs.append(tensor if keeps else _shaped(tensor, _image_shape(full)))
    if not isinstance(op.attributes, Concatenation):
        return replace(op, inputs=tuple(inputs))
    along = op.attributes.axis % rank
    if along < rank - 2:
        return None
    axis = 1 if along == rank - 2 else 3
    return replace(op, inputs=tuple(inputs), attributes=replace(op.attributes, axis=axis))


def _padded(op: Op, images: dict[Tensor, Tensor]) -> Op | None:
    amounts: Array = op.operand(1).values
    if amounts[:-2].any():
        return None
    data = np.zeros((4, 2), amounts.dtype)
    data[1], data[3] = amounts[-2], amounts[-1]
    constant = replace(op.operand(1), shape=data.shape, data=data, index=-1)
    return replace(op, inputs=(images[op.input], constant, *op.inputs[2:]))


def _reduced(op: Op, images: dict[Tensor, Tensor]) -> Op | None:
    """Return a reduction along the sequence as one over rows and columns (there is one column)."""
    rank = len(op.input.shape)
    if rank - 2 not in reduced_axes(op) or rank - 1 in reduced_axes(op):
        return None
    data = np.array([1, 2], np.int32)
    axes = replace(op.operand(1), shape=data.shape, data=data, index=-1)
    attributes = replace(op.attributes_as(Reducer), keep_dims=len(op.output.shape) == 4)
    return replace(op, inputs=(images[op.input], axes), attributes=attributes)


def _shaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a constant in another shape of the same elements."""
    return replace(tensor, shape=shape, data=tensor.values.reshape(shape), index=-1)


# --- which operators -----------------------------------------------------------------------------


class _Regions:
    """Groups the operators that can work on images, connected through the sequences between them."""

    def __init__(self, graph: Graph):
        self.root: dict[Op, Op] = {}
        maker: dict[Tensor, Op] = {}  # sequence -> the first operator that made or read it
        for op in graph.ops:
            sequences = {t: replace(t, shape=_image_shape(t.shape)) for t in op.activations if _is_sequence(t)}
            if not _renames(op) and _on_images(op, sequences) is None:
                continue
            self.root[op] = op
            for tensor in (*op.activations, *op.outputs):
                other = maker.setdefault(tensor, op)
                self.root[self._first(other)] = self._first(op)

    def _first(self, op: Op) -> Op:
        while self.root[op] is not op:
            op = self.root[op]
        return op

    def found(self) -> Iterator[tuple[Op, ...]]:
        """Yield each region's operators in graph order."""
        members: dict[Op, list[Op]] = {}
        for op in self.root:
            members.setdefault(self._first(op), []).append(op)
        return map(tuple, members.values())


def _pays(graph: Graph, region: tuple[Op, ...]) -> bool:
    """Tell whether a window slides along a sequence of several places, and no sequence comes from an image of several
    rows. A group would end at such an image, and nothing would be gained."""
    members = set(region)
    for op in region:
        for tensor in op.activations:
            maker = graph.producer.get(tensor)
            if (
                maker is None or maker in members or FAMILIES[maker.kind].transposes
            ):  # a TRANSPOSE from planes ends a group anyway
                continue
            if any(_has_rows(t) for t in maker.activations):
                return False
    return any(_slides(op) for op in region)


def _has_rows(tensor: Tensor) -> bool:
    return tensor.is_image and tensor.shape[1] > 1


def _slides(op: Op) -> bool:
    """Tell whether a window of several places, or a stride, goes along the sequence."""
    family = FAMILIES[op.kind]
    if family.pads or family.rows_alike or family.alias or isinstance(op.attributes, Reducer):
        return False
    return max(op.output.shape[-2], *(t.shape[-2] for t in op.activations)) > 1


# --- the graph -----------------------------------------------------------------------------------


class _Writer(OnImages):
    """Builds the graph with images of a single column."""

    def add(self, op: Op) -> None:
        if _renames(op):
            self.images[op.output] = self._image(op.input, op)
            return
        made = _on_images(op, {t: self._image(t, op) for t in op.activations})
        assert made is not None, "it could be on images"
        self.ops.append(replace(made, outputs=(self._result(op, made),)))

    def _image(self, tensor: Tensor, reader: Op) -> Tensor:
        """Return the image for a sequence, reshaping it for `reader` if needed."""
        if _is_upright(tensor) and tensor not in self.images:
            return tensor
        if tensor not in self.images:
            self.images[tensor] = self.reshaped(tensor, _image_shape(tensor.shape), reader)
            self.named.add(tensor)
        return self.images[tensor]

    def _result(self, op: Op, made: Op) -> Tensor:
        """Return the output of the operator on images."""
        result = op.output
        if isinstance(made.attributes, Reducer):
            shape = (1, 1, 1, result.shape[-1]) if made.attributes.keep_dims else (1, result.shape[-1])
        else:
            shape = _image_shape(result.shape)
        if shape == result.shape:
            return result
        self.images[result] = replace(result, shape=shape, name=f"{result.name} (rows)", index=-1)
        return self.images[result]
