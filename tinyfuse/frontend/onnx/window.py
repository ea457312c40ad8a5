"""The window of a convolution or a pool."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.frontend.onnx.graph import Refused
from tinyfuse.frontend.onnx.model import Node


class Window:
    """Kernel, strides, dilations, padding and groups of a convolution over rows and columns."""

    def __init__(
        self, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], pads: Sequence[int], group: int
    ):
        self.kernel, self.stride, self.dilation, self.group = kernel, stride, dilation, group
        top, bottom, left, right = pads
        self.pads: tuple[int, int, int, int] = (top, bottom, left, right)

    @staticmethod
    def of(node: Node, kernel: Sequence[int], dims: Sequence[int]) -> Window:
        """The window of a Conv over `dims`, one or two dimensions; a second one of size 1 is added to a single one."""
        rank = len(dims)
        a = node.attributes
        stride, dilation = (list(a.get(key) or [1] * rank) for key in ("strides", "dilations"))
        pads = list(a.get("pads") or [0] * (2 * rank))
        if len(stride) != rank or len(dilation) != rank or len(pads) != 2 * rank or min(stride + dilation) < 1:
            raise Refused("its strides, dilations or pads don't fit its input", "export the model again")
        if max(stride + dilation + [abs(pad) for pad in pads]) >= 1 << 15 or min(pads) < 0:
            raise Refused("its strides, dilations or pads are negative or above 32,767", "export the model again")
        before, after = pads[:rank], pads[rank:]
        auto = a.get("auto_pad") or "NOTSET"
        if auto != "NOTSET":
            if node.kind == "ConvTranspose":
                raise Refused(f"auto_pad {auto} is not supported here", "give pads as numbers")
            total = [0] * rank
            if auto in ("SAME_UPPER", "SAME_LOWER"):
                total = [
                    max(0, (-(-dim // s) - 1) * s + (k - 1) * d + 1 - dim)
                    for dim, k, s, d in zip(dims, kernel, stride, dilation, strict=True)
                ]
            more = 1 if auto == "SAME_LOWER" else 0
            before = [(t + more) // 2 for t in total]
            after = [t - b for t, b in zip(total, before, strict=True)]
        if rank == 1:
            kernel, stride, dilation = [*kernel, 1], [*stride, 1], [*dilation, 1]
            before, after = [*before, 0], [*after, 0]
        return Window(kernel, stride, dilation, (before[0], after[0], before[1], after[1]), int(a.get("group", 1) or 1))
