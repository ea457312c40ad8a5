"""A convolution of every block-th row and column becomes a dilated one.

before   %b = SPACE_TO_BATCH_ND(%in, [2, 2], paddings);  %c = CONV_2D(%b, ...)
         %out = BATCH_TO_SPACE_ND(%c, [2, 2], crops)
after    %out = CONV_2D(%in, ...) dilation=(2, 2) padding=(top, bottom, left, right)

Older converters write dilated convolutions in this form. A convolution over one dimension is between reshapes:

before   %b = SPACE_TO_BATCH_ND(%in, [2], ...);  %i = RESHAPE(%b);  %c = CONV_2D(%i, ...);  %o = RESHAPE(%c)
         %out = BATCH_TO_SPACE_ND(%o, [2], ...)
after    %i = RESHAPE(%in);  %o = CONV_2D(%i, ...) dilation=(2, 1) padding=...;  %out = RESHAPE(%o)

Applied only if nothing else reads the tensors in between, if both block operators keep an int8 quantization, and if the
zeros that SPACE_TO_BATCH_ND pads with have no effect. A convolution's own padding adds nothing to its sums. Padded
zeros add nothing either if they are int8 with zero point 0, or float32 with finite weights: the products are 0 or -0,
and a sum that begins with 0 is never -0. Otherwise, no window may reach into the padding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Conv2D, padded_dims
from tinyfuse.ops.movement.batch_space import Blocks, blocks_of


@dataclass(frozen=True)
class _Chain:
    """Operators from SPACE_TO_BATCH_ND to BATCH_TO_SPACE_ND: the convolution and the reshapes around it, if any."""

    split: Op
    before: Op | None
    conv: Op
    after: Op | None
    join: Op

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(op for op in (self.split, self.before, self.conv, self.after, self.join) if op is not None)


def dilate(graph: Graph) -> Graph:
    """Replace convolutions of a batch of blocks by dilated convolutions."""
    instead: dict[Op, tuple[Op, ...]] = {}
    for op in graph.ops:
        chain = _chain(graph, op) if op.kind == "SPACE_TO_BATCH_ND" else None
        dilated = None if chain is None else _dilated(chain)
        if chain is not None and dilated is not None:
            # in the place of the last operator: its operands besides the data may be made in between
            instead |= {**dict.fromkeys(chain.ops, ()), chain.join: dilated}
    if not instead:
        return graph
    return replace(graph, ops=tuple(new for op in graph.ops for new in instead.get(op, (op,))))


def _chain(graph: Graph, split: Op) -> _Chain | None:
    before, conv = _through_alias(graph, _reader(graph, split.output))
    if conv is None or not FAMILIES[conv.kind].convolution:
        return None
    after, join = _through_alias(graph, _reader(graph, conv.output))
    if join is None or join.kind != "BATCH_TO_SPACE_ND" or (before is None) != (after is None):
        return None
    return _Chain(split, before, conv, after, join)


def _reader(graph: Graph, tensor: Tensor) -> Op | None:
    """Return the only reader of a tensor if it reads the tensor as input 0; else None."""
    readers = () if tensor in graph.outputs else graph.consumers.get(tensor, ())
    if len(readers) != 1 or [i for i, t in enumerate(readers[0].inputs) if t is tensor] != [0]:
        return None
    return readers[0]


def _through_alias(graph: Graph, op: Op | None) -> tuple[Op | None, Op | None]:
    """Return (`op` if it only reshapes, else None; the first operator from `op` on that computes)."""
    if op is None or not FAMILIES[op.kind].alias:
        return None, op
    return op, _reader(graph, op.output)


# --- geometry --------------------------------------------------------------------------------


def _dilated(chain: _Chain) -> tuple[Op, ...] | None:
    """Return the dilated convolution and its reshapes; None if equality isn't proven."""
    source, result, conv = chain.split.input, chain.join.output, chain.conv
    split, join, a = blocks_of(chain.split), blocks_of(chain.join), conv.attributes_as(Conv2D)
    if source.dtype == "int8" and (source.quant, result.quant) != (conv.input.quant, conv.output.quant):
        return None
    axes = _axes(chain, split)
    if axes is None or split.block != join.block or split.images != join.images or a.stride != (1, 1):
        return None
    padding, dilation, dims, out_dims = [(0, 0), (0, 0)], list(a.dilation), [1, 1], [1, 1]
    for axis, (kernel, (_, own)) in enumerate(zip(conv.operand(1).shape[1:3], padded_dims(conv), strict=True)):
        zeros, cropped = (0, 0), 0
        if axis in axes:
            i = axes.index(axis)
            zeros, cropped = (split.before[i], split.after[i]), join.before[i]
            dims[axis], out_dims[axis] = split.dims[i], join.dims[i]
            dilation[axis] *= split.block[i]
            own *= split.block[i]
        before = zeros[0] + own - cropped
        after = out_dims[axis] + (kernel - 1) * dilation[axis] - dims[axis] - before
        reads_zeros = any(zeros) and (before or after)
        if before < 0 or after < 0 or (reads_zeros and not _zeros_are_nothing(conv)):
            return None
        padding[axis] = before, after
    attributes = replace(a, padding=(*padding[0], *padding[1]), dilation=(dilation[0], dilation[1]))
    image, convolved = (source, result) if chain.before is None else _reshaped(chain, dims, out_dims)
    new = replace(conv, inputs=(image, *conv.inputs[1:]), outputs=(convolved,), attributes=attributes)
    if chain.before is None:
        return (new,)
    return Op("RESHAPE", (source,), (image,)), new, Op("RESHAPE", (convolved,), (result,))


def _zeros_are_nothing(conv: Op) -> bool:
    """Tell whether zeros in the input add nothing to a convolution's sums."""
    if conv.input.dtype == "float32":
        return bool(np.isfinite(conv.operand(1).values).all())
    return conv.input.zero_point == 0


def _axes(chain: _Chain, split: Blocks) -> tuple[int, ...] | None:
    """Return the image axis (rows or columns) of the convolution that each block axis is.

    Return None if the reshapes do more than add a dimension of size 1 beside the axis and remove it again.
    """
    if chain.before is None or chain.after is None:
        return (0, 1) if len(split.dims) == 2 else None
    batch, count, depth = chain.split.output.shape if len(split.dims) == 1 else (0, 0, 0)
    shapes = chain.conv.input.shape, chain.conv.output.shape
    joined = chain.join.input.shape
    for axis in (0, 1):
        images = [(batch, *((n, 1) if axis == 0 else (1, n)), c) for n, c in ((count, depth), joined[1:])]
        if shapes == tuple(images):
            return (axis,)
    return None


def _reshaped(chain: _Chain, dims: list[int], out_dims: list[int]) -> tuple[Tensor, Tensor]:
    """Return the convolution's input and output as images."""
    source, result = chain.split.input, chain.join.output
    image = Tensor(f"{source.name} (image)", (source.shape[0], *dims, source.shape[-1]), source.dtype, source.quant)
    convolved = (result.shape[0], *out_dims, result.shape[-1])
    return image, Tensor(f"{result.name} (image)", convolved, result.dtype, result.quant)
