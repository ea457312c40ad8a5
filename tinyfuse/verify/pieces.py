"""Splits a model that has operators that TFLM lacks: LiteRT computes these operators, TFLM all others.

LiteRT cannot compute the whole model, because its FULLY_CONNECTED rounds differently (verify/oracle.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from tinyfuse.frontend.graph_file import graph_file
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.control_flow import called_graphs
from tinyfuse.rewrite.fold_constants import fold_constants


def pieces(graph: Graph) -> list[tuple[str, Graph]]:
    """(interpreter, the graph that it runs) in the order in which they run.

    Empty if one interpreter is enough. Also empty for a model with unknown operators, states, operators that are not in
    the file, or inputs with another layout than in the file. A model that calls functions of libm is not divided
    either, because their last bits are compared operator by operator (verify/bounds.py).
    """
    if any(op.kind not in FAMILIES for op in graph.ops):
        return []
    folded = fold_constants(graph)
    apart = not folded.states and graph.layouts is None and all(op.index >= 0 for op in folded.ops)
    if not apart or calls_libm(folded) or len({FAMILIES[op.kind].in_tflm for op in folded.ops}) < 2:
        return []
    return [("tflm" if in_tflm else "litert", piece) for in_tflm, piece in _runs(folded)]


def calls_libm(graph: Graph) -> bool:
    """Tells whether an operator of the graph, or of a graph that it runs, calls functions of libm."""
    return any(
        FAMILIES[op.kind].ulp(op) is not None or any(calls_libm(called) for _, called in called_graphs(op))
        for op in graph.ops
    )


def piece_file(data: bytes, graph: Graph, piece: Graph) -> bytes:
    """Content of a file with a piece of `graph`, which was read from `data`."""
    return graph_file(data, piece, {op.index for op in graph.ops} - {op.index for op in piece.ops})


def _runs(graph: Graph) -> Iterator[tuple[bool, Graph]]:
    """Yields (in TFLM, piece) for the longest runs of operators that one interpreter has, in the file's order."""
    wanted = set(graph.outputs)
    runs = [(key, tuple(ops)) for key, ops in groupby(graph.ops, lambda op: FAMILIES[op.kind].in_tflm)]
    for number, (key, ops) in enumerate(runs):
        later = wanted.union(*(op.activations for _, rest in runs[number + 1 :] for op in rest))
        yield key, replace(graph, ops=ops, inputs=_read(ops), outputs=tuple(t for t in _made(ops) if t in later))


def _made(ops: tuple[Op, ...]) -> dict[Tensor, None]:
    return dict.fromkeys(tensor for op in ops for tensor in op.outputs)


def _read(ops: tuple[Op, ...]) -> tuple[Tensor, ...]:
    made = _made(ops)
    return tuple(dict.fromkeys(tensor for op in ops for tensor in op.activations if tensor not in made))
