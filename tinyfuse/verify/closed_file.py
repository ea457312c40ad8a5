"""Makes a copy of a model file with all shapes closed, because TFLM neither resizes tensors nor computes shapes.

LiteRT does both, so it runs the original file, and thereby confirms the shapes that were found.
"""

from __future__ import annotations

from tinyfuse.frontend.graph_file import graph_file
from tinyfuse.ir import Graph
from tinyfuse.rewrite.fold_constants import fold_constants


def closed_file(data: bytes, graph: Graph) -> bytes:
    """The file `data`, from which `graph` was read, with known shapes and without the operators that compute them. The
    same bytes if no shape in the file is open."""
    graph = graph if graph.layouts is None else graph.layouts.file
    if not any(tensor.open_axes for op in graph.ops for tensor in op.outputs):
        return data
    folded = fold_constants(graph)
    gone = {op.index for op in graph.ops} - {op.index for op in folded.ops}
    # an output that turned out to be constant has no operator in the file
    return data if folded is graph or any(op.index < 0 for op in folded.ops) else graph_file(data, folded, gone)
