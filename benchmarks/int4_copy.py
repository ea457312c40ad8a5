"""A copy of an int8 model with weights of int4, to measure what they take: every weight is divided by 16 and rounded,
to -7 to 7, its scale times 16. What it computes is no longer of use; that it is exact, `tinyfuse verify` shows.

    python benchmarks/int4_copy.py MODEL.tflite COPY.tflite [--as-int8]

With --as-int8 the same weights stay int8: the copy to compare with, for multipliers decide about requantization.
The file is changed in its place: types and scales keep their sizes, and the data of int4 are half as long. Weights of
CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED with one scale, what TensorFlow Lite Micro takes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tflite

_KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_INT4 = 17
#: slots of the schema's tables in a vtable
_TENSOR_TYPE, _BUFFER_DATA, _SCALE = 6, 4, 8


def int4_copy(data: bytes, as_int8: bool = False) -> bytes:
    """The model's bytes with weights of int4, or of int8 with the same values."""
    changed = bytearray(data)
    model = tflite.Model.GetRootAs(changed, 0)
    graph = model.Subgraphs(0)
    kinds = {getattr(tflite.BuiltinOperator, kind): kind for kind in _KINDS}
    done: set[int] = set()
    scaled: set[int] = set()
    for i in range(graph.OperatorsLength()):
        op = graph.Operators(i)
        code = model.OperatorCodes(op.OpcodeIndex())
        kind = kinds.get(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()))
        if kind is None:
            continue
        weights, bias = (graph.Tensors(op.Inputs(k)) for k in (1, 2))
        if weights.Buffer() in done or (kind == "FULLY_CONNECTED" and weights.Quantization().ScaleLength() > 1):
            continue
        done.add(weights.Buffer())
        stored = _array(changed, model.Buffers(weights.Buffer())._tab, _BUFFER_DATA, np.int8)
        values = np.clip(np.round(stored / 16), -7, 7).astype(np.int8)
        if as_int8:
            stored[:] = values
        else:
            nibbles = np.pad(values, (0, values.size % 2)).view(np.uint8) & 15
            stored[: nibbles.size // 2] = (nibbles[::2] | nibbles[1::2] << 4).view(np.int8)
            changed[weights._tab.Pos + weights._tab.Offset(_TENSOR_TYPE)] = _INT4
        biases = _array(changed, model.Buffers(bias.Buffer())._tab, _BUFFER_DATA, np.uint8).view(np.int32)
        biases[:] = np.round(biases / 16)
        for table in {t._tab.Pos: t._tab for t in (weights.Quantization(), bias.Quantization())}.values():
            if table.Pos not in scaled:
                _array(changed, table, _SCALE, np.float32)[:] *= np.float32(16)
            scaled.add(table.Pos)
    return bytes(changed)


def _array(data: bytearray, table: object, slot: int, dtype: type) -> np.ndarray:
    """A vector of a table, as an array that changes the file."""
    offset = table.Offset(slot)
    return np.frombuffer(data, dtype, table.VectorLen(offset), table.Vector(offset))


if __name__ == "__main__":
    source, copy = map(Path, sys.argv[1:3])
    copy.write_bytes(int4_copy(source.read_bytes(), "--as-int8" in sys.argv[3:]))
