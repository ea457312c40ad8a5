"""Turns the vectors of a sequence into the rows of an image, whatever dimensions the file gives them, so that they can
run by rows.

before   %q[1,T,D] = FULLY_CONNECTED(%x[1,T,D], weights);  %h[1,T,H,D/H] = RESHAPE(%q)
         %s[1,T,H,T] = ROWS_MATMUL(%h, %k[1,T,H,D/H]);  %p[1,T,H,T] = SOFTMAX(%s);  %m[1,T,1] = MEAN(%x, 2);  ...
after    %q[1,T,1,D] = FULLY_CONNECTED(%x[1,T,1,D], weights)
         %s[1,T,H,T] = ROWS_MATMUL(%q, %k[1,T,1,D]);  %p[1,T,H,T] = SOFTMAX(%s);  %m[1,T,1,1] = MEAN(%x, 3);  ...

Rows are the indexes of the first dimension that is not 1, unless that is the last dimension. Transformers reshape
between layers: a reshape within a row is removed if its reader uses a row only as bytes. A BATCH_MATMUL of single
matrices is a ROWS_MATMUL; several heads become one of these after rewrite/cancel_transposes.py has swapped heads and
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.layers.fully_connected import FullyConnected
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul, one_head
from tinyfuse.ops.matmul.rows_matmul import RowsMatMul
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.pooling_reduce.reduce import Reducer
from tinyfuse.ops.pooling_reduce.reduce_scaling import reduced_axes
from tinyfuse.rewrite.on_images import OnImages

Shape = tuple[int, ...]

#: tensor of the file -> its image, in the tensor's own shape or in any other with the same rows
Images = Callable[[Tensor, Shape | None], Tensor]


def rows_of_sequences(graph: Graph) -> Graph:
    """Turn sequences of vectors into images of rows."""
    chosen = {op for region in _regions(graph) if any(map(_mixes, region)) for op in region}
    after = _Writer(graph, chosen).written() if chosen else graph
    return graph if after.ops == graph.ops else after


# --- sequences -----------------------------------------------------------------------------------


def _axis(shape: Shape) -> int:
    """Return the dimension along which rows go, for a shape of rank 2 or more."""
    return next((axis for axis, dim in enumerate(shape[:-1]) if dim != 1), len(shape) - 2)


def _rows(tensor: Tensor) -> int:
    """Return the number of rows of a sequence; 1 for other tensors."""
    return tensor.shape[_axis(tensor.shape)] if len(tensor.shape) > 1 and tensor.elements else 1


def _image_shape(shape: Shape, axis: int | None = None) -> Shape:
    """Return the image shape of a sequence: dimensions between the rows and the last one become columns."""
    axis = _axis(shape) if axis is None else axis
    return (1, shape[axis], prod(shape[axis + 1 : -1]), shape[-1])


def _renames(op: Op) -> bool:
    """Tell whether the operator reshapes a sequence and keeps its rows."""
    if not FAMILIES[op.kind].alias or op.input.is_constant or op.input.is_state:
        return False
    return _rows(op.input) == _rows(op.output) > 1 and op.input.quant == op.output.quant


def _mixes(op: Op) -> bool:
    """Tell whether the operator combines several values of a row: regions of single-value functions gain nothing."""
    return isinstance(op.attributes, (RowsMatMul, BatchMatMul, FullyConnected)) and _rows(op.output) > 1


# --- operators on images -------------------------------------------------------------------------


def _on_images(op: Op, images: Images) -> Op | None:
    """Return the operator on images, its output in the image's shape; None if no operator computes that."""
    family = FAMILIES[op.kind]
    if op.states or len(op.outputs) != 1 or not op.activations or len(op.output.shape) < 2 or not op.output.elements:
        return None
    if any(len(tensor.shape) < 2 for tensor in op.activations):
        return None
    if isinstance(op.attributes, (BatchMatMul, RowsMatMul)):
        return _product(op, images)
    if isinstance(op.attributes, Reducer):
        return _reduced(op, images)
    if _rows(op.output) == 1 or isinstance(op.attributes, Concatenation):
        return None
    if isinstance(op.attributes, FullyConnected):
        return _dense(op, images)
    if family.by_vectors(op):
        return _made(op, (images(op.input, _image_shape(op.input.shape)),), _image_shape(op.output.shape))
    return _pointwise(op, images) if family.rows_alike else None


def _made(op: Op, inputs: tuple[Tensor | None, ...], shape: Shape) -> Op:
    output = op.output
    if output.shape != shape:
        output = replace(output, shape=shape, name=f"{output.name} (rows)", index=-1)
    return replace(op, inputs=(*inputs, *op.inputs[len(inputs) :]), outputs=(output,))


def _product(op: Op, images: Images) -> Op | None:
    (left, right), made = op.operands, op
    if isinstance(op.attributes, BatchMatMul):
        one = one_head(op)
        if one is None:
            return None
        made = one
    elif op.output.shape[1] == 1:  # a single row is no sequence
        return None
    if left.is_constant or not _rows(left) == _rows(op.output) > 1:
        return None
    inputs = images(left, None), right if right.is_constant else images(right, None)
    return _made(made, inputs, _image_shape(op.output.shape))


def _dense(op: Op, images: Images) -> Op | None:
    rows, depth = _rows(op.output), op.operand(1).shape[-1]
    if _rows(op.input) != rows or op.input.elements // rows % depth or not op.operand(1).is_constant:
        return None
    return _made(op, (images(op.input, None),), _image_shape(op.output.shape))


def _reduced(op: Op, images: Images) -> Op | None:
    """Return a reduction within rows, or over all rows of vectors."""
    shape, axes, keeps = op.input.shape, reduced_axes(op), op.attributes_as(Reducer).keep_dims
    axis = _axis(shape)
    image = _image_shape(shape)
    if axes == (axis,) and image[2] == 1:
        reduced = [1, 2]
        result: Shape = (1, 1, 1, shape[-1]) if keeps else (1, shape[-1])
        if not keeps and op.output.shape != result:
            return None
    else:
        between, last = set(range(axis + 1, len(shape) - 1)), len(shape) - 1
        if not keeps or axes[0] <= axis or not (between <= set(axes) or between.isdisjoint(axes)):
            return None
        reduced = [*([] if between.isdisjoint(axes) else [2]), *([3] if last in axes else [])]
        result = tuple(1 if i in reduced else dim for i, dim in enumerate(image))
    data = np.array(reduced, np.int32)
    constant = op.operand(1)
    if constant.values.tolist() != reduced:
        constant = replace(constant, shape=data.shape, data=data, index=-1)
    return _made(op, (images(op.input, image), constant), result)


def _pointwise(op: Op, images: Images) -> Op | None:
    """Return an operator that computes every row alike, its operands broadcast to a sequence."""
    rank, axis = len(op.output.shape), _axis(op.output.shape)
    whole = _image_shape(op.output.shape)
    if all(_as_long(t, op.output) if t in op.activations else t is None or t.elements == 1 for t in op.inputs):
        # all elements are independent: the columns of the first operand do for all operands
        whole = images(op.first_activation, None).shape
        return _made(op, tuple(images(t, whole) if t in op.activations else t for t in op.inputs), whole)
    inputs: list[Tensor | None] = []
    for tensor in op.inputs:
        if tensor is None or (tensor.is_constant and len(tensor.shape) < 2):
            inputs.append(tensor)
            continue
        full = (1,) * (rank - len(tensor.shape)) + tensor.shape
        between = full[axis + 1 : -1]
        if prod(between) != 1 and between != op.output.shape[axis + 1 : -1]:
            return None
        shape = _image_shape(full, axis)
        if not tensor.is_constant:
            inputs.append(images(tensor, shape))
        elif tensor.shape == shape:
            inputs.append(tensor)
        else:
            inputs.append(replace(tensor, shape=shape, data=tensor.values.reshape(shape), index=-1))
    return _made(op, tuple(inputs), whole)


def _as_long(tensor: Tensor | None, output: Tensor) -> bool:
    return tensor is not None and tensor.elements == output.elements


# --- which operators -----------------------------------------------------------------------------


def _regions(graph: Graph) -> Iterator[tuple[Op, ...]]:
    """Yield groups of operators that can work on images, connected through sequences, each in graph order."""
    root: dict[Op, Op] = {}
    first_of: dict[Tensor, Op] = {}

    def first(op: Op) -> Op:
        while root[op] is not op:
            op = root[op]
        return op

    for op in graph.ops:
        if _renames(op) or _on_images(op, _as_image) is not None:
            root[op] = op
            for tensor in (*op.activations, *op.outputs):
                root[first(first_of.setdefault(tensor, op))] = first(op)
    members: dict[Op, list[Op]] = {}
    for op in root:
        members.setdefault(first(op), []).append(op)
    return map(tuple, members.values())


def _as_image(tensor: Tensor, shape: Shape | None) -> Tensor:
    """Return a tensor in image shape, to ask rules about."""
    return replace(tensor, shape=shape or _image_shape(tensor.shape))


# --- the graph -----------------------------------------------------------------------------------


class _Writer(OnImages):
    """Builds the graph with images; one image may be read in several shapes."""

    def __init__(self, graph: Graph, chosen: set[Op]):
        super().__init__(graph, chosen)
        self.shaped: dict[tuple[Tensor, Shape], Tensor] = {}  # (tensor, shape) -> its reshaped image

    def add(self, op: Op) -> None:
        if _renames(op):
            self.images[op.output] = self._image(op.input, None, op)
            return
        made = _on_images(op, lambda tensor, shape: self._image(tensor, shape, op))
        assert made is not None, "it was chosen"
        if made.output is not op.output:
            self.images[op.output] = made.output
        same = made.kind == op.kind and made.inputs == op.inputs and made.outputs == op.outputs
        self.ops.append(op if same else made)

    def _image(self, tensor: Tensor, shape: Shape | None, reader: Op) -> Tensor:
        """Return the image for a tensor, in `shape` if one is given."""
        found = self.images.get(tensor)
        if found is None and tensor.is_image and tensor.shape[1] == _rows(tensor):
            found = tensor
        if found is None:
            found = self.images[tensor] = self.reshaped(tensor, _image_shape(tensor.shape), reader)
            self.named.add(tensor)
        if shape is None or found.shape == shape:
            return found
        if (tensor, shape) not in self.shaped:
            self.shaped[tensor, shape] = self.reshaped(found, shape, reader)
        return self.shaped[tensor, shape]
