"""Layers run again for late readers, so that their result need not be kept in between (rematerialization).

before   %b = CONV_2D(%a);  %c = MAX_POOL_2D(%b);  ...;  %z = CONCATENATION(%y, %b)
after    %b = CONV_2D(%a);  %c = MAX_POOL_2D(%b);  ...;  %b2 = CONV_2D(%a);  %z = CONCATENATION(%y, %b2)

The layers' input %a is kept instead of %b. That saves RAM if it takes fewer bytes, as the image before a U-Net's first
level does, or if it is alive at the late reader anyway. Several layers may run again together, from the tensor that
takes the fewest bytes. schedule/improve/rematerialize.py tries which candidates give a plan of less RAM. Source: Chen
et al., "Training Deep Nets with Sublinear Memory Cost", 2016, for training; here for inference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyfuse import limits
from tinyfuse.ir import Graph, Op, Saving, Tensor
from tinyfuse.limits import Reached
from tinyfuse.ops import FAMILIES
from tinyfuse.plan.places import is_alias
from tinyfuse.rewrite.recompute import run_again


@dataclass(frozen=True)
class Rematerialization:
    """`operators` make `tensor` again, in their order, in front of the first of the `readers`, which read that instead.

    spared  bytes of the tensor, minus the bytes that are kept to make it again
    macs    additional multiply-accumulates
    """

    tensor: Tensor
    readers: tuple[Op, ...]
    operators: tuple[Op, ...]
    spared: int
    macs: int


def rematerializations(graph: Graph, most_macs: int, reached: Reached | None = None) -> list[Rematerialization]:
    """Return the candidates that cost at most `most_macs` multiply-accumulates and reduce the bytes kept, largest
    saving first.

    Limits of the search that were reached are noted in `reached`.
    """
    position = {op: number for number, op in enumerate(graph.ops)}
    found = []
    for op in graph.ops:
        if not _can_run_again(op) or op.output in graph.outputs:
            continue
        readers = sorted(graph.consumers.get(op.output, ()), key=position.__getitem__)
        for first in range(1, len(readers)):
            late = tuple(readers[first:])
            if position[late[0]] - position[readers[first - 1]] < 2 or any(map(is_alias, late)):
                continue  # nothing runs in between, or the tensor is an alias of another
            made = [
                Rematerialization(op.output, late, operators, op.output.bytes - kept, macs)
                for operators, kept, macs in _cuts(graph, op, position, position[late[0]], reached)
                if kept < op.output.bytes and 0 < macs <= most_macs
            ]
            found += sorted(made, key=lambda each: (-each.spared, each.macs))[:1]
    return sorted(found, key=lambda each: (-each.spared, each.macs))


def rematerialize(graph: Graph, again: Rematerialization) -> Graph:
    """Give the late readers a copy of the tensor, made right in front of the first of them."""
    first = graph.ops.index(again.readers[0])
    copies = run_again(again.operators, first)
    late = [op.reading({again.tensor: copies[-1].output}) if op in again.readers else op for op in graph.ops[first:]]
    ops = [*graph.ops[:first], *copies, *late]
    saving = Saving("rematerialize", again.operators, -again.macs, 0)
    return replace(graph, ops=tuple(ops), savings=(*graph.savings, saving))


def _cuts(
    graph: Graph, op: Op, position: dict[Op, int], late: int, reached: Reached | None
) -> Iterator[tuple[tuple[Op, ...], int, int]]:
    """Yield (operators, bytes kept until `late` for them, their multiply-accumulates) for growing chains that make
    `op`'s result.

    The first chain is `op` alone; each next one adds the maker of the kept tensor that was made last.
    """

    def kept(tensor: Tensor) -> bool:
        """Tell whether a tensor would be kept only for this purpose; the caller's inputs and outputs exist anyway."""
        last = max(position[reader] for reader in graph.consumers[tensor])
        return last < late and tensor not in graph.outputs

    found = {op}
    while True:
        sources = {tensor for each in found for tensor in each.activations} - {each.output for each in found}
        extra = [tensor for tensor in sources if kept(tensor)]
        operators = tuple(sorted(found, key=position.__getitem__))
        yield operators, sum(tensor.bytes for tensor in extra), sum(FAMILIES[o.kind].macs(o) for o in operators)
        makers = [graph.producer[tensor] for tensor in extra if tensor in graph.producer]
        last = max(makers, key=position.__getitem__, default=None)
        if last is None or not _can_run_again(last):
            return
        if len(found) == limits.REMATERIALIZED_TOGETHER.most:
            if reached is not None:
                reached.note(limits.REMATERIALIZED_TOGETHER)
            return
        found.add(last)


def _can_run_again(op: Op) -> bool:
    """Tell whether the operator makes one tensor from its inputs alone."""
    family = FAMILIES[op.kind]
    may_end = family.awaits(op) or family.divides or family.source
    return len(op.outputs) == 1 and not (op.states or is_alias(op) or family.partial or may_end or not family.runs_here)
