"""Reads which constants a file's metadata declare as compressed: TensorFlow Lite Micro's format before TFLM_DECODE.

Metadata COMPRESSION_METADATA names a buffer with a FlatBuffer of its own (TFLM, compression/metadata.fbs). It lists
tensors whose buffers hold indexes into tables of values, and the buffers that hold these tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.frontend.flatbuffer_check import Damaged, check_flatbuffer
from tinyfuse.frontend.flatbuffer_table import Table, root

_NAME = b"COMPRESSION_METADATA"
_ROOT, _VERSION = "CompressionMetadata", 1


@dataclass(frozen=True)
class LookedUp:
    """Compression of one tensor: the buffer with its values, and the bits of an index."""

    value_buffer: int
    bits: int


def compressed_tensors(model: Table) -> dict[tuple[int, int], LookedUp]:
    """Return (subgraph, tensor) -> its compression. Raises Damaged or TooLarge like `check_flatbuffer`."""
    buffers = model["buffers"]
    for entry in model["metadata"]:
        if entry["name"] != _NAME or entry["buffer"] >= len(buffers):
            continue
        inner: np.ndarray = buffers[entry["buffer"]]["data"]
        data = inner.tobytes()
        check_flatbuffer(data, _ROOT)
        if root(data, _ROOT)["schema_version"] > _VERSION:
            raise Damaged(f"its version is later than {_VERSION}")
        return {
            (number, tensor["tensor"]): LookedUp(tensor["value_buffer"], tensor["index_bitwidth"])
            for number, subgraph in enumerate(root(data, _ROOT)["subgraphs"])
            for tensor in subgraph["lut_tensors"]
        }
    return {}
