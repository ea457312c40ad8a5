"""Calls of pointwise layers, their input pixels, and how calls that compute pixel by pixel are divided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import CallSite, Division, Kernel
from tinyfuse.kernels.core.rows import piece_pointer, row_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.ops.core.convolution import geometry


def pointwise_input(op: Op, site: CallSite) -> tuple[str, int]:
    """Return (C pointer to the first input pixel, number of pixels) of a call for one row or for the whole image."""
    g, source = geometry(op), site.input(0)
    if site.row is None:
        return source.pointer, g.out_h * g.out_w
    return row_pointer(source, site.row), g.out_w


def input_pixels(op: Op, site: CallSite) -> tuple[str, Expr]:
    """Return (C pointer to the first input pixel, pixels) of a call that may compute a part of the pixels."""
    pointer, pixels = pointwise_input(op, site)
    return piece_pointer(pointer, site, op.input.shape[3]), site.piece.count if site.piece else pixels


def pointwise_call(
    kernel: Kernel, op: Op, site: CallSite, struct: str, fields: Mapping[str, Any], *more: Expr
) -> tuple[Statement, ...]:
    """Return the call of a kernel that computes a pointwise layer, or a part of its pixels.

    Its arguments are the parameters (`fields` of the C's `struct`), the input, the number of pixels, the output, the
    weights, the channels, and then `more`.
    """
    output = piece_pointer(site.output.pointer, site, op.output.shape[3])
    constants = site.constant("weights"), site.constant("channels")
    return Let(struct, "p", fields), Call(kernel.name, ("&p", *input_pixels(op, site), output, *constants, *more))


def divide_by_pixels(op: Op, by_row: bool, together: int) -> Division:
    """Return how a pixel-by-pixel call is cut into calls of a multiple of `together` pixels."""
    g = geometry(op)
    return Division(g.out_w if by_row else g.out_h * g.out_w, together)
