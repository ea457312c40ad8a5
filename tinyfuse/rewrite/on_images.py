"""The base class of rewrites that compute operators on images; the rest of the graph keeps its tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from tinyfuse.ir import Graph, Op, Tensor


class OnImages(ABC):
    """Builds the graph in which the operators `chosen` work on images of rows."""

    def __init__(self, graph: Graph, chosen: set[Op]):
        self.graph, self.chosen = graph, chosen
        self.images: dict[Tensor, Tensor] = {}  # tensor of the file -> its image
        self.named: set[Tensor] = set()  # tensors that also exist in the file's shape
        self.ops: list[Op] = []

    def written(self) -> Graph:
        """Return the graph."""
        for op in self.graph.ops:
            if op in self.chosen:
                self.add(op)
            else:
                for tensor in op.activations:
                    self._name(tensor)
                self.ops.append(op)
        for tensor in self.graph.outputs:
            self._name(tensor)
        return replace(self.graph, ops=tuple(self.ops))

    @abstractmethod
    def add(self, op: Op) -> None:
        """Append the replacement of an operator of `chosen` to `ops`, and enter its output's image in `images`."""

    def reshaped(self, tensor: Tensor, shape: tuple[int, ...], reader: Op) -> Tensor:
        """Append a RESHAPE of the tensor to `shape` for `reader`, and return its output."""
        image = replace(tensor, shape=shape, name=f"{tensor.name} (rows)", index=-1)
        self.ops.append(Op("RESHAPE", (tensor,), (image,), index=reader.index))
        return image

    def _name(self, tensor: Tensor) -> None:
        """Make sure that the tensor also exists in the file's shape."""
        if tensor in self.images and tensor not in self.named:
            self.named.add(tensor)
            maker = self.graph.producer[tensor]
            self.ops.append(Op("RESHAPE", (self.images[tensor],), (tensor,), index=maker.index))
