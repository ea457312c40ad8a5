"""Scratch that kernels need and rows that a call makes, specified independently for the checker.

Both are derived from the arguments of the printed C call, as the header comments in runtime_c/ define them;
plan/check/rows.py explains why they are not taken from the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tinyfuse.arena import Buffer
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.c_constants import c_parameters
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel, TensorAccess
from tinyfuse.kernels.core.statements import Call, Let, iterate_calls
from tinyfuse.ops.core.convolution import Conv2D
from tinyfuse.ops.layers.tiled import Tiled
from tinyfuse.plan import subplans
from tinyfuse.plan.check.scratch_sizes import SCRATCH, Fields, round_up_4


@lru_cache(maxsize=4096)
def scratch_needed(op: Op, kernel: Kernel, by_row: bool, context: Context) -> int:
    """Computes the bytes of scratch that the kernel's call may write, from the call's own arguments."""
    if isinstance(op.attributes, Tiled):
        return _tiled_scratch(op, kernel, context)
    fields: Fields = {}
    rows: Fields = {"out_h": op.output.shape[1]} if op.outputs and len(op.output.shape) == 4 else {}
    # called graphs have their arenas in the scratch: it must reach the end of their last buffer
    most = max((_end(plan.placement.offsets, plan.buffers) for plan in subplans(op).values()), default=0)
    for statement in iterate_calls(kernel.call(op, _site(op, by_row), context)):
        if isinstance(statement, Call):
            contract = SCRATCH.get(statement.function)
            if contract:
                most = max(most, contract({**fields, **rows}, _arguments(statement)))
        elif isinstance(statement.value, Mapping):
            fields = {**fields, **statement.value}
            buffer = str(statement.value.get("buf", ""))
            if _SCRATCH_NAME in buffer:  # library calls state their scratch size themselves
                after = buffer.partition(f"{_SCRATCH_NAME} + ")[2]
                most = max(most, int(after.rstrip(")") or 0) + int(statement.value["size"]))
    return most


def _arguments(call: Call) -> dict[str, Any]:
    """A call's arguments by the names of the C function's parameters."""
    return dict(zip(c_parameters(call.function), call.args, strict=True))


def _tiled_scratch(op: Op, kernel: Kernel, context: Context) -> int:
    """Computes the scratch of a TILED operator: the largest of its parts', plus one tile per intermediate tensor.

    A tile holds the rows and columns of the tensor that a tile of the next tensor needs. If only pointwise parts
    follow, it is one row high.
    """
    tiled = op.attributes_as(Tiled)
    needed = max(scratch_needed(part, inner, True, context) for inner, part in kernel.parts(op, context))
    rows, columns = min(tiled.rows, op.output.shape[1]), min(tiled.columns, op.output.shape[2])
    sizes, pixels = [], True
    for part in reversed(tiled.parts[1:]):
        a, (_, taps_h, taps_w, _), (_, height, width, channels) = (
            part.attributes_as(Conv2D), part.operand(1).shape, part.input.shape,
        )  # fmt: skip
        reach_h, reach_w = (1 + d * (taps - 1) for d, taps in zip(a.dilation, (taps_h, taps_w), strict=True))
        pixels = pixels and (reach_h, reach_w, *a.stride) == (1, 1, 1, 1)
        rows = min((rows - 1) * a.stride[0] + reach_h, height)
        seen = (columns - 1) * a.stride[1] + reach_w
        sizes.append((1 if pixels else rows) * seen * channels)
        before = a.padding[2] if isinstance(a.padding, tuple) else _left_padding(part, reach_w, a)
        columns = min(max(seen - before, columns * a.stride[1]), width)
    for size in reversed(sizes):
        needed = round_up_4(needed) + size
    return needed


def _left_padding(part: Op, reach: int, a: Conv2D) -> int:
    """Counts the columns of SAME padding on the left: half of all missing columns, rounded down."""
    lacking = (part.output.shape[2] - 1) * a.stride[1] + reach - part.input.shape[2]
    return max(lacking, 0) // 2 if a.padding == "SAME" else 0


def _end(offsets: Mapping[str, int], buffers: Sequence[Buffer]) -> int:
    return max((offsets[buffer.name] + buffer.bytes for buffer in buffers), default=0)


_SCRATCH_NAME = "the_scratch"

#: C function -> output rows that one call makes; fewer at the image's end
_ROWS_A_CALL = {
    "tinyfuse_winograd_rows_s8": 4, "tinyfuse_conv_palettized_rows_s8": 2,
}  # fmt: skip

#: prefixes of functions that convert `count` pixels out of the `plane` pixels of each channel
_OF_PLANES = ("tinyfuse_planes_to_rows_", "tinyfuse_rows_to_planes_")


@lru_cache(maxsize=4096)
def rows_made(op: Op, kernel: Kernel, context: Context) -> int:
    """Computes the most rows that one row-wise call of the kernel makes."""
    statements = tuple(iterate_calls(kernel.call(op, _site(op, True), context)))
    named = {s.name: s.value for s in statements if isinstance(s, Let)}
    if isinstance(op.attributes, Tiled):
        ends = (re.fullmatch(r"tinyfuse_min\(y \+ (\d+), \d+\)", str(value)) for value in named.values())
        return next(int(end[1]) for end in ends if end)
    image = named.get("output_dims")
    if isinstance(image, Mapping):  # a call of CMSIS-NN that is passed several rows as an image
        return _at_most(named.get(str(image["h"]), image["h"]))
    for call in (s for s in statements if isinstance(s, Call) and s.function in _ROWS_A_CALL):
        return _ROWS_A_CALL[call.function]
    for call in (s for s in statements if isinstance(s, Call) and s.function.startswith(_OF_PLANES)):
        args = _arguments(call)
        return _at_most(args["count"]) * op.output.shape[1] // int(args["plane"])
    if len(op.output.shape) == 4 and op.output.shape[2] == 1:
        # rows of width 1 are the pixels of such a call
        return max((_pixels(s.value) for s in statements if isinstance(s, Let)), default=1)
    return 1


def _pixels(fields: object) -> int:
    """Reads the most output columns that a call's struct names; 1 without one."""
    return _at_most(fields.get("out_w", 1) if isinstance(fields, Mapping) else 1)


def _at_most(count: Any) -> int:
    """Reads the upper bound of a count in printed C: a number, or the number in `tinyfuse_min(number, rest)`."""
    found = re.fullmatch(r"tinyfuse_min\((\d+), .*\)", str(count))
    return int(found[1] if found else count)


def _site(op: Op, by_row: bool) -> CallSite:
    """Makes a call site at which all tensors are whole in memory."""

    def view(tensor: Tensor | None, name: str) -> TensorAccess | None:
        if tensor is None or tensor.is_constant:
            return None
        rows = tensor.shape[1] if len(tensor.shape) == 4 else 1
        return TensorAccess(tensor, name, rows, endless=tensor.cursor is not None)

    inputs = tuple(view(tensor, f"in{i}") for i, tensor in enumerate(op.inputs))
    outputs = tuple(
        TensorAccess(t, f"out{i}", t.shape[1] if len(t.shape) == 4 else 1, row_at=str) for i, t in enumerate(op.outputs)
    )
    return CallSite(inputs, outputs, "y" if by_row else None, _SCRATCH_NAME, lambda name: name)
