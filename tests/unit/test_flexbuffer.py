"""Options of custom operators: read as `flatbuffers` writes them, and never outside of their bytes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cases.common import flexbuffer
from flatbuffers import flexbuffers

from tinyfuse.frontend.flatbuffer_check import Damaged
from tinyfuse.frontend.flexbuffer import MAX_KEYS, integers_of, numbers_of

_OPTIONS = {"T": 7, "a_flag": True, "fft_length": 512, "large": 2**31 - 1, "negative": -300, "zero": 0}


def test_integers_are_read_back_in_the_order_of_their_keys() -> None:
    found = integers_of(flexbuffer(_OPTIONS))
    assert found == _OPTIONS and list(found) == sorted(_OPTIONS)


@pytest.mark.parametrize("values", [{"x": 1}, {"x": 1, "y": -129}, {"x": 70000}, {"x": -(2**31)}])
def test_every_width(values: dict[str, int]) -> None:
    assert integers_of(flexbuffer(values)) == values


@pytest.mark.parametrize("value", [2**31, -(2**40) - 5, 2**63 - 1])
def test_integers_keep_their_lowest_32_bits(value: int) -> None:
    assert integers_of(flexbuffer({"x": value})) == {"x": np.array(value).astype(np.int32)}


def test_an_unsigned_value_with_its_highest_bit_is_negative_as_in_tflm() -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.UInt("x", 200)
    assert integers_of(bytes(builder.Finish())) == {"x": -56}


def test_a_map_of_tflm() -> None:
    """Reads the bytes that TensorFlow's flexbuffers wrote for a SignalRfft (signal/micro/kernels/fft_test.cc)."""
    data = bytes.fromhex("6666745f6c656e67746800540002030f020001000200070000020505062501")
    assert integers_of(data) == {"T": 7, "fft_length": 512}


@pytest.mark.parametrize("written", [5, "text", [1, 2], {"x": 1.5}, {"x": "text"}, {"x": [1]}, {"x": {"y": 1}}])
def test_anything_else_is_no_map_of_integers(written) -> None:
    with pytest.raises(Damaged):
        integers_of(bytes(flexbuffers.Dumps(written)))


def test_more_keys_than_any_operator_has() -> None:
    with pytest.raises(Damaged, match="more than"):
        integers_of(flexbuffer({f"k{i:03}": i for i in range(MAX_KEYS + 1)}))


@pytest.mark.parametrize("data", [b"", b"\1", b"\0\0", b"\x24\1", b"\1\x24\1", 9 * b"\xff", bytes(200)])
def test_bytes_that_are_none(data: bytes) -> None:
    with pytest.raises(Damaged):
        integers_of(data)


def test_damaged_ones_are_read_or_refused() -> None:
    source = random.Random(7)
    data = flexbuffer(_OPTIONS)
    refused = 0
    for _ in range(5000):
        mutant = bytearray(data)
        for _ in range(source.randint(1, 4)):
            mutant[source.randrange(len(mutant))] = source.choice((0, 1, 3, 0x7F, 0x80, 0xFF, source.randrange(256)))
        del mutant[: source.choice((0, 0, 0, source.randrange(len(mutant))))]
        try:
            integers_of(bytes(mutant))
        except Damaged:
            refused += 1
    assert 500 < refused < 5000


def test_numbers_are_read_back() -> None:
    options = {"count": 10, "flag": True, "scale": 10.25, "small": 1e-8}
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            {bool: builder.Bool, float: builder.Float}.get(type(value), builder.Int)(key, value)
        builder.Null("none")
    assert numbers_of(bytes(builder.Finish())) == {**options, "none": None}


@pytest.mark.parametrize("written", [5, {"x": "text"}, {"x": [1]}, {"x": {"y": 1}}])
def test_anything_else_is_no_map_of_numbers(written) -> None:
    with pytest.raises(Damaged):
        numbers_of(bytes(flexbuffers.Dumps(written)))


def test_damaged_numbers_are_read_or_refused() -> None:
    source = random.Random(8)
    data = bytes(flexbuffers.Dumps({"a": 0.5, "b": 3, "c": 1e30}))
    refused = 0
    for _ in range(2000):
        mutant = bytearray(data)
        mutant[source.randrange(len(mutant))] = source.randrange(256)
        try:
            numbers_of(bytes(mutant))
        except Damaged:
            refused += 1
    assert 0 < refused < 2000
