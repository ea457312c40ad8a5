"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: every block-th row and column becomes an image of its own, and back."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.base import OpFamily, Rule
from tinyfuse.ops.movement import FIXED_SHAPES, constant_vector, ends, one_dtype, ranks


@dataclass(frozen=True)
class Blocks:
    """How images [images, *dims, depth] lie in a batch [images * blocks, *counts, depth]: image k of the batch has
    every block-th row and column of the image with `before` and `after` rows and columns around it. One value a
    dimension: rows and columns, or rows alone."""

    images: int
    dims: tuple[int, ...]
    depth: int
    block: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        """The dimensions with what is around them."""
        return tuple(map(sum, zip(self.dims, self.before, self.after, strict=True)))

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(dim // block for dim, block in zip(self.padded, self.block, strict=True))

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch."""
        return self.images * prod(self.block), *self.counts, self.depth


def blocks_of(op: Op) -> Blocks:
    """Of either operator."""
    image = op.input if op.kind == "SPACE_TO_BATCH_ND" else op.output
    around = op.operand(2).values.tolist()
    before, after = (tuple(pair[i] for pair in around) for i in (0, 1))
    return Blocks(
        image.shape[0], image.shape[1:-1], image.shape[-1], tuple(op.operand(1).values.tolist()), before, after
    )


def _bad_block(op: Op) -> Tensor | None:
    block = op.operand(1)
    good = constant_vector(block, len(op.input.shape) - 2) and (block.values > 0).all()
    return None if good else block


def _bad_around(op: Op) -> Tensor | None:
    around = op.operand(2)
    good = around.is_constant and around.dtype == "int32" and around.shape == (len(op.input.shape) - 2, 2)
    return None if good and (around.values >= 0).all() else around


def _bad_shape(op: Op) -> Tensor | None:
    if len(op.output.shape) != len(op.input.shape):
        return op.output
    blocks = blocks_of(op)
    batch = op.output if op.kind == "SPACE_TO_BATCH_ND" else op.input
    whole = all(dim % block == 0 for dim, block in zip(blocks.padded, blocks.block, strict=True))
    return None if whole and batch.shape == blocks.batch else op.output


def _rules(around: str) -> tuple[Rule, ...]:
    return (
        ends(3),
        one_dtype(("int8", "float32")),
        ranks(3, 4),
        Rule("the block shape is constant int32 from 1, one a dimension but first and last", _bad_block, FIXED_SHAPES),
        Rule(f"the {around} are constant int32 pairs from 0, one a dimension of a block", _bad_around, FIXED_SHAPES),
        Rule(f"block shape and {around} make the output's shape of the input's", _bad_shape),
    )  # fmt: skip


class SpaceToBatchOperator(OpFamily):
    """The padding is stored zeros, whatever the zero point: TFLM's kernel pads with a field that nobody sets, which is
    0 in an arena of zeros. So only where an int8 input's zero point is 0 does it mean zero."""

    kind = "SPACE_TO_BATCH_ND"
    summary = "every block-th row and column as an image of its own"
    rules = _rules("paddings")

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        b = blocks_of(op)
        padded = np.pad(given(inputs[0]), ((0, 0), *zip(b.before, b.after, strict=True), (0, 0)))
        split = padded.reshape(b.images, *(n for pair in zip(b.counts, b.block, strict=True) for n in pair), b.depth)
        rank = len(b.dims)
        order = (*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank, 2), 2 * rank + 1)
        return (np.ascontiguousarray(split.transpose(order)).reshape(op.output.shape),)


class BatchToSpaceOperator(OpFamily):
    """What is cropped is left out."""

    kind = "BATCH_TO_SPACE_ND"
    summary = "images of a batch as every block-th row and column of one"
    rules = _rules("crops")

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        b = blocks_of(op)
        rank = len(b.dims)
        split = given(inputs[0]).reshape(*b.block, b.images, *b.counts, b.depth)
        order = (rank, *(d for pair in zip(range(rank + 1, 2 * rank + 1), range(rank), strict=True) for d in pair))
        whole = split.transpose(*order, 2 * rank + 1).reshape(b.images, *b.padded, b.depth)
        inside = (slice(first, first + dim) for first, dim in zip(b.before, b.dims, strict=True))
        return (np.ascontiguousarray(whole[(slice(None), *inside)]),)
