"""FUSED_LOOP: several elementwise operators in one loop, with the intermediate values in registers. Only
schedule/variants/fuse_elementwise.py makes it.

The result equals that of the operators one after the other: each intermediate result is rounded and clamped as if it
were stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow


@dataclass(frozen=True)
class Part:
    """One operator of a fused loop.

    op       the operator before fusion, with its tensors' quantizations and shapes
    sources  source of each of its inputs: numbers below the count of the fused operator's inputs are these inputs;
             larger numbers are the results of earlier parts
    """

    op: Op
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Merged:
    """Attributes of FUSED_LOOP. kinds: kinds of the operators, in an order of execution; parts: the operators. The last
    one's result is the output."""

    kinds: tuple[str, ...]
    parts: tuple[Part, ...] = field(repr=False)


def merged(ops: tuple[Op, ...]) -> Op:
    """Operator FUSED_LOOP that replaces these operators. Outputs of all but the last one are read only by later ones.
    Its inputs are the tensors that they read from outside: first computed ones, then constants."""
    made = {op.output: number for number, op in enumerate(ops)}
    read = dict.fromkeys(tensor for op in ops for tensor in op.operands if tensor not in made)
    inputs = (*(t for t in read if not t.is_constant), *(t for t in read if t.is_constant))
    places = {tensor: i for i, tensor in enumerate(inputs)}
    places |= {tensor: len(inputs) + number for tensor, number in made.items()}
    parts = tuple(Part(op, tuple(places[tensor] for tensor in op.operands)) for op in ops)
    last = ops[-1]
    return Op(FusedLoopFamily.kind, inputs, last.outputs, Merged(tuple(op.kind for op in ops), parts), last.index)


def reach(op: Op, tensor: Tensor) -> str:
    """How an input of a fused operator broadcasts to the output: "whole", no broadcast; "channels", one element per
    index of the last dimension; "single", one element for all; "", in another way."""
    output = op.output
    if tensor.elements == output.elements:
        return "whole"
    if tensor.elements == 1:
        return "single"
    along = output.shape[-1:] == tensor.shape[-1:] and tensor.elements == tensor.shape[-1]
    return "channels" if along else ""


class FusedLoopFamily(OpFamily):
    """FUSED_LOOP: several elementwise operators in one loop. Each input has the output's shape, or one value per
    channel, or a single value. It can run by rows and in place."""

    kind = "FUSED_LOOP"
    summary = "elementwise operators in one loop"
    in_files = False

    def __init__(self, compute: Callable[..., tuple[Array, ...]]) -> None:
        """`compute`: function from an operator and its inputs to its outputs, the reference of its family."""
        self._compute = compute

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        values = list(inputs)
        for part in op.attributes_as(Merged).parts:
            values += self._compute(part.op, *(values[source] for source in part.sources))
        result = values[-1]
        assert result is not None, "a part's result"
        return (result.reshape(op.output.shape),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if not (op.output.is_image and op.operand(index).is_image):
            return None
        return SAME_ROW if op.operand(index).shape[1] == op.output.shape[1] else RowWindow(1, stride=0)
