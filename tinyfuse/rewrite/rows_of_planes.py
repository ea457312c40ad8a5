"""Computes TRANSPOSEs between channels first and channels last row by row.

before   %x[1,H,W,C] = TRANSPOSE(%planes[1,C,H,W], 0 2 3 1);  ...;  %out[1,D,H,W] = TRANSPOSE(%y[1,H,W,D], 0 3 1 2)
after    %p[1,H,C,W] = PLANES(%planes);  %x = PLANES_TO_ROWS(%p);  ...
         %q[1,H,D,W] = ROWS_TO_PLANES(%y);  %out = PLANES(%q)

%p and %q alias the tensors with channels first, as images of which each row has one piece in every plane
(`Tensor.planes`). They exist whole, but the image with channels last can be a ring of rows. The rewrite also applies to
sequences, [1,C,L] and [1,L,C], which other rewrites have made images of a single column.

Runs after all passes that inspect TRANSPOSEs and RESHAPEs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.walk import walk_of
from tinyfuse.ops.movement.transpose import permutation


def rows_of_planes(graph: Graph) -> Graph:
    """Replace TRANSPOSEs between planes and channels last by operators that work row by row."""
    instead: dict[Op, list[Op]] = {}
    for op in graph.ops:
        if op not in instead and op.kind == "TRANSPOSE" and not op.view:
            instead |= _to_rows(graph, op) or _to_planes(graph, op) or {}
    if not instead:
        return graph
    return replace(graph, ops=tuple(made for op in graph.ops for made in instead.get(op, [op])))


def _to_rows(graph: Graph, op: Op) -> dict[Op, list[Op]] | None:
    """Return the replacement of a TRANSPOSE whose output is an image of rows, maybe behind a reshape; None for
    others."""
    pixels, planes = _matrix(op)
    renamings = [reader for reader in graph.consumers.get(op.output, ()) if _renames(reader)]
    found = next((t for t in (op.output, *(r.output for r in renamings)) if _has_rows(t, pixels, planes)), None)
    if found is None or _is_brought(graph, op.input):
        return None
    rows = _in_planes(op.input, found)
    ops = [Op("PLANES", (op.input,), (rows,), index=op.index), Op("PLANES_TO_ROWS", (rows,), (found,), index=op.index)]
    if found is op.output:
        return {op: ops}
    ops.append(Op("RESHAPE", (found,), (op.output,), index=op.index))
    return {op: ops, **{reader: [] for reader in renamings if reader.output is found}}


def _to_planes(graph: Graph, op: Op) -> dict[Op, list[Op]] | None:
    """Return the replacement of a TRANSPOSE whose input is an image of rows, maybe behind a reshape; None for
    others."""
    planes, pixels = _matrix(op)
    found = next((t for t in _names(graph, op.input) if _has_rows(t, pixels, planes)), None)
    if found is None:
        return None
    rows = _in_planes(op.output, found)
    return {
        op: [
            Op("ROWS_TO_PLANES", (found,), (rows,), index=op.index),
            Op("PLANES", (rows,), (op.output,), index=op.index),
        ]
    }


def _matrix(op: Op) -> tuple[int, int]:
    """Return (rows, columns) of the output if the TRANSPOSE swaps the axes of one matrix; else (0, 0)."""
    data = np.empty(op.input.shape, op.input.dtype)  # only its strides are used
    walk = walk_of(data.transpose(permutation(op)), data)
    if len(walk.dims) == 2 and walk.run == data.itemsize and walk.steps == (walk.run, walk.dims[0] * walk.run):
        return walk.dims[0], walk.dims[1]
    return 0, 0


def _has_rows(image: Tensor, pixels: int, channels: int) -> bool:
    """Tell whether a tensor is a computed image of several rows, with `pixels` pixels and `channels` channels."""
    several = image.is_image and image.shape[1] > 1 and not image.is_constant and not image.is_state
    return several and image.shape[3] == channels > 1 and image.elements == pixels * channels


def _names(graph: Graph, tensor: Tensor) -> Iterator[Tensor]:
    """Yield a tensor and its aliases, tensors that are the same memory under another name."""
    yield tensor
    while (maker := graph.producer.get(tensor)) is not None and _renames(maker):
        tensor = maker.input
        yield tensor


def _renames(op: Op) -> bool:
    return FAMILIES[op.kind].alias


def _is_brought(graph: Graph, tensor: Tensor) -> bool:
    """Tell whether the caller feeds a tensor row by row: then it can't be made of planes."""
    *_, first = _names(graph, tensor)
    maker = graph.producer.get(first)
    return maker is not None and FAMILIES[maker.kind].source


def _in_planes(tensor: Tensor, image: Tensor) -> Tensor:
    """Return the planes of a tensor as an image whose rows match those of `image`."""
    _, height, width, channels = image.shape
    name = f"{tensor.name} (rows)"
    return Tensor(name, (1, height, channels, width), tensor.dtype, tensor.quant, planes=channels)
