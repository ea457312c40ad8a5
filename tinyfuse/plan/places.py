"""Which tensors lie inside others: what operators that only name bytes anew (RESHAPE, views) come to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES


def is_alias(op: Op) -> bool:
    """Whether nothing runs for `op`: of every tensor that it makes the bytes are there already."""
    return op.view or FAMILIES[op.kind].alias


def _is_fixed(tensor: Tensor) -> bool:
    """Whether a tensor has memory of its own: in flash, or among the states."""
    return tensor.is_constant or tensor.is_state


class Place(NamedTuple):
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
        if tensor not in self._parents:  # mostly
            return Place(tensor, 0)
        root, offset = tensor, 0
        while root in self._parents:
            parent = self._parents[root]
            root, offset = parent.root, offset + parent.offset
        found = self._parents[tensor] = Place(root, offset)
        return found

    def root(self, tensor: Tensor) -> Tensor:
        return self.of(tensor).root if tensor in self._parents else tensor

    def free(self, op: Op) -> tuple[bool, ...]:
        """Which of the parts of `op` (Operator.parts) can lie in their whole: where all can, `op` may be
        added. What is cut off lies where it was, if its source is computed in the same run. What is joined
        must own its bytes: it is computed, covers all that its root has, and is joined once."""
        found, taken = [], set()
        for part in FAMILIES[op.kind].parts(op):
            root, free = self.root(part.part), not (_is_fixed(part.part) or _is_fixed(part.whole))
            if part.part not in op.outputs:
                free = free and root.bytes == part.part.bytes and root not in taken
                if free:
                    taken.add(root)
            found.append(free)
        return tuple(found)

    def add(self, op: Op) -> None:
        """The tensors of `op` lie in each other from now on. It comes after the operators that make its
        inputs, in the order of the graph."""
        for part in FAMILIES[op.kind].parts(op):
            inner, outer = self.of(part.part), self.of(part.whole)
            if inner.root is outer.root:
                raise InternalFault("the places of views", f"{op}: {part.part} has a place already")
            self._parents[inner.root] = Place(outer.root, outer.offset + part.offset - inner.offset)

    def lie_in(self, part: Tensor, whole: Tensor) -> None:
        """From now on a root lies at the start of another one, whose bytes it overwrites."""
        self._parents[part] = Place(whole, 0)
