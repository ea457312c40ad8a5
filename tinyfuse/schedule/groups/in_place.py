"""Places the planes (channels-first images) that a group writes over the planes that it reads.

A row has one line in each plane, so one tensor cannot start slightly below the other: the first lines of a plane would
overwrite the last ones of the plane before. But if planes have equal size, line y of the output may overwrite line y of
the input in every plane once that row is used up. Then both tensors start at the same offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.plan.liveness import BEFORE, Liveness
from tinyfuse.plan.places import Places
from tinyfuse.plan.rows import Stream


def may_lie_over(source: Tensor, output: Tensor, first: bool, last: bool) -> bool:
    """Tells whether two tensors have planes of equal size, and sharing one place does not raise the bytes alive.

    first  nothing is alive before the group but its inputs
    last   nothing is alive after it but its outputs
    """
    planes = source.planes, output.planes
    sizes = [(tensor.dtype, tensor.shape[1], tensor.shape[-1]) for tensor in (source, output) if tensor.planes > 1]
    if len(sizes) < 2 or sizes[0] != sizes[1]:
        return False
    return planes[0] == planes[1] or (first if planes[0] < planes[1] else last)


def share_places(
    graph: Graph, partition: Sequence[Sequence[Op]], places: Places, streams: Iterable[tuple[int, Stream]]
) -> None:
    """Places outputs of groups over inputs that end there. `streams` are (group number, loop)."""
    for index, stream in streams:
        pair = _pair(graph, partition, places, index, stream)
        if pair is not None:
            whole, part = pair
            places.lie_in(part, whole)


def has_planes_on_both_sides(ops: Sequence[Op]) -> bool:
    """Tells whether a group reads a tensor with channels first (`Tensor.planes`) and also writes one."""
    return any(t.planes > 1 for op in ops for t in op.activations) and any(op.output.planes > 1 for op in ops)


def _pair(
    graph: Graph, partition: Sequence[Sequence[Op]], places: Places, index: int, stream: Stream
) -> tuple[Tensor, Tensor] | None:
    """Finds an input and an output of a group whose roots may share one place: (larger root, smaller root); None
    without such a pair."""
    live, ops = Liveness(graph, partition, places), partition[index]
    made = [tensor for op in ops for tensor in op.outputs]
    read = [tensor for tensor in dict.fromkeys(t for op in ops for t in op.activations) if tensor not in made]
    for source in read:
        root = places.root(source)
        alone = root.bytes == source.bytes and [t for t in read if places.root(t) is root] == [source]
        if source.planes == 1 or not alone or live.last(root) != index:
            continue
        first = live.first(root) == BEFORE and index == 0
        for output in (tensor for tensor in made if tensor.planes > 1 and places.root(tensor) is tensor):
            fits = may_lie_over(source, output, first, index == len(partition) - 1)
            if fits and live.first(output) == index and stream.in_place(source, output):
                return (root, output) if root.bytes >= output.bytes else (output, root)
    return None
