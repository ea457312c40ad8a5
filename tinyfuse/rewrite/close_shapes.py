"""Computes shapes that a file leaves open from the shapes of its inputs; part of rewrite/fold_constants.py.

before   %b = SPACE_TO_BATCH_ND(%in int8[1,24,24,3], [2, 2], ...) -> int8[1,14,14,3], batch open;
after    %b = SPACE_TO_BATCH_ND(%in int8[1,24,24,3], [2, 2], ...) -> int8[4,14,14,3].

A converter that doesn't know the batch writes 1 for every dimension that depends on it, and computes shapes when the
model runs (SHAPE, PACK, RESHAPE). Interpreters that resize tensors, such as LiteRT, find the true shapes. So does this
rewrite, for the batch of the inputs.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tinyfuse.ir import ITEM_BYTES, MAX_TENSOR_BYTES, Op, Tensor
from tinyfuse.ops import FAMILIES

#: hint for a shape that the file leaves open and that can't be computed
FIXED_BATCH = "convert the model with a batch of 1: keras.Input(batch_shape=(1, ...)), or a fixed shape when exporting"


def closed(op: Op) -> Op:
    """Return the operator with computed output shapes, and with the constants that the reader left out for lack of a
    shape.

    Return the operator itself if the file has all of that. An impossible shape stays as it was: the check reports it.
    """
    family = FAMILIES.get(op.kind)
    if family is None or not any(output.open_axes for output in op.outputs) or not op.inputs or op.inputs[0] is None:
        return op
    outputs = tuple(_closed(op, output) if output.open_axes else output for output in op.outputs)
    inputs = op.inputs
    if family.puts_constants:
        known = family.instead(replace(op, outputs=tuple(replace(output, open_axes=()) for output in outputs)))
        inputs = tuple(known.get(i, tensor) for i, tensor in enumerate(op.inputs))
    return op if (inputs, outputs) == (op.inputs, op.outputs) else replace(op, inputs=inputs, outputs=outputs)


def _closed(op: Op, output: Tensor) -> Tensor:
    found = FAMILIES[op.kind].closed_shape(op, output)
    shape = output.shape if found is None else tuple(found)
    sound = all(dim > 0 for dim in shape) and prod(shape) * ITEM_BYTES.get(output.dtype, 1) <= MAX_TENSOR_BYTES
    return replace(output, shape=shape) if sound and shape != output.shape else output
