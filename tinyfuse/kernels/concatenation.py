"""Our kernel of CONCATENATION (runtime_c/tinyfuse_concatenation.h)."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.rows import input_pointer
from tinyfuse.ops.base import Call, Constant, Context, Kernel, Site, Statement


class Concatenate(Kernel):
    """One call an input. By rows: along columns or channels."""

    name = "tinyfuse_deal_blocks"
    headers = ("tinyfuse_concatenation.h",)
    by_row, rings = True, True

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(
            Constant(f"input{i}", tensor.data.reshape(-1), "int8_t")
            for i, tensor in enumerate(op.inputs)
            if tensor.is_constant
        )

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        rank = len(op.output.shape)
        axis = op.attributes.axis % rank
        first = 0 if site.row is None else 2  # by rows, the blocks are those of one [W, C]
        item = ITEM_BYTES[op.output.dtype]
        stride = prod(op.output.shape[axis:]) * item
        calls, offset = [], 0
        for i, tensor in enumerate(op.inputs):
            block = prod(tensor.shape[axis:]) * item
            if site.inputs[i] is not None:
                source = input_pointer(site, i)
            else:
                source = site.constant(f"input{i}")
                if site.row is not None:
                    source = f"{source} + {site.row} * {tensor.elements // tensor.shape[1]}"
            target = f"{site.outputs[0].pointer} + {offset // item}" if offset else site.outputs[0].pointer
            calls.append(Call(self.name, (source, target, prod(tensor.shape[first:axis]), block, stride)))
            offset += block
        return tuple(calls)
