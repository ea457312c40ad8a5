"""C for rows of tensors: what kernels that work element by element share."""

from __future__ import annotations

from tinyfuse.ir import Tensor
from tinyfuse.kernels.base import Site, View


def row_pointer(view: View, row: str) -> str:
    """The pointer to row `row` (a C expression) of an input [1, H, W, C] that is whole or a ring."""
    tensor = view.tensor
    if view.ring_rows == 1:
        return view.pointer
    slot = row if view.ring_rows >= tensor.shape[1] and not view.endless else f"({row} % {view.ring_rows})"
    return f"{view.pointer} + {slot} * {tensor.elements // tensor.shape[1]}"


def extent(tensor: Tensor, site: Site) -> int:
    """How many elements a call computes: the tensor's, or those of one of its rows."""
    return tensor.elements if site.row is None else tensor.elements // tensor.shape[1]


def input_pointer(site: Site, index: int) -> str:
    """Where an elementwise call begins to read: the input's start, or its row."""
    view = site.input(index)
    return view.pointer if site.row is None else row_pointer(view, site.row)
