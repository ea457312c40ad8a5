"""TFLM_DECODE: what is decoded when a model is compiled, against TFLM's interpreter; damaged tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from decode_encoders import (
    CASES,
    Encoded,
    add_decode,
    compression_metadata,
    decode_op,
    header,
    huffman,
    looked_up,
    pruned,
)
from executors import assert_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Quant
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import Problem
from tinyfuse.rewrite.fold_constants import fold_constants


def decoded_by_tflm(*encoded: Encoded) -> list[np.ndarray]:
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    model = ModelBuilder()
    x, y = model.tensor("x", (1,), scale=0.5, zero_point=0), model.tensor("y", (1,), scale=0.5, zero_point=0)
    outputs = add_decode(model, *encoded)
    model.op("RELU", [x], [y])
    interpreter = runtime.Interpreter.from_bytes(model.build([x], [*outputs, y]), arena_size=1 << 18)
    interpreter.set_input(np.zeros(1, np.int8), 0)
    interpreter.invoke()
    return [interpreter.get_output(i) for i in range(len(encoded))]


def decoded(*encoded: Encoded) -> list[np.ndarray]:
    op = decode_op(*encoded)
    assert [rule.problem(op) for rule in FAMILIES[op.kind].rules if rule.problem(op)] == []
    return list(FAMILIES[op.kind].reference(op, *(t.data for t in op.inputs)))


@pytest.mark.parametrize("name", CASES)
def test_decoded_as_tflm_does(name: str) -> None:
    (ours,), (tflms,) = decoded(CASES[name]), decoded_by_tflm(CASES[name])
    assert ours.dtype == CASES[name].values.dtype
    np.testing.assert_array_equal(ours, CASES[name].values)
    np.testing.assert_array_equal(ours.view(np.uint8), tflms.view(np.uint8))


def test_several_outputs() -> None:
    encoded = [CASES[name] for name in ("lookup, 3 bits", "pruned", "huffman, int16")]
    for ours, tflms in zip(decoded(*encoded), decoded_by_tflm(*encoded), strict=True):
        np.testing.assert_array_equal(ours, tflms)


# --- networks --------------------------------------------------------------------------------


def network() -> bytes:
    """A convolution with look-up-encoded filters and pruned biases, and a layer with Huffman codes."""
    rng = np.random.default_rng(1)
    model = ModelBuilder()
    x = model.tensor("x", (1, 6, 5, 4), scale=0.05, zero_point=3)
    scales = Quant(tuple(float(np.float32(s)) for s in rng.uniform(0.005, 0.02, 8)), (0,) * 8, 0)
    filters = looked_up(rng.choice(np.array([-90, -40, 0, 25, 70], np.int8), (8, 3, 3, 4)), 3, scales)
    biases = pruned(rng.choice(np.array([0, 0, 500, -900], np.int32), (8,)))
    w, b = add_decode(model, filters, biases)
    y = model.tensor("y", (1, 4, 3, 8), scale=0.3, zero_point=-20)
    model.op("CONV_2D", [x, w, b], [y], padding="VALID", stride_h=1, stride_w=1)
    layer = huffman(rng.choice(np.arange(-60, 61, 15, dtype=np.int8), (5, 96)), 3, wide=False)
    (v,) = add_decode(model, replace(layer, quant=Quant((0.01,), (0,))))
    z = model.tensor("z", (1, 5), scale=0.9, zero_point=5)
    model.op("FULLY_CONNECTED", [y, v, -1], [z])
    return model.build([x], [z])


def test_a_network_of_decoded_weights_is_exact() -> None:
    data = network()
    folded = fold_constants(read_tflite("m.tflite", data))
    assert [op.kind for op in folded.ops] == ["CONV_2D", "FULLY_CONNECTED"]
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(data)
    assert_exact(plan_of(data))


# --- the older form --------------------------------------------------------------------------


def old_network(
    bits: int = 3, cut: int = 0, beyond: bool = False, damage: int | None = None, version: int = 1
) -> bytes:
    """A depthwise convolution, an int8 one, and a fully connected layer whose look-up tables are in the metadata."""
    rng = np.random.default_rng(2)
    model, compressed, buffers = ModelBuilder(), [], 0

    def constant(encoded: Encoded) -> int:
        nonlocal buffers
        quant = (encoded.quant.scale, encoded.quant.zero_point, encoded.quant.axis)
        indexes = encoded.data[: len(encoded.data) - cut] if not compressed else encoded.data
        tensor = model.tensor("w", encoded.values.shape, str(encoded.values.dtype), *quant, data=indexes)
        values = np.frombuffer(encoded.ancillary[16:], np.uint8)
        model.tensor("values", values.shape, "uint8", data=values)
        buffers += 2
        compressed.append((tensor, buffers if not beyond else 99, encoded.ancillary[5]))
        return tensor

    def weights(shape: tuple[int, ...], axis: int | None) -> int:
        channels = 1 if axis is None else shape[axis]
        scales = tuple(float(np.float32(s)) for s in rng.uniform(0.005, 0.02, channels))
        values = rng.choice(np.array([-90, -40, 0, 25, 70], np.int8), shape)
        return constant(looked_up(values, bits, Quant(scales, (0,) * channels, axis or 0)))

    x = model.tensor("x", (1, 6, 5, 4), scale=0.05, zero_point=3)
    y = model.tensor("y", (1, 6, 5, 4), scale=0.1, zero_point=-20)
    depthwise = weights((1, 3, 3, 4), 3)
    bias = model.tensor("b", (4,), "int32", [0.001] * 4, data=np.array([50, -80, 0, 9], np.int32))
    buffers += 1
    model.op("DEPTHWISE_CONV_2D", [x, depthwise, bias], [y], padding="SAME", stride_h=1, stride_w=1, depth_multiplier=1)
    z = model.tensor("z", (1, 4, 3, 8), scale=0.3, zero_point=-20)
    model.op("CONV_2D", [y, weights((8, 3, 3, 4), 0), -1], [z], padding="VALID", stride_h=1, stride_w=1)
    out = model.tensor("out", (1, 5), scale=2.0, zero_point=5)
    model.op("FULLY_CONNECTED", [z, weights((5, 96), None), -1], [out])
    metadata = bytearray(compression_metadata(compressed, version))
    if damage is not None:
        metadata[damage] = 0xEE
    return model.build([x], [out], metadata={"COMPRESSION_METADATA": bytes(metadata)})


@pytest.mark.parametrize("bits", [3, 4, 6])
def test_constants_compressed_by_metadata(bits: int) -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(old_network(bits))
    assert_exact(plan_of(old_network(bits)))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cut": 1}, "an index lies beyond the data or their table"),
        ({"beyond": True}, "buffers beyond the file's"),
        ({"damage": 0}, "damaged metadata of compression"),
        ({"version": 2}, "its version is later than 1"),
    ],
)
def test_damaged_compression_is_told(how: dict[str, int], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        read_tflite("m.tflite", old_network(**how))


# --- damaged tables --------------------------------------------------------------------------


def _lookup() -> Encoded:
    return CASES["lookup, 4 bits"]


def _codes() -> Encoded:
    return CASES["huffman, tables behind tables"]


def _patched(encoded: Encoded, at: int, value: int) -> Encoded:
    ancillary = bytearray(encoded.ancillary)
    ancillary[at] = value
    return replace(encoded, ancillary=bytes(ancillary))


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (_patched(_lookup(), 0, 3), "is encoded by"),
        (_patched(_lookup(), 0, 127), "is encoded by"),
        (_patched(_lookup(), 1, 2), "says version 1"),
        (_patched(_lookup(), 4, 0), "says version 1"),
        (replace(_lookup(), ancillary=_lookup().ancillary[:15]), "a header of 16 bytes"),
        (_patched(_lookup(), 5, 0), "lie within"),
        (_patched(_lookup(), 5, 7), "lie within"),
        (replace(_lookup(), ancillary=_lookup().ancillary[:-1]), "lie within"),
        (replace(_lookup(), data=_lookup().data[:-1]), "lie within"),
        (replace(_lookup(), quant=Quant((0.5,) * 5, (0,) * 5, 0)), "first or last dimension"),
        (replace(CASES["lookup, a table a channel"], quant=Quant((0.5,) * 5, (0,) * 5, 1)), "first or last dimension"),
        (_patched(CASES["lookup, a table a channel"], 6, 255), "lie within"),
        (_patched(CASES["lookup, bool"], 17, 2), "lie within"),
        (replace(CASES["pruned"], data=CASES["pruned"].data[:-1]), "lie within"),
        (replace(CASES["pruned"], ancillary=CASES["pruned"].ancillary[:-1]), "lie within"),
        (replace(CASES["pruned, int16"], quant=Quant((0.5,), (3,))), "zero points of pruned values"),
        (replace(_codes(), data=_codes().data[:-4]), "lie within"),
        (replace(_codes(), ancillary=_codes().ancillary[:-2]), "lie within"),
        (_patched(CASES["huffman, int16"], 5, 0x30), "is encoded by"),
        (replace(_codes(), ancillary=header(1, 0x70) + bytes(512)), "lie within"),  # never a symbol
        (replace(_codes(), ancillary=header(1, 0x70) + bytes([0, 0x80]) * 256), "lie within"),  # symbols of no bits
    ],
)  # fmt: skip
def test_damaged_tables_are_told(encoded: Encoded, message: str) -> None:
    model = ModelBuilder()
    x, y = model.tensor("x", (1,), scale=0.5, zero_point=0), model.tensor("y", (1,), scale=0.5, zero_point=0)
    add_decode(model, encoded)
    model.op("RELU", [x], [y])
    with pytest.raises(CompileError) as caught:
        plan_of(model.build([x], [y]))
    (problem,) = caught.value.problems
    assert message in problem.message and "TFLM_DECODE" in problem.operator


def test_mutated_tables_end_in_a_result_or_a_rule() -> None:
    rng = np.random.default_rng(5)
    outcomes = set()
    for name in ("lookup, channels last", "huffman, 16-bit tables", "huffman, int16", "pruned, a zero point a channel"):
        for _ in range(60):
            encoded = CASES[name]
            for _ in range(int(rng.integers(1, 4))):
                encoded = _patched(encoded, int(rng.integers(len(encoded.ancillary))), int(rng.integers(256)))
            op = decode_op(encoded)
            problem = next(filter(None, (rule.problem(op) for rule in FAMILIES[op.kind].rules)), None)
            outcomes.add(isinstance(problem, Problem))
            if problem is None:
                assert FAMILIES[op.kind].reference(op, *(t.data for t in op.inputs))[0].shape == encoded.values.shape
    assert outcomes == {True, False}
