"""Inputs of samples as pictures, in PNG (W3C recommendation, 2003)."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from tinyfuse.ir import Array

#: sides of a picture beyond which only every second, third, ... value is shown
_MOST = 192


def picture_of(real: Array) -> Array | None:
    """Picture of an input's real numbers: uint8 brightness [H, W], or [H, W, 3] for colours, from its smallest number
    to its largest. None if the input [1, ...] is neither a matrix nor an image of one or three channels."""
    shape = [dim for dim in real.shape if dim != 1]
    if real.ndim == 4 and real.shape[0] == 1 and real.shape[3] == 3:
        array = real[0]
    elif len(shape) == 2:
        array = real.reshape(shape)
    else:
        return None
    step = -(-max(array.shape[:2]) // _MOST)
    array = array[::step, ::step].astype(np.float64)
    low, high = float(array.min()), float(array.max())
    scaled = (array - low) * (255 / (high - low) if high > low else 0)
    pixels: Array = np.rint(scaled).astype(np.uint8)
    return pixels


def png_uri(pixels: Array) -> str:
    """A data: address of pixels, uint8 [H, W] or [H, W, 3]."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(unfiltered, 9)), _chunk(b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
