"""Writes a model file with some of a model's operators, and with the shapes and constants that were computed for the
graph.

An interpreter that cannot resize tensors, such as TFLM, can then run a model whose file leaves shapes open. An
interpreter that lacks some operators can run the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tinyfuse.frontend.file_around import FileAround
from tinyfuse.frontend.flatbuffer_table import Table, root
from tinyfuse.ir import Graph, Tensor


def graph_file(data: bytes, graph: Graph, gone: Collection[int]) -> bytes:
    """Return a model file made from the sound file `data`, which `graph` was read from.

    The operators at the indexes `gone` of the first subgraph are left out; shapes, constants, inputs and outputs are
    those of `graph`.
    """
    return _GraphFile(data, graph, gone).file()


def called_file(data: bytes, number: int) -> bytes:
    """The bytes of a model file like the sound file `data` whose first graph is subgraph `number`, in place of its own.
    The other graphs keep their numbers."""
    model, file = root(data), FileAround(data)
    graphs: list[Table] = model["subgraphs"]
    subgraphs = file.tables(file.kept([graphs[number], *graphs[1:]]))
    # metadata may describe the tensors of the first graph
    return file.finished(file.copied(model, subgraphs=subgraphs, metadata=None))


class _GraphFile(FileAround):
    def __init__(self, data: bytes, graph: Graph, gone: Collection[int]) -> None:
        super().__init__(data)
        self._graph, self._model = graph, root(data)
        self._first: Table = self._model["subgraphs"][0]
        operators: list[Table] = self._first["operators"]
        self._operators = [table for place, table in enumerate(operators) if place not in gone]
        self._known = {tensor.index: tensor for tensor in (*graph.inputs, *graph.outputs)}
        for op in graph.ops:
            if op.index >= 0:
                table = operators[op.index]
                self._known |= _of_file(table["inputs"], op.inputs) | _of_file(table["outputs"], op.outputs)
        self._constants: list[int] = []

    def file(self) -> bytes:
        tensors = [self._tensor(place, table) for place, table in enumerate(self._first["tensors"])]
        graph = self.copied(
            self._first,
            tensors=self.tables(tensors),
            inputs=self.vector([tensor.index for tensor in self._graph.inputs]),
            outputs=self.vector([tensor.index for tensor in self._graph.outputs]),
            operators=self.tables(self.kept(self._operators)),
        )
        others = self.kept(self._model["subgraphs"][1:])
        buffers = self.tables(self.kept(self._model["buffers"]) + self._constants)
        # metadata may name tensors or buffers that are gone
        changes = {"subgraphs": self.tables([graph, *others]), "buffers": buffers}
        return self.finished(self.copied(self._model, **changes, metadata=None))

    def _tensor(self, place: int, table: Table) -> int:
        tensor = self._known.get(place)
        if tensor is None or tensor.is_state:
            return self.kept([table])[0]
        shape = self.vector(tensor.shape)
        if tensor.data is None or len(self._model["buffers"][table["buffer"]]["data"]):
            return self.copied(table, shape=shape, shape_signature=None)
        content = self.data(np.ascontiguousarray(tensor.data).tobytes())
        self._constants.append(self.table("Buffer", data=content))
        number = len(self._model["buffers"]) + len(self._constants) - 1
        return self.copied(table, shape=shape, shape_signature=None, buffer=number)


def _of_file(places: np.ndarray, tensors: Sequence[Tensor | None]) -> dict[int, Tensor]:
    """Map indexes in the file to an operator's tensors, without constants that the reader made."""
    pairs = zip(places.tolist(), tensors, strict=False)
    return {place: tensor for place, tensor in pairs if place >= 0 and tensor is not None}
