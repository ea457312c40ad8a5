"""What rewrites that compute operators on images share: the rest of the graph keeps the tensors that it had."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from tinyfuse.ir import Graph, Op, Tensor


class OnImages(ABC):
    """Makes the graph in which the operators `chosen` are on images."""

    def __init__(self, graph: Graph, chosen: set[Op]):
        self.graph, self.chosen = graph, chosen
        self.images: dict[Tensor, Tensor] = {}  # of a tensor of the file, what stands for it
        self.named: set[Tensor] = set()  # tensors that are there in the file's shape too
        self.ops: list[Op] = []

    def written(self) -> Graph:
        """The graph."""
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
        """Puts what computes one of `chosen` behind `ops`; `images` has what stands for its output."""

    def reshaped(self, tensor: Tensor, shape: tuple[int, ...], reader: Op) -> Tensor:
        """The tensor in another shape, for `reader`."""
        image = replace(tensor, shape=shape, name=f"{tensor.name} (rows)", index=-1)
        self.ops.append(Op("RESHAPE", (tensor,), (image,), index=reader.index))
        return image

    def _name(self, tensor: Tensor) -> None:
        """Sees to it that the tensor of the file is there, in its own shape."""
        if tensor in self.images and tensor not in self.named:
            self.named.add(tensor)
            maker = self.graph.producer[tensor]
            self.ops.append(Op("RESHAPE", (self.images[tensor],), (tensor,), index=maker.index))
