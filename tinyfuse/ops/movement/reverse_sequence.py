"""REVERSE_SEQUENCE: reverses the first part of each sequence of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends, one_dtype


@dataclass(frozen=True)
class Sequences:
    """Attributes of REVERSE_SEQUENCE. seq_dim: the dimension along which a sequence runs; batch_dim: the dimension that
    counts sequences."""

    seq_dim: int = 0
    batch_dim: int = 0


def _bad_dims(op: Op) -> bool:
    a, rank = op.attributes_as(Sequences), len(op.input.shape)
    return a.seq_dim == a.batch_dim or not (0 <= a.seq_dim < rank and 0 <= a.batch_dim < rank)


def _bad_lengths(op: Op) -> Tensor | None:
    lengths, a = op.operand(1), op.attributes_as(Sequences)
    if lengths.dtype not in ("int32", "int64") or lengths.shape != (op.input.shape[a.batch_dim],):
        return lengths
    return lengths if lengths.is_constant and (lengths.values > op.input.shape[a.seq_dim]).any() else None


class ReverseSequenceFamily(OpFamily):
    """REVERSE_SEQUENCE. Inputs: data, and the number of elements of each sequence that are reversed; none if it is
    below 0. A length beyond the sequence that is computed at run time ends the run with an error."""

    kind = "REVERSE_SEQUENCE"
    options_table = "ReverseSequenceOptions"
    summary = "the first part of each sequence backwards"
    in_tflm = False
    rules = (
        ends(2),
        one_dtype(("uint8", "int16", "int32", "int64", "float32")),
        Rule(
            "input and output have the same shape", lambda op: op.output if op.output.shape != op.input.shape else None
        ),
        Rule("sequence and batch are two dimensions of the input", _bad_dims),
        Rule("the lengths are int32 or int64, one per sequence, at most its length", _bad_lengths),
    )

    def attributes(self, options: Mapping[str, Any]) -> Sequences:
        return Sequences(options.get("seq_dim", 0), options.get("batch_dim", 0))

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (-1, op.input.shape[op.attributes_as(Sequences).seq_dim]) if index == 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a = op.attributes_as(Sequences)
        result = given(inputs[0]).copy()
        sequences = np.moveaxis(result, (a.batch_dim, a.seq_dim), (0, 1))
        for sequence, length in zip(sequences, given(inputs[1]).tolist(), strict=True):
            sequence[: max(length, 0)] = sequence[: max(length, 0)][::-1].copy()
        return (result,)
