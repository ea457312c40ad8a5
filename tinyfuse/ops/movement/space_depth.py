"""SPACE_TO_DEPTH and DEPTH_TO_SPACE: blocks of pixels become channels, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.movement import Movement, ends, one_dtype, ranks


@dataclass(frozen=True)
class Block:
    """Attributes of SPACE_TO_DEPTH and DEPTH_TO_SPACE: `size`, the number of rows and of columns of a block."""

    size: int = 0


def _bad_shape(op: Op) -> bool:
    """Tell whether the larger image is not the smaller one with a block for every pixel."""
    block = op.attributes_as(Block).size
    (n, h, w, c), other = op.output.shape, op.input.shape
    if op.kind == "SPACE_TO_DEPTH":
        (n, h, w, c), other = other, op.output.shape
    return (n, h, w, c * block * block) != (other[0], other[1] * block, other[2] * block, other[3])


class _SpaceDepth(Movement):
    rules = (
        ends(1),
        one_dtype(("int8", "float32")),
        ranks(4, 4),
        Rule("the output has rank 4", lambda op: op.output if len(op.output.shape) != 4 else None),
        Rule("the block size is from 1 to 32767", lambda op: not 1 <= op.attributes_as(Block).size <= 32767),
        Rule("blocks of pixels on one side are channels on the other", _bad_shape),
    )

    def attributes(self, options: Mapping[str, Any]) -> Block:
        return Block(options.get("block_size", 0))


class SpaceToDepthFamily(_SpaceDepth):
    """SPACE_TO_DEPTH: [N, H, W, C] -> [N, H / block, W / block, block * block * C]."""

    kind = "SPACE_TO_DEPTH"
    options_table = "SpaceToDepthOptions"
    summary = "blocks of pixels become channels"

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        block, (n, h, w, _) = op.attributes_as(Block).size, op.output.shape
        return (data.reshape(n, h, block, w, block, -1).transpose(0, 1, 3, 2, 4, 5),)


class DepthToSpaceFamily(_SpaceDepth):
    """DEPTH_TO_SPACE: [N, H, W, block * block * C] -> [N, H * block, W * block, C]."""

    kind = "DEPTH_TO_SPACE"
    options_table = "DepthToSpaceOptions"
    summary = "channels become blocks of pixels"

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        block, (n, h, w, _) = op.attributes_as(Block).size, op.input.shape
        return (data.reshape(n, h, w, block, block, -1).transpose(0, 1, 3, 2, 4, 5),)
