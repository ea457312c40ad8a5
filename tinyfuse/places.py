"""Which tensors lie inside others: what operators that only name bytes anew (RESHAPE, views) come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES


def is_alias(op: Op) -> bool:
    """Whether nothing runs for `op`: of every tensor that it makes the bytes are there already."""
    return op.view or FAMILIES[op.kind].alias


@dataclass(frozen=True)
class Place:
    """A tensor's bytes are those of `root` from byte `offset` on; the root lies in no other tensor."""

    root: Tensor
    offset: int


class Places:
    """Where every tensor lies, as the operators that were added say; a tensor that none of them names is
    its own root."""

    def __init__(self, ops: Iterable[Op] = ()):
        self._parents: dict[Tensor, Place] = {}
        for op in ops:
            self.add(op)

    def of(self, tensor: Tensor) -> Place:
        root, offset = tensor, 0
        while root in self._parents:
            parent = self._parents[root]
            root, offset = parent.root, offset + parent.offset
        if root is not tensor:
            self._parents[tensor] = Place(root, offset)
        return Place(root, offset)

    def root(self, tensor: Tensor) -> Tensor:
        return self.of(tensor).root

    def allows(self, op: Op) -> bool:
        """Whether `op` may be added: its parts have one place each. What is cut off lies where it was, so
        its source must be computed in the same run. What is joined must own its bytes: each part is
        computed, covers all that its own root has, and is joined once."""
        parts = FAMILIES[op.kind].parts(op)
        if not parts or any(tensor.is_constant or tensor.is_state for part in parts for tensor in (part.part, part.whole)):
            return False
        joined = [part.part for part in parts if part.part not in op.outputs]
        places = [self.of(tensor) for tensor in joined]
        own = all(place.root.bytes == tensor.bytes for tensor, place in zip(joined, places, strict=True))
        return own and len({place.root for place in places}) == len(joined)

    def add(self, op: Op) -> None:
        """The tensors of `op` lie in each other from now on. It comes behind the operators that make its
        inputs, in the order of the graph."""
        for part in FAMILIES[op.kind].parts(op):
            inner, outer = self.of(part.part), self.of(part.whole)
            assert inner.root is not outer.root, f"{op}: {part.part} has a place already"
            self._parents[inner.root] = Place(outer.root, outer.offset + part.offset - inner.offset)
