"""Memory that tensors share because operators only alias it (RESHAPE, views)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES


def is_alias(op: Op) -> bool:
    """Tells whether nothing runs for `op`, because the bytes of its outputs exist already."""
    return op.view or FAMILIES[op.kind].alias


def _is_fixed(tensor: Tensor) -> bool:
    """Tells whether a tensor lies outside the arena: in flash, or among the states."""
    return tensor.is_constant or tensor.is_state


class Place(NamedTuple):
    """Position of a tensor: `offset` bytes into `root`, a tensor that lies in no other."""

    root: Tensor
    offset: int


class Places:
    """Positions of tensors inside others, as given by the aliasing operators added so far. A tensor that none of them
    names is its own root."""

    def __init__(self, ops: Iterable[Op] = ()):
        self._parents: dict[Tensor, Place] = {}
        for op in ops:
            self.add(op)

    def of(self, tensor: Tensor) -> Place:
        if tensor not in self._parents:  # the common case, first
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
        """Tells for each part of `op` (OpFamily.parts) whether it can lie in its whole. If all can, `op` may be added.

        A part that is cut off lies in its source, which the same run must compute. A concatenated part must own its
        bytes: it is computed, covers its whole root, and is concatenated only once.
        """
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
        """Adds an aliasing operator, so that its parts lie in their wholes. Its inputs' makers must be added before."""
        for part in FAMILIES[op.kind].parts(op):
            inner, outer = self.of(part.part), self.of(part.whole)
            if inner.root is outer.root:
                raise InternalFault("the places of views", f"{op}: {part.part} has a place already")
            self._parents[inner.root] = Place(outer.root, outer.offset + part.offset - inner.offset)

    def lie_in(self, part: Tensor, whole: Tensor) -> None:
        """Places a root at the start of another root, whose bytes it overwrites."""
        self._parents[part] = Place(whole, 0)
