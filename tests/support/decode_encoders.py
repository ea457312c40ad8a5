"""Encoders for TFLM_DECODE, written from the format (tinyfuse/ops/program/decode.py names its sources), and models of them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import flatbuffers
import numpy as np
from tflite_builder import ModelBuilder

from tinyfuse.ir import Op, Quant, Tensor

KIND = "CUSTOM TFLM_DECODE"


@dataclass(frozen=True)
class Encoded:
    """Values, the quantization of their tensor, and their encoding."""

    values: np.ndarray
    data: bytes
    ancillary: bytes
    quant: Quant | None = None


def header(how: int, first: int = 0, second: int = 0) -> bytes:
    return bytes([how, 1, 0, 0, 1, first, second]) + bytes(9)


def packed_bits(values: np.ndarray, width: int) -> bytes:
    """Packs numbers of `width` bits, the most significant bit first."""
    bits = values.reshape(-1, 1) >> np.arange(width)[::-1] & 1
    return np.packbits(bits.astype(np.uint8).reshape(-1)).tobytes()


def channels_last(values: np.ndarray, quant: Quant | None) -> np.ndarray:
    """[channels, elements of a channel] of element numbers."""
    places = np.arange(values.size).reshape(values.shape)
    if quant is None or not quant.per_channel:
        return places.reshape(1, -1)
    return np.moveaxis(places, quant.axis, 0).reshape(len(quant.scale), -1)


def looked_up(values: np.ndarray, width: int, quant: Quant | None = None, spare: int = 0) -> Encoded:
    """Encodes by one table for each channel, each with as many entries as the longest needs, and `spare` more."""
    flat, indexes, tables = values.reshape(-1), np.zeros(values.size, np.int64), []
    for places in channels_last(values, quant):
        table, indexes[places] = np.unique(flat[places], return_inverse=True)
        tables.append(table)
    stride = max(map(len, tables)) + spare
    assert stride <= 1 << width
    padded = [np.pad(table, (0, stride - len(table))) for table in tables]
    ancillary = header(0, width, stride) + np.concatenate(padded).astype(values.dtype).tobytes()
    return Encoded(values, packed_bits(indexes, width), ancillary, quant)


def pruned(values: np.ndarray, quant: Quant | None = None) -> Encoded:
    zero_points = np.zeros(values.size, np.int64)
    for channel, places in enumerate(channels_last(values, quant)):
        zero_points[places] = quant.zero_point[channel] if quant else 0
    kept = values.reshape(-1) != zero_points.astype(values.dtype)
    return Encoded(values, packed_bits(kept.astype(int), 1), header(2) + values.reshape(-1)[kept].tobytes(), quant)


def huffman(values: np.ndarray, first_bits: int, wide: bool) -> Encoded:
    """Encodes by a first table of `first_bits`, then a table for the longer codes of each of its entries, and so on."""
    words = code_words(Counter(values.reshape(-1).tolist()))
    tables = _table(words, first_bits, wide)
    text = "".join(words[value] for value in values.reshape(-1).tolist())
    text += "0" * (-len(text) % 32)
    data = int(text, 2).to_bytes(len(text) // 8, "big")
    item = "<u4" if wide else "<u2"
    head = header(1, (first_bits - 1) << 4 | wide)
    return Encoded(values, data, head + np.array(tables, item).tobytes())


def code_words(counts: Counter) -> dict[int, str]:
    """A prefix code by Huffman's algorithm."""
    heap = [(count, i, {value: ""}) for i, (value, count) in enumerate(sorted(counts.items()))]
    heapq.heapify(heap)
    for number in range(len(heap), 2 * len(heap)):
        if len(heap) == 1:
            break
        (a, _, left), (b, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        merged = {v: "0" + w for v, w in left.items()} | {v: "1" + w for v, w in right.items()}
        heapq.heappush(heap, (a + b, number, merged))
    words = heap[0][2]
    return {value: word or "0" for value, word in words.items()}


def _table(words: dict[int, str], bits: int, wide: bool) -> list[int]:
    """Entries as in kernels/decode_state_huffman.h. If more bits are needed, an entry holds their count less one and
    the distance to the next table."""
    found, count_at, low = (1 << 31, 27, (1 << 16) - 1) if wide else (1 << 15, 11, (1 << 8) - 1)
    entries = [0] * (1 << bits)
    more: list[int] = []
    for index in range(1 << bits):
        prefix = format(index, f"0{bits}b")
        fits = [(value, word) for value, word in words.items() if prefix.startswith(word)]
        longer = {value: word[bits:] for value, word in words.items() if word.startswith(prefix) and len(word) > bits}
        if fits:
            ((value, word),) = fits
            entries[index] = found | len(word) << count_at | value & low
        elif longer:
            next_bits = min(max(map(len, longer.values())), bits)
            entries[index] = next_bits - 1 << count_at | len(entries) + len(more) - index
            more += _table(longer, next_bits, wide)
    return entries + more


def decode_op(*encoded: Encoded) -> Op:
    """The operator that decodes all of them."""
    inputs, outputs = [], []
    for i, e in enumerate(encoded):
        for name, raw in (("data", e.data), ("ancillary", e.ancillary)):
            array = np.frombuffer(raw, np.uint8)
            inputs.append(Tensor(f"{name}{i}", array.shape, "uint8", None, array))
        outputs.append(Tensor(f"out{i}", e.values.shape, str(e.values.dtype), e.quant))
    return Op(KIND, tuple(inputs), tuple(outputs))


def add_decode(model: ModelBuilder, *encoded: Encoded) -> list[int]:
    """Adds an operator that decodes them to a model; returns the indexes of its outputs."""
    op = decode_op(*encoded)
    inputs = [model.tensor(t.name, t.shape, "uint8", data=t.data) for t in op.inputs]
    outputs = []
    for t in op.outputs:
        quant = (t.quant.scale, t.quant.zero_point, t.quant.axis) if t.quant else (None, None, 0)
        outputs.append(model.tensor(t.name, t.shape, t.dtype, *quant))
    model.op("CUSTOM", inputs, outputs, custom_code="TFLM_DECODE", table=False)
    return outputs


# --- cases -----------------------------------------------------------------------------------


def _values(shape: tuple[int, ...], count: int, dtype: str = "int8", seed: int = 0) -> np.ndarray:
    """Few different values, some of them rare."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.4
    if dtype == "float32":
        pool = rng.normal(size=count).astype(np.float32)
    else:
        ends = np.iinfo(dtype)
        pool = np.unique(rng.integers(ends.min, ends.max, 4 * count, dtype=dtype))[:count]
    return rng.choice(pool, shape, p=np.diff(np.linspace(0, 1, len(pool) + 1) ** 3))


def _sparse(shape: tuple[int, ...], dtype: str, zero_point: int | np.ndarray = 0) -> np.ndarray:
    rng = np.random.default_rng(3)
    values = _values(shape, 40, dtype)
    return np.where(rng.random(shape) < 0.7, zero_point, values).astype(dtype)


def _per_channel(channels: int, axis: int, zero_points: tuple[int, ...] | None = None) -> Quant:
    return Quant((0.5,) * channels, zero_points or (0,) * channels, axis)


CASES: dict[str, Encoded] = {
    **{f"lookup, {width} bits": looked_up(_values((3, 37), 1 << width, seed=width), width) for width in range(1, 8)},
    "lookup, a table a channel": looked_up(_values((6, 5, 9), 15), 4, _per_channel(6, 0), spare=1),
    "lookup, 3 bits a channel": looked_up(_values((5, 43), 7), 3, _per_channel(5, 0)),
    "lookup, 2 bits a channel": looked_up(_values((5, 19), 4), 2, _per_channel(5, 0)),
    "lookup, channels last": looked_up(_values((1, 3, 3, 10), 12), 4, _per_channel(10, 3)),
    "lookup, one row of channels": looked_up(_values((8,), 6), 3, _per_channel(8, 0)),
    **{f"lookup, {d}": looked_up(_values((4, 11), 9, d), 4) for d in ("bool", "int16", "int32", "int64", "float32")},
    "lookup, one value": looked_up(np.full((5, 5), -7, np.int8), 1),
    "huffman, 16-bit tables": huffman(_values((7, 31), 12), 4, wide=False),
    "huffman, tables behind tables": huffman(_values((9, 60), 60), 3, wide=False),
    "huffman, 32-bit tables": huffman(_values((9, 60), 60), 5, wide=True),
    "huffman, int16": huffman(_values((9, 60), 50, "int16"), 4, wide=True),
    "huffman, one value": huffman(np.full((33,), 5, np.int8), 2, wide=False),
    "pruned": pruned(_sparse((5, 13), "int8")),
    "pruned, a zero point": pruned(_sparse((5, 13), "int8", -9), Quant((0.5,), (-9,))),
    "pruned, a zero point a channel": pruned(
        _sparse((3, 13), "int8", np.array([[4], [-5], [0]])), _per_channel(3, 0, (4, -5, 0))
    ),
    "pruned, channels last": pruned(_sparse((7, 3), "int8", np.array([4, -5, 0])), _per_channel(3, 1, (4, -5, 0))),
    **{f"pruned, {d}": pruned(_sparse((5, 13), d)) for d in ("bool", "int16", "int32", "int64", "float32")},
    "pruned, nothing left": pruned(np.zeros((3, 3), np.int8)),
}  # fmt: skip


# --- the older form: metadata ------------------------------------------------------------------


def compression_metadata(tensors: Sequence[tuple[int, int, int]], version: int = 1) -> bytes:
    """TFLM's FlatBuffer of (tensor, buffer of its values, bits of an index) for the first subgraph."""
    builder = flatbuffers.Builder(256)
    written = []
    for tensor, buffer, bits in tensors:
        builder.StartObject(3)
        builder.PrependInt32Slot(0, tensor, 0)
        builder.PrependUint32Slot(1, buffer, 0)
        builder.PrependUint8Slot(2, bits, 0)
        written.append(builder.EndObject())
    subgraph = _table_of(builder, 0, written)
    vector = _vector(builder, [subgraph])
    builder.StartObject(2)
    builder.PrependUint32Slot(0, version, 1)
    builder.PrependUOffsetTRelativeSlot(1, vector, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _vector(builder: flatbuffers.Builder, tables: list[int]) -> int:
    builder.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        builder.PrependUOffsetTRelative(table)
    return builder.EndVector()


def _table_of(builder: flatbuffers.Builder, slot: int, tables: list[int]) -> int:
    vector = _vector(builder, tables)
    builder.StartObject(slot + 1)
    builder.PrependUOffsetTRelativeSlot(slot, vector, 0)
    return builder.EndObject()
