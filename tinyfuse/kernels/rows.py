"""C for rows of tensors: what kernels that work element by element share."""

from __future__ import annotations

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.base import CallSite, TensorAccess


def byte_at(pointer: str, offset: int) -> str:
    """The place so many bytes after a `uint8_t *`."""
    return f"{pointer} + {offset}" if offset else pointer


def row_pointer(view: TensorAccess, row: str) -> str:
    """The pointer to row `row` (a C expression) of an input [1, H, W, C] that is whole or a ring."""
    tensor = view.tensor
    if view.ring_rows == 1:
        return view.pointer
    slot = row if view.ring_rows >= tensor.shape[1] and not view.endless else f"({row} % {view.ring_rows})"
    return f"{view.pointer} + {slot} * {tensor.elements // tensor.shape[1]}"


def element_count(tensor: Tensor, site: CallSite) -> int:
    """How many elements a call computes: the tensor's, or those of one of its rows."""
    return tensor.elements if site.row is None else tensor.elements // tensor.shape[1]


def input_pointer(site: CallSite, index: int) -> str:
    """Where an elementwise call begins to read: the input's start, or its row."""
    view = site.input(index)
    return view.pointer if site.row is None else row_pointer(view, site.row)


def vectors(op: Op, site: CallSite) -> tuple[str, int]:
    """Of a layer that computes each vector of its output from one of its input: where the call begins to read, and how
    many vectors it computes."""
    return input_pointer(site, 0), element_count(op.output, site) // op.output.shape[-1]
