"""Our kernels of PAD and PADV2 (runtime_c/tinyfuse_pad.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Let, Statement
from tinyfuse.ops.pad import pad_value


def _four(values: list[int], fill: int) -> str:
    """A C initializer of four numbers, leading dimensions filled."""
    return "{" + ", ".join(map(str, [fill] * (4 - len(values)) + values)) + "}"


def _params(op: Op) -> Let:
    before = [int(pair[0]) for pair in op.operand(1).values]
    return Let(
        "tinyfuse_pad",
        "p",
        {
            "in": _four(list(op.input.shape), 1),
            "out": _four(list(op.output.shape), 1),
            "before": _four(before, 0),
            "value": pad_value(op),
        },
    )


class Pad(Kernel):
    """Any PAD, whole."""

    name = "tinyfuse_pad_s8"
    headers = ("tinyfuse_pad.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _params(op), Call(self.name, ("&p", site.input(0).pointer, site.output.pointer))


class PadRow(Kernel):
    """PAD of an image, one row a call; it reads the input row that the output row holds."""

    name = "tinyfuse_pad_row_s8"
    headers = ("tinyfuse_pad.h",)
    by_row, whole, rings = True, False, True

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        view = site.input(0)
        args = ("&p", view.pointer, view.ring_rows, site.output_row, site.output.pointer)
        return _params(op), Call(self.name, args)
