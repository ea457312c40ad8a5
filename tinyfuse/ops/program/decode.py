"""TFLM_DECODE: constants that TensorFlow Lite Micro decompresses before the operator that reads them.

Each output has two inputs, both constants: the encoded data, and what is needed to decode them: a header of 16
bytes (0: how, 1: version, 4: version of that, 5 and 6: parameters), then tables. So all of it is computed when the
model is compiled (tinyfuse/rewrite/fold_constants.py). Format: TFLM, compression/decode.py and
kernels/decode_state*.cc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import INT4, Array, Op, Tensor
from tinyfuse.ops.core.family import OpFamily, Rule

_HEADER = 16
_VERSION = 1
_LOOKUP, _HUFFMAN, _PRUNED = 0, 1, 2
_DTYPES = {
    _LOOKUP: ("bool", "int8", "int16", "int32", "int64", "float32"),
    _HUFFMAN: ("int8", "int16"),
    _PRUNED: ("bool", "int8", "int16", "int32", "int64", "float32"),
}


class Undecodable(Exception):
    """Raised for encoded data whose index width, dtype or axis is not supported, or that refer beyond their end or that
    of their tables."""


class DecodeFamily(OpFamily):
    """TFLM_DECODE: output i is decompressed from inputs 2 i (encoded data) and 2 i + 1 (header and tables)."""

    kind = "CUSTOM TFLM_DECODE"
    folded = True
    summary = "decompresses constants: lookup tables, Huffman codes, pruned values"
    rules = (
        Rule("two constant inputs per output",
             lambda op: not op.outputs or len(op.inputs) != 2 * len(op.outputs) or _first_bad(op, _no_constant)),
        Rule("the second input of an output begins with a header of 16 bytes that says version 1",
             lambda op: _first_bad(op, _bad_header)),
        Rule("the output is encoded by lookup tables, Huffman codes or pruning, and of a dtype that these have: "
             "bool, int8, int16, int32, int64 or float32; for Huffman codes int8 or int16",
             lambda op: _first_bad(op, _bad_sort)),
        Rule("the output has one scale, or one per index of its first or last dimension",
             lambda op: _first_bad(op, _bad_channels)),
        Rule("zero points of pruned values are 0 but for int8",
             lambda op: _first_bad(op, _bad_zero_points)),
        Rule("indexes, code words and values lie within data and tables", lambda op: _first_bad(op, _undecodable),
             "the file is damaged, or what compressed it is at fault: compress it again"),
    )  # fmt: skip

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return tuple(_decoded(op, i) for i in range(len(op.outputs)))


# --- rules -----------------------------------------------------------------------------------


def _first_bad(op: Op, bad: Callable[[Op, int], Tensor | None]) -> Tensor | None:
    return next((found for i in range(len(op.outputs)) if (found := bad(op, i)) is not None), None)


def _no_constant(op: Op, i: int) -> Tensor | None:
    pair = (op.optional(2 * i), op.optional(2 * i + 1))
    wrong = (op.outputs[i] if t is None else t for t in pair if t is None or not t.is_constant or t.dtype == INT4)
    return next(wrong, None)


def _bad_header(op: Op, i: int) -> Tensor | None:
    header = _bytes(op, 2 * i + 1)
    good = len(header) >= _HEADER and header[1] == header[4] == _VERSION
    return None if good else op.operand(2 * i + 1)


def _bad_sort(op: Op, i: int) -> Tensor | None:
    header, dtype = _bytes(op, 2 * i + 1), op.outputs[i].dtype
    small_tables = header[0] == _HUFFMAN and not header[5] & 1
    good = dtype in _DTYPES.get(header[0], ()) and not (small_tables and dtype != "int8")
    return None if good else op.outputs[i]


def _bad_channels(op: Op, i: int) -> Tensor | None:
    return op.outputs[i] if _bad_axis(op.outputs[i]) else None


def _bad_axis(output: Tensor) -> bool:
    """Tell whether the output's channels are not its first or last dimension."""
    if output.quant is None or not output.quant.per_channel:
        return False
    return output.quant.axis not in (0, len(output.shape) - 1) or output.elements % len(output.quant.scale) != 0


def _bad_zero_points(op: Op, i: int) -> Tensor | None:
    output = op.outputs[i]
    if _bytes(op, 2 * i + 1)[0] != _PRUNED or output.quant is None or output.dtype == "int8":
        return None
    return output if any(output.quant.zero_point) else None


def _undecodable(op: Op, i: int) -> Tensor | None:
    try:
        values = _decoded(op, i)
    except Undecodable:
        return op.operand(2 * i)
    return op.operand(2 * i) if op.outputs[i].dtype == "bool" and values.view(np.uint8).max() > 1 else None


# --- decoding --------------------------------------------------------------------------------


def _bytes(op: Op, i: int) -> bytes:
    return op.operand(i).values.tobytes()


def _decoded(op: Op, i: int) -> Array:
    """Decoded output `i`, in its shape and dtype. Raises Undecodable."""
    data, ancillary, output = _bytes(op, 2 * i), _bytes(op, 2 * i + 1), op.outputs[i]
    decode = {_LOOKUP: _looked_up, _HUFFMAN: _huffman, _PRUNED: _unpruned}[ancillary[0]]
    found: Array = decode(data, ancillary, output).reshape(output.shape)
    return found


def _channels(output: Tensor) -> tuple[int, Array]:
    """(number of channels, channel of each element); one channel without per-channel quantization."""
    elements = np.arange(output.elements, dtype=np.int32)
    if output.quant is None or not output.quant.per_channel:
        return 1, 0 * elements
    count = len(output.quant.scale)
    if output.quant.axis == len(output.shape) - 1:
        return count, elements % count
    return count, elements // (output.elements // count)


def _table(tables: bytes, item: np.dtype) -> Array:
    """Return the whole elements at the start of `tables` as an array."""
    return np.frombuffer(tables, item, len(tables) // item.itemsize)


def _bits(data: bytes, count: int) -> Array:
    """The first `count` bits of the data, the most significant bit of each byte first."""
    if count > 8 * len(data):
        raise Undecodable
    return np.unpackbits(np.frombuffer(data, np.uint8), count=count)


def _stored(output: Tensor) -> np.dtype:
    return np.dtype(output.dtype).newbyteorder("<")


def _looked_up(data: bytes, ancillary: bytes, output: Tensor) -> Array:
    return decode_lookup(data, ancillary[_HEADER:], ancillary[5] & 7, ancillary[6], output)


def decode_lookup(data: bytes, values: bytes, width: int, stride: int, output: Tensor) -> Array:
    """Indexes of `width` bits into a table for each channel, which begin `stride` elements apart; in the shape and
    dtype of `output`. Raises Undecodable."""
    if not 0 < width < 8 or output.dtype not in _DTYPES[_LOOKUP] or _bad_axis(output):
        raise Undecodable
    bits = _bits(data, width * output.elements).reshape(-1, width)
    places = stride * _channels(output)[1]
    for bit in range(width):
        places += bits[:, bit].astype(np.int32) << width - 1 - bit
    table = _table(values, _stored(output))
    if places.max() >= table.size:
        raise Undecodable
    found: Array = table[places].reshape(output.shape)
    return found


def _unpruned(data: bytes, ancillary: bytes, output: Tensor) -> Array:
    """Decodes pruned data. One bit per element selects the next stored value or the channel's zero point."""
    kept = _bits(data, output.elements).astype(bool)
    values = _table(ancillary[_HEADER:], _stored(output))
    if int(kept.sum()) > values.size:
        raise Undecodable
    zero_points = np.array(output.quant.zero_point if output.quant is not None else (0,))
    found: Array = zero_points[_channels(output)[1] % zero_points.size].astype(_stored(output))
    found[kept] = values[: int(kept.sum())]
    return found


def _huffman(data: bytes, ancillary: bytes, output: Tensor) -> Array:
    """Decodes Huffman code words with tables that are indexed by some bits at a time.

    An entry with the highest bit set is a symbol, with the number of the last bits that belong to its word. Another
    entry refers to a further table: the number of bits for that, less one, and its distance from this entry. Entries
    have 16 bits, 4 of them for counts, or 32 bits.
    """
    wide = bool(ancillary[5] & 1)
    tables = _table(ancillary[_HEADER:], np.dtype("<u4" if wide else "<u2")).tolist()
    found_bit, count_at = (1 << 31, 27) if wide else (1 << 15, 11)
    first_bits, low = (ancillary[5] >> 4) + 1, (1 << count_at) - 1
    words = data[: len(data) // 4 * 4]
    end, padded = 8 * len(words), words + bytes(8)
    symbols = np.zeros(output.elements, np.int64)
    at = 0
    for i in range(output.elements):
        start, width, place = at, first_bits, 0
        while True:
            if at > end:
                raise Undecodable
            byte = at >> 3
            window = int.from_bytes(padded[byte : byte + 4], "big")
            place += window >> 32 - (at & 7) - width & (1 << width) - 1
            at += width
            if place >= len(tables):
                raise Undecodable
            entry = tables[place]
            count = entry >> count_at & 15
            if entry & found_bit:
                break
            place += entry & low
            width = count + 1
        at -= max(0, width - count)
        if not start < at <= end:
            raise Undecodable
        symbols[i] = entry
    return symbols.astype(_stored(output))  # the low bits, as TFLM stores them
