"""Operators to be measured that onnxruntime's arithmetic computes."""

from __future__ import annotations

import random
from dataclasses import replace

from cost_tensors import tensor

from tinyfuse.ir import Op
from tinyfuse.ops.core.binary import Binary, FloatBinary
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN
from tinyfuse.ops.elementwise.quantize import HalfEven
from tinyfuse.ops.pooling_reduce.row_macs import PartOfLayer
from tinyfuse.ops.pooling_reduce.table_softmax import table_of


def half_even(op: Op) -> Op:
    """Return the operator by onnxruntime's rule: a layer, a mean, a part of these, a QUANTIZE, an ADD or a MUL."""
    attributes = op.attributes
    if isinstance(attributes, PartOfLayer):
        return replace(op, attributes=PartOfLayer(half_even(attributes.layer)))
    if op.kind == "QUANTIZE":
        return replace(op, attributes=HalfEven())
    if isinstance(attributes, Binary):
        return replace(op, attributes=FloatBinary(attributes.activation))
    return replace(op, attributes=replace(attributes, rounding=FLOAT_HALF_EVEN))


def draw_table_softmax(rng: random.Random, kind: str) -> Op:
    shape = rng.choice([1, 1, 4, 9]), rng.choice([2, 3, 5, 10, 12, 20, 64])
    x = tensor(shape, rng.choice([0.05, 0.1, 0.25]))
    return Op(kind, (x, table_of("exps", x.scale, shape[1])), (tensor(shape, 1 / 256, -128),))
