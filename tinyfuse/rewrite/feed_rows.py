"""`--feed-rows`: the caller passes the model's image row by row, so that it never exists whole.

before   in %image;  %a = CONV_2D(%image, ...)
after    %image = FEED_ROWS();  %a = CONV_2D(%image, ...)

Operators that do not depend on the image move to the front: they run before the first row is fed.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op, Tensor

HINT = "leave --feed-rows out"


def feed_rows(graph: Graph) -> Graph:
    """Feed the graph's first used image input row by row.

    Operators that no output needs must be dropped before. Raises CompileError if no input is an image, if the image is
    also an output, or if the model has state. Other operators that need the whole image are reported by partition.py.
    """
    if graph.states:
        message = "--feed-rows: the model keeps state from one inference to the next"
        raise CompileError(graph.path, Problem(message, tensor=str(graph.states[0]), hint=HINT))
    image = _image(graph)
    if image in graph.outputs:
        message = "--feed-rows: the input is an output too"
        raise CompileError(graph.path, Problem(message, tensor=str(image), hint=HINT))
    after, before = _split(graph, image)
    inputs = tuple(tensor for tensor in graph.inputs if tensor is not image)
    return replace(graph, inputs=inputs, ops=(*before, Op("FEED_ROWS", (), (image,)), *after))


def _image(graph: Graph) -> Tensor:
    images = [tensor for tensor in graph.inputs if tensor.is_image]
    used = [tensor for tensor in images if tensor in graph.consumers or tensor in graph.outputs]
    if used:
        return used[0]
    message = "--feed-rows: no input is an image [1, H, W, C]"
    if images:
        message = "--feed-rows: no output depends on the image, so that nothing would take its rows"
    about = next(map(str, [*images, *graph.inputs]), None)
    raise CompileError(graph.path, Problem(message, tensor=about, hint=HINT))


def _split(graph: Graph, image: Tensor) -> tuple[list[Op], list[Op]]:
    """Return (operators that depend on the image, all others)."""
    needs, after, before = {image}, [], []
    for op in graph.ops:
        if needs.isdisjoint(op.activations):
            before.append(op)
        else:
            after.append(op)
            needs.update(op.outputs)
    return after, before
