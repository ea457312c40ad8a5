"""A PAD of rows and columns in front of a convolution becomes the convolution's own padding.

before   %p = PAD(%in, [[0,0],[1,1],[1,1],[0,0]]);  %out = CONV_2D(%p, ...) VALID
after    %out = CONV_2D(%in, ...) padding=(1, 1, 1, 1)

PAD (and PADV2, depending on its value) writes the zero point, as a convolution's own padding does. Applied only if
every reader of %p is a convolution, so that %p disappears, and if %in and %p have the same quantization, because PAD
copies stored values and may reinterpret them.

A float32 convolution skips the taps outside its input. With a PAD, these taps add 0.0 or -0.0 (zero times a finite
weight) to sums that begin with 0.0 and so are never -0.0: no bit changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Conv2D, padded_dims
from tinyfuse.ops.movement.pad import pad_value


def fold_pad(graph: Graph) -> Graph:
    """Fold PADs of rows and columns into the padding of the convolutions after them."""
    folded = {op.output: op for op in graph.ops if FAMILIES[op.kind].pads and why_pad_stays(graph, op) is None}
    if not folded:
        return graph
    ops = []
    for op in graph.ops:
        if folded.keys() & op.outputs:
            continue
        pad = next((folded[t] for t in op.inputs[:1] if t in folded), None)
        ops.append(op if pad is None else _absorb(op, pad))
    return replace(graph, ops=tuple(ops))


def why_pad_stays(graph: Graph, pad: Op) -> str | None:
    """Explain to users why a PAD can't become its readers' padding; None if it can."""
    amounts = pad.operand(1).values.tolist()
    consumers = graph.consumers.get(pad.output, ())
    if len(amounts) != 4 or not amounts[0] == amounts[3] == [0, 0]:
        return "it pads more than rows and columns"
    if pad.output.dtype == "float32":
        if pad_value(pad) != 0:
            return "it pads with a value other than zero"
    elif pad.input.quant != pad.output.quant:
        return "its output has another scale or zero point than its input"
    elif pad.output.quant is None or pad_value(pad) != pad.output.zero_point:
        return "it pads with a value other than the zero point"
    if pad.output in graph.outputs or pad.input in graph.outputs:
        return "the model's caller wants its input or output"
    if not consumers or any(not FAMILIES[op.kind].convolution or op.operand(1) is pad.output for op in consumers):
        return "not only convolutions read it"
    if not all(np.isfinite(op.operand(1).values).all() for op in consumers):
        return "a weight that is not finite makes more than nothing of the zeros"
    return None


def _absorb(op: Op, pad: Op) -> Op:
    (_, (top, bottom), (left, right), _) = pad.operand(1).values.tolist()
    (rows, own_top), (columns, own_left) = padded_dims(op)
    attributes, (_, kernel_h, kernel_w, _) = op.attributes_as(Conv2D), op.operand(1).shape
    _, height, width, _ = op.input.shape

    def own_after(axis: int, count: int, kernel: int, dim: int, before: int) -> int:
        """Return the padding after the input that the last output position reads, in elements; 0 if it reads none."""
        span = (kernel - 1) * attributes.dilation[axis] + 1
        return max(0, (count - 1) * attributes.stride[axis] + span - dim - before)

    padding = (
        top + own_top,
        bottom + own_after(0, rows, kernel_h, height, own_top),
        left + own_left,
        right + own_after(1, columns, kernel_w, width, own_left),
    )
    inputs = (pad.input, *op.inputs[1:])
    return replace(op, inputs=inputs, attributes=replace(attributes, padding=padding))
