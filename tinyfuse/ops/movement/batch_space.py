"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: every block-th row and column becomes an image of its own, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt, prod

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule, constant_numbers
from tinyfuse.ops.core.movement import ends, one_dtype, ranks


@dataclass(frozen=True)
class Blocks:
    """Arrangement of images [images, *dims, depth] in a batch [images * blocks, *counts, depth]. An image of the batch
    consists of every block-th row and column of one of the images, after `before` and `after` rows and columns were
    added around it. Fields have a value for rows and one for columns, or one for rows alone."""

    images: int
    dims: tuple[int, ...]
    depth: int
    block: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        """Dimensions of an image with the rows and columns around it."""
        return tuple(map(sum, zip(self.dims, self.before, self.after, strict=True)))

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(dim // block for dim, block in zip(self.padded, self.block, strict=True))

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch."""
        return self.images * prod(self.block), *self.counts, self.depth


def blocks_of(op: Op) -> Blocks:
    """Return the block shape and the padding or crops of SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND."""
    image = op.input if op.kind == "SPACE_TO_BATCH_ND" else op.output
    around = op.operand(2).values.tolist()
    before, after = (tuple(pair[i] for pair in around) for i in (0, 1))
    return Blocks(
        image.shape[0], image.shape[1:-1], image.shape[-1], tuple(op.operand(1).values.tolist()), before, after
    )


def _is_computed(op: Op) -> bool:
    return not all(operand.is_constant for operand in op.operands[1:])


def _splits(blocks: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    """Yields the block shapes that divide one image into `blocks` images."""
    if dimensions == 1:
        yield (blocks,)
        return
    for rows in range(1, isqrt(blocks) + 1):
        if blocks % rows == 0:
            yield rows, blocks // rows
            if rows != blocks // rows:
                yield blocks // rows, rows


def _fitting(op: Op) -> list[Blocks]:
    """Return block shapes and paddings to test an operator with computed operands: for each block shape, none,
    all and half of the padding in front."""
    image, batch = (op.input, op.output) if op.kind == "SPACE_TO_BATCH_ND" else (op.output, op.input)
    if len(image.shape) != len(batch.shape) or image.shape[-1] != batch.shape[-1] or batch.shape[0] % image.shape[0]:
        return []
    dims, counts = image.shape[1:-1], batch.shape[1:-1]
    found = []
    for block in _splits(batch.shape[0] // image.shape[0], len(dims)):
        more = [count * b - dim for count, b, dim in zip(counts, block, dims, strict=True)]
        for part in (0, 2, 1):
            before = tuple(n * part // 2 for n in more)
            after = tuple(n - b for n, b in zip(more, before, strict=True))
            blocks = Blocks(image.shape[0], dims, image.shape[-1], block, before, after)
            if min(more) >= 0 and _agrees(op, blocks):
                found.append(blocks)
    return found


def _agrees(op: Op, blocks: Blocks) -> bool:
    """Tell whether `blocks` agree with the constant operands; of constants before and after, only the sums count."""
    block, around = op.operand(1), op.operand(2)
    if block.is_constant and tuple(block.values.tolist()) != blocks.block:
        return False
    sums = tuple(map(sum, zip(blocks.before, blocks.after, strict=True)))
    return not around.is_constant or tuple(map(sum, around.values.tolist())) == sums


def _bad_block(op: Op) -> Tensor | None:
    block = op.operand(1)
    good = block.dtype == "int32" and block.shape == (len(op.input.shape) - 2,)
    return None if good and not (block.is_constant and (block.values < 1).any()) else block


def _bad_around(op: Op) -> Tensor | None:
    around = op.operand(2)
    good = around.dtype == "int32" and around.shape == (len(op.input.shape) - 2, 2)
    return None if good and not (around.is_constant and (around.values < 0).any()) else around


def _bad_shape(op: Op) -> Tensor | None:
    if len(op.output.shape) != len(op.input.shape):
        return op.output
    if _is_computed(op):
        return None if _fitting(op) else op.output
    blocks = blocks_of(op)
    batch = op.output if op.kind == "SPACE_TO_BATCH_ND" else op.input
    whole = all(dim % block == 0 for dim, block in zip(blocks.padded, blocks.block, strict=True))
    return None if whole and batch.shape == blocks.batch else op.output


#: converters that split a dilated convolution leave the batch dimension open
_DILATED = "convert the model with a batch of 1: its dilated convolutions stay in one piece"


def _rules(around: str) -> tuple[Rule, ...]:
    return (
        ends(3),
        replace(one_dtype(("int8", "float32")), hint=_DILATED),
        ranks(3, 4),
        Rule("the block shape is int32 from 1, one per dimension but first and last", _bad_block),
        Rule(f"the {around} are int32 pairs from 0, one per dimension of a block", _bad_around),
        Rule(f"block shape and {around} make the output's shape of the input's", _bad_shape),
    )  # fmt: skip


class _BatchSpace(OpFamily):
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND. The operands may be computed at run time
    (rewrite/computed_operands.py)."""

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        block, around, shape = constant_numbers(op, 1), op.optional(2), op.input.shape
        if block is None or min(block) < 1 or around is None or not around.is_constant:
            return None
        if around.shape != (len(block), 2) or len(shape) <= len(block):
            return None
        more = [int(n) for n in around.values.sum(axis=1, dtype=np.int64)]
        parts = list(zip(shape[1:], block, more, strict=False))
        rest = shape[1 + len(block) :]
        if self.kind == "SPACE_TO_BATCH_ND":
            return shape[0] * prod(block), *((dim + n) // b for dim, b, n in parts), *rest
        return shape[0] // prod(block), *(dim * b - n for dim, b, n in parts), *rest

    def computing(self, op: Op) -> Op | None:
        return replace(op, kind=op.kind.replace("_ND", "_AT")) if _is_computed(op) else None

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        operand = op.optional(index)
        if index == 0 or operand is None or operand.is_constant:
            return ()
        fitting = _fitting(op)
        # if both are computed, all values that are tried must have the same block shape
        found = [blocks for blocks in fitting if blocks.block == fitting[0].block or op.operand(3 - index).is_constant]
        values = (b.block if index == 1 else list(zip(b.before, b.after, strict=True)) for b in found)
        return tuple(np.array(value, np.int32) for value in values)


def _known(op: Op, inputs: tuple[Array | None, ...]) -> Blocks:
    """Blocks for the operands' values in a run."""
    operands = (replace(t, data=given(values)) for t, values in zip(op.operands[1:], inputs[1:], strict=True))
    return blocks_of(replace(op, inputs=(op.input, *operands)))


class SpaceToBatchFamily(_BatchSpace):
    """SPACE_TO_BATCH_ND. The padding is stored zeros, whatever the zero point: TFLM's kernel pads with a field that is
    never set, which is 0 in an arena of zeros. So the padding means zero only if an int8 input's zero point is 0."""

    kind = "SPACE_TO_BATCH_ND"
    summary = "every block-th row and column as an image of its own"
    rules = _rules("paddings")

    def warning(self, op: Op) -> str | None:
        padded = op.operand(2).is_constant and bool(op.operand(2).values.any())
        if not padded or op.input.dtype != "int8" or op.input.quant is None or not any(op.input.quant.zero_point):
            return None
        points = ", ".join(map(str, op.input.quant.zero_point))
        value = f"the stored value 0 stands around the image, and the zero point is {points}"
        return f"{value}: so TensorFlow Lite Micro computes it, and LiteRT otherwise; {_DILATED}"

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        b = _known(op, inputs)
        padded = np.pad(given(inputs[0]), ((0, 0), *zip(b.before, b.after, strict=True), (0, 0)))
        split = padded.reshape(b.images, *(n for pair in zip(b.counts, b.block, strict=True) for n in pair), b.depth)
        rank = len(b.dims)
        order = (*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank, 2), 2 * rank + 1)
        return (np.ascontiguousarray(split.transpose(order)).reshape(op.output.shape),)


class BatchToSpaceFamily(_BatchSpace):
    """BATCH_TO_SPACE_ND; cropped elements are dropped."""

    kind = "BATCH_TO_SPACE_ND"
    summary = "images of a batch as every block-th row and column of one"
    rules = _rules("crops")

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        b = _known(op, inputs)
        rank = len(b.dims)
        split = given(inputs[0]).reshape(*b.block, b.images, *b.counts, b.depth)
        order = (rank, *(d for pair in zip(range(rank + 1, 2 * rank + 1), range(rank), strict=True) for d in pair))
        whole = split.transpose(*order, 2 * rank + 1).reshape(b.images, *b.padded, b.depth)
        inside = (slice(first, first + dim) for first, dim in zip(b.before, b.dims, strict=True))
        return (np.ascontiguousarray(whole[(slice(None), *inside)]),)
