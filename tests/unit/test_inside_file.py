"""Files whose constants lie after the flatbuffer: interpreters and joined files get them inside."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_builder import ModelBuilder, Outside

from tinyfuse.frontend.join import with_front_end
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.quantization.float_file import float_file
from tinyfuse.verify.oracle import ReferenceOracle, make_oracle


def dense(rng: np.random.Generator, kind: str = "int8") -> bytes:
    """A dense layer whose weights lie after the flatbuffer."""
    weights = rng.integers(-127, 128, (4, 8)).astype(np.int8)
    weights = weights if kind == "int8" else (weights / 64).astype(np.float32)
    scale = (lambda value: value) if kind == "int8" else (lambda value: None)

    def build(place: Outside) -> bytes:
        model = ModelBuilder()
        x = model.tensor("x", (1, 8), kind, scale(0.5), scale(0))
        w = model.tensor("w", weights.shape, kind, scale(0.02), data=place)
        y = model.tensor("y", (1, 4), kind, scale(0.5), scale(0))
        model.op("FULLY_CONNECTED", [x, w, -1], [y], weights_format="DEFAULT", keep_num_dims=False,
                 fused_activation_function="NONE")  # fmt: skip
        return model.build([x], [y])

    size = weights.nbytes
    start = -(-len(build(Outside(1 << 20, size))) // 16) * 16
    return build(Outside(start, size)).ljust(start, b"\0") + weights.tobytes()


def test_interpreters_read_constants_after_the_flatbuffer() -> None:
    """TFLM reads none that lie there, and computes with whatever its arena holds."""
    pytest.importorskip("tflite_micro")
    rng = np.random.default_rng(0)
    data = dense(rng)
    graph = read_tflite("m.tflite", data)
    inputs = [[rng.integers(-128, 128, (1, 8)).astype(np.int8)] for _ in range(4)]
    found = make_oracle("tflm", data, graph).run_all(inputs)
    for ours, theirs in zip(ReferenceOracle(graph).run_all(inputs), found, strict=True):
        assert np.array_equal(ours[0], theirs[0])


def test_a_front_end_before_constants_after_the_flatbuffer(tmp_path) -> None:
    data, model = dense(np.random.default_rng(1)), ModelBuilder()
    x, y = (model.tensor(name, (1, 8), "int8", 0.5, 0) for name in "ab")
    model.op("RELU", [x], [y])
    (tmp_path / "front.tflite").write_bytes(model.build([x], [y]))
    joined = read_tflite("joined", with_front_end(str(tmp_path / "front.tflite"), "net", data))
    alone = read_tflite("net", data)
    assert np.array_equal(joined.ops[1].operand(1).values, alone.ops[0].operand(1).values)


def test_a_float_model_with_constants_after_the_flatbuffer() -> None:
    data = dense(np.random.default_rng(2), "float32")
    twin = read_tflite("twin", float_file("net", data).data)
    assert np.array_equal(twin.ops[0].operand(1).values, read_tflite("net", data).ops[0].operand(1).values)
