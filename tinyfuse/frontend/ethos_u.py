"""Reads programs for the Ethos-U NPU: where Vela placed the tensors that they read and write. Part of
`tinyfuse.frontend.reader`.

before   %o = ethos-u(%stream, %weights, %scratch, %fast, %i);  metadata: %scratch at 0, %i at 0, %o at 512
after    %o = ethos-u(%stream, %weights, %i)   with these offsets in its attributes
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.tensors import HINT_UNSOUND, Model, Problems, TensorReader, text
from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ops.program.ethos_u import EthosU, EthosUFamily

_METADATA = "OfflineMemoryAllocation"
_HINT = "compile the model again with Vela, for TensorFlow Lite Micro, or give tinyfuse the file that Vela was given"


def resolve_programs(
    path: str, ops: tuple[Op, ...], model: Model, tensors: TensorReader, problems: Problems
) -> tuple[Op, ...]:
    """Return the main graph's operators, each NPU program with the offsets of its tensors.

    Raises CompileError if the file gives no offsets, because every further fault would follow from that.
    """
    programs = [op for op in ops if op.kind == EthosUFamily.kind]
    if not programs:
        return ops
    offsets = _offsets(model, tensors.count)
    if offsets is None:
        message = (
            "this file is a program for Arm's Ethos-U NPU, which Vela compiled, but not for TensorFlow Lite Micro:"
        )
        message = f"{message} it has no sound metadata {_METADATA}, which says where the program finds its data"
        raise CompileError(path, Problem(message, operator=str(programs[0]), hint=_HINT))
    known = [
        op for op in programs if op.attributes is not None and not tensors.bad.intersection((*op.inputs, *op.outputs))
    ]
    return tuple(_resolved(op, offsets, problems) if op in known else op for op in ops)


def _resolved(op: Op, offsets: tuple[int, ...], problems: Problems) -> Op:
    message = "it has not the inputs that Vela gives it: command stream, weights, two scratch memories, data"
    if not problems.require(len(op.inputs) >= 4 and None not in op.inputs, message, HINT_UNSOUND, op):
        return op
    stream, weights, scratch, fast, *data = op.operands
    message = "the NPU's driver takes addresses of bytes: a memory or a tensor of it has no bytes"
    if not problems.require(all(t.dtype in ITEM_BYTES for t in (*op.operands, *op.outputs)), message, HINT_UNSOUND, op):
        return op

    def place(tensor: Tensor) -> int:
        return offsets[tensor.index] - offsets[scratch.index]

    apart = fast is not scratch and (place(fast) != 0 or fast.bytes != scratch.bytes)
    attributes = replace(
        op.attributes_as(EthosU),
        scratch=scratch.bytes,
        fast=fast.bytes if apart else 0,
        inputs=tuple(map(place, data)),
        outputs=tuple(map(place, op.outputs)),
    )
    return replace(op, inputs=(stream, weights, *data), attributes=attributes)


def _offsets(model: Model, count: int) -> tuple[int, ...] | None:
    """Return the offset in bytes of every tensor of the main graph, -1 for one placed elsewhere; None if the file has
    none.

    Format: int32s: version 0, number of the subgraph, number of tensors, the offsets (micro_allocator.cc).
    """
    for entry in model.metadata:
        if text(entry["name"]) == _METADATA and entry["buffer"] < len(model.buffers):
            raw = model.buffers[entry["buffer"]]["data"]
            numbers = np.frombuffer(raw.tobytes()[: raw.size // 4 * 4], "<i4")
            if numbers.size >= 3 + count and numbers[2] == count:
                return tuple(numbers[3 : 3 + count].tolist())
    return None
