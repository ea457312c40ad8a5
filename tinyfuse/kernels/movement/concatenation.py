"""Kernels of CONCATENATION and PACK (runtime_c/tinyfuse_concatenation.h)."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.rows import input_pointer
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import byte_counts
from tinyfuse.kernels.movement.scatter_gather import IndexKernel
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.movement.pack import Pack


class BlockCopies(IndexKernel):
    """Kernel of CONCATENATION and PACK: one call per input copies its blocks of contiguous bytes into the output.

    `by_row`: one row of a CONCATENATION along columns or channels. A block of PACK has the elements after the new
    dimension.
    """

    name = "tinyfuse_deal_blocks"
    headers = ("tinyfuse_concatenation.h",)
    counts = of_calls(byte_counts)

    def __init__(self, by_row: bool):
        self.by_row = self.rings = by_row

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        first = 0 if site.row is None else 2  # a row is [W, C]
        item, attributes = ITEM_BYTES[op.output.dtype], op.attributes
        assert isinstance(attributes, Concatenation | Pack)
        axis = attributes.axis % len(op.output.shape)
        # (number of blocks of an input, bytes of a block)
        dealt = [(prod(tensor.shape[first:axis]), item * prod(tensor.shape[axis:])) for tensor in op.operands]
        stride = sum(block for _, block in dealt)
        calls, offset = [], 0
        for i, (tensor, (count, block)) in enumerate(zip(op.operands, dealt, strict=True)):
            if site.inputs[i] is not None:
                source = input_pointer(site, i)
            else:
                source = site.constant(f"input{i}")
                if site.row is not None:
                    source = f"{source} + {site.row} * {tensor.bytes // tensor.shape[1]}"
            target = f"{site.output.pointer} + {offset // item}" if offset else site.output.pointer
            calls.append(Call(self.name, (source, target, count, block, stride)))
            offset += block
        return tuple(calls)
