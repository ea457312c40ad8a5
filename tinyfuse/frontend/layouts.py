"""Changes the order of dimensions of a model's inputs and outputs to the firmware's.

Models from PyTorch take images as planes of channels (NCHW); cameras write pixels (NHWC). With --input-layout nhwc the
module's buffer is what the camera writes: a TRANSPOSE to the file's order is put behind each input, and cancels with
the one that a converter puts there (rewrite/cancel_transposes.py). Outputs work likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Layouts, Op, Tensor
from tinyfuse.ops.movement.transpose import DTYPES
from tinyfuse.options import Options


def in_layouts(graph: Graph, options: Options) -> Graph:
    """Return a graph whose inputs and outputs have the layouts in `options`; `graph` itself if the options keep the
    file's.

    Tensors of fewer than three dimensions stay. Raises CompileError if no tensor has three dimensions, or if one has a
    dtype that TRANSPOSE doesn't move.
    """
    inputs, outputs = options.input_layout == "nhwc", options.output_layout == "nhwc"
    if graph.layouts is not None or not (inputs or outputs):
        return graph
    return _Borders(graph).with_channels_last(inputs, outputs)


def channels_last(rank: int) -> tuple[int, ...]:
    """Return, for each dimension of NHWC (NWC, NDHWC), its number in NCHW."""
    return (0, *range(2, rank), 1)


def channels_first(rank: int) -> tuple[int, ...]:
    """Return, for each dimension of channels-first order (NCHW), its index in channels-last order (NHWC)."""
    return (0, rank - 1, *range(1, rank - 1))


class _Borders:
    """Puts new inputs and outputs around the operators of a graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.before: list[Op] = []
        self.after: list[Op] = []
        #: operators of the file -> the same operators computed in the new order
        self.instead: dict[Op, Op] = {}
        self.warnings: list[str] = []

    def with_channels_last(self, inputs: bool, outputs: bool) -> Graph:
        g = self.graph
        self._refuse("--input-layout", "input", g.inputs if inputs else ())
        self._refuse("--output-layout", "output", g.outputs if outputs else ())
        entering = [self._transposed(t, True) if inputs and len(t.shape) > 2 else t for t in g.inputs]
        leaving = [self._transposed(t, False) if outputs and len(t.shape) > 2 else t for t in g.outputs]
        ops = [self.instead.get(op, op) for op in g.ops]
        return replace(
            g,
            ops=(*self.before, *ops, *self.after),
            inputs=tuple(entering),
            outputs=tuple(leaving),
            warnings=(*g.warnings, *self.warnings),
            layouts=Layouts(g, _orders(g.inputs, entering), _orders(g.outputs, leaving)),
        )

    def _refuse(self, flag: str, what: str, tensors: Sequence[Tensor]) -> None:
        """Raise CompileError if none of `tensors` has three dimensions, or if one can't be transposed."""
        problems = []
        if tensors and all(len(t.shape) < 3 for t in tensors):
            message = f"{flag} nhwc: no {what} has channels and something else: all have less than three dimensions"
            problems.append(Problem(message, hint=f"leave out {flag}"))
        for tensor in tensors:
            if len(tensor.shape) > 5:
                message = (
                    f"{flag} nhwc: it has {len(tensor.shape)} dimensions, more than the five that TRANSPOSE supports"
                )
                problems.append(Problem(message, tensor=str(tensor), hint=f"leave out {flag}"))
            elif len(tensor.shape) > 2 and tensor.dtype not in DTYPES and self._converted(tensor) is None:
                message = f"{flag} nhwc: it is {tensor.dtype}, but TRANSPOSE supports only {', '.join(DTYPES)}"
                problems.append(Problem(message, tensor=str(tensor), hint=f"leave out {flag}"))
        if problems:
            raise CompileError(self.graph.path, problems)

    def _converted(self, tensor: Tensor) -> Op | None:
        """Return the QUANTIZE between a uint8 input or output and the int8 tensor behind it."""
        readers = self.graph.consumers.get(tensor, ())
        maker = self.graph.producer.get(tensor)
        if maker is None and tensor in self.graph.outputs:
            return None
        beside = readers if maker is None else (maker, *readers)
        return beside[0] if len(beside) == 1 and beside[0].kind == "QUANTIZE" else None

    def _transposed(self, tensor: Tensor, entering: bool) -> Tensor:
        """Return the model's new input or output, and add the TRANSPOSE between it and `tensor`."""
        rank = len(tensor.shape)
        border = _moved(tensor, channels_last(rank))
        op = None if tensor.dtype in DTYPES else self._converted(tensor)
        kept, inside = tensor, border
        if op is not None:
            kept = op.output if entering else op.input
            inside = _moved(kept, channels_last(rank))
        if entering:
            transpose = _transpose(inside, channels_first(rank), kept)
            self._doubt(kept)
        else:
            transpose = _transpose(kept, channels_last(rank), inside)
        beside = self.before if entering else self.after
        if op is None:
            beside.append(transpose)
        else:
            source, result = (border, inside) if entering else (inside, border)
            beside.append(replace(op, inputs=(source,), outputs=(result,)))
            self.instead[op] = transpose
        return border

    def _doubt(self, tensor: Tensor) -> None:
        """Warn if the file's order may be NHWC already."""
        order = channels_last(len(tensor.shape))
        if not any(_is_transpose(reader, order) for reader in self.graph.consumers.get(tensor, ())):
            doubt = f"no TRANSPOSE reads the input {tensor}: unless the file's order is NCHW, leave it out"
            self.warnings.append(f"--input-layout nhwc: {doubt}")


def _moved(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """Return a new tensor of the same name, whose dimension d is dimension order[d] of `tensor`."""
    return replace(tensor, shape=tuple(tensor.shape[d] for d in order), index=-1)


def _is_transpose(op: Op, order: tuple[int, ...]) -> bool:
    """Tell whether an operator is a TRANSPOSE by `order`; its rules aren't checked yet."""
    given = op.optional(1) if op.kind == "TRANSPOSE" else None
    return given is not None and given.is_constant and tuple(given.values.reshape(-1).tolist()) == order


def _transpose(source: Tensor, order: Sequence[int], result: Tensor) -> Op:
    constant = Tensor(f"{result.name} (order)", (len(order),), "int32", None, np.array(order, np.int32))
    return Op("TRANSPOSE", (source, constant), (result,))


def _orders(of_file: Sequence[Tensor], now: Sequence[Tensor]) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(
        None if border is tensor else channels_last(len(tensor.shape))
        for tensor, border in zip(of_file, now, strict=True)
    )
