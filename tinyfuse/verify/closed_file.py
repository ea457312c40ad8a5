"""The file that TFLM runs in a model's place where shapes are open: it resizes no tensor, and computes none.

LiteRT does both, so it runs the file as it is, and with it is a witness of the shapes that were found.
"""

from __future__ import annotations

from tinyfuse.frontend.graph_file import graph_file
from tinyfuse.ir import Graph
from tinyfuse.rewrite.fold_constants import fold_constants


def closed_file(data: bytes, graph: Graph) -> bytes:
    """The file `data`, which `graph` was read from, with all shapes known and without the operators that compute them;
    the same bytes where the file leaves no shape open."""
    graph = graph if graph.layouts is None else graph.layouts.file
    if not any(tensor.open_axes for op in graph.ops for tensor in op.outputs):
        return data
    folded = fold_constants(graph)
    gone = {op.index for op in graph.ops} - {op.index for op in folded.ops}
    # an output that turned out to be constant has no operator of the file
    return data if folded is graph or any(op.index < 0 for op in folded.ops) else graph_file(data, folded, gone)
