"""Odd-looking files that TensorFlow Lite Micro's interpreter (TFLM) runs: they are compiled exactly or refused with the
true reason, and never called damaged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from cases import NAMED
from cases.common import model_of
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from random_graphs import Sketch
from test_hostile_files import sample
from tflite_builder import ModelBuilder, write_numbers, write_table
from tflite_mutations import patch
from tflite_structure import structural_mutants

from tinyfuse.errors import CompileError
from tinyfuse.frontend.check import check
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir.text import graph_text
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.schedule import plan_graph


class Network:
    """A convolution, or with `dense` a fully connected layer; tests set odd fields of its tensors."""

    def __init__(self, weights: dict | None = None, bias: dict | None = None, dense: bool = False) -> None:
        model, rng = ModelBuilder(), np.random.default_rng(2)
        self.model = model
        self.x = model.tensor("x", (1, 16) if dense else (1, 6, 5, 3), scale=0.5, zero_point=3)
        shape = (3, 16) if dense else (3, 3, 3, 3)
        odd = {"scale": [0.25, 0.5, 0.125], "axis": 0, "data": rng.integers(-128, 128, shape, dtype=np.int8)}
        w = model.tensor("w", shape, **odd | (weights or {}))
        odd = {"scale": [0.125, 0.25, 0.0625], "data": np.array([100, -2000, 30], np.int32)}
        b = model.tensor("b", (3,), "int32", **odd | (bias or {}))
        self.y = model.tensor("y", (1, 3) if dense else (1, 6, 5, 3), scale=60.0, zero_point=-7)
        if dense:
            model.op("FULLY_CONNECTED", [self.x, w, b], [self.y])
        else:
            model.op("CONV_2D", [self.x, w, b], [self.y], padding="SAME", stride_h=1, stride_w=1)

    def build(self, **layout) -> bytes:
        return self.model.build([self.x], [self.y], **layout)


def mul(**layout) -> bytes:
    """A MUL without options; an ADD in its place would be valid, too."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 8), scale=0.5, zero_point=3)
    y = model.tensor("y", (1, 8), scale=20.0, zero_point=1)
    model.op("MUL", [x, x], [y], table=False)
    return model.build([x], [y], **layout)


def longer_than_its_shape() -> bytes:
    weights = np.random.default_rng(2).integers(-128, 128, (3, 3, 3, 3), dtype=np.int8)
    return Network(weights={"data": weights.tobytes() + b"behind"}).build()


def two_quantizations(kind: str, dtype: str, **options) -> bytes:
    """An operator that only moves elements, between tensors of different quantizations."""
    model = ModelBuilder()
    a = model.tensor("a", (1, 4, 3, 2), dtype, scale=0.5, zero_point=0)
    inputs = [a]
    if kind == "CONCATENATION":
        inputs.append(model.tensor("b", (1, 4, 3, 2), dtype, scale=0.25, zero_point=0))
    shape = (1, 4, 6, 2) if kind == "CONCATENATION" else (1, 24)
    y = model.tensor("y", shape, dtype, scale=0.125, zero_point=0)
    model.op(kind, inputs, [y], **options)
    return model.build(inputs, [y])


def requantized_between_layers() -> bytes:
    """A dense layer that reads an image's bytes with another scale and zero point than the convolution wrote."""
    network, rng = Network(), np.random.default_rng(5)
    model = network.model
    flat = model.tensor("flat", (1, 90), scale=0.5, zero_point=11)
    model.op("RESHAPE", [network.y], [flat], new_shape=(1, 90))
    w = model.tensor("dense", (4, 90), scale=0.25, data=rng.integers(-128, 128, (4, 90), dtype=np.int8))
    out = model.tensor("out", (1, 4), scale=30.0, zero_point=2)
    model.op("FULLY_CONNECTED", [flat, w, -1], [out])
    return model.build([network.x], [out])


def shape_from_outside(dtype: str) -> bytes:
    """A RESHAPE whose shape is an input of the model."""
    model = ModelBuilder()
    x, shape = model.tensor("x", (1, 8), scale=0.5), model.tensor("shape", (2,), dtype)
    twice, y = model.tensor("twice", (2,), dtype), model.tensor("y", (2, 4), scale=0.5)
    model.op("ADD", [shape, shape], [twice])
    model.op("RESHAPE", [x, twice], [y])
    z = model.tensor("z", (2, 4), "float32")
    model.op("DEQUANTIZE", [y], [z])
    return model.build([x, shape], [z, twice])


def details(builder) -> int:
    """Quantization details of a type that no reader uses, after scale and zero point."""
    scale, zero_point = write_numbers(builder, [0.25], np.float32), write_numbers(builder, [0], np.int64)
    return write_table(builder, "QuantizationParameters", scale=scale, zero_point=zero_point, details_type=1)


def square_weights(axis: int) -> bytes:
    """Weights [3, 3, 3, 3] whose quantized dimension is a wrong one of equal size."""
    return Network(weights={"axis": axis}).build()


ODD: dict[str, Callable[[], bytes]] = {
    "the new field alone names the operator": lambda: mul(deprecated_codes=False),
    "the new field alone, a convolution": lambda: Network().build(deprecated_codes=False),
    "a bias of quantized_dimension 3": lambda: Network(bias={"axis": 3}).build(),
    "a bias of quantized_dimension -1": lambda: Network(bias={"axis": -1}).build(),
    "a bias of more scales than channels": lambda: Network(bias={"scale": [1.0] * 5}).build(),
    "a bias without scales": lambda: Network(bias={"scale": None}).build(),
    "a dense bias of quantized_dimension 3": lambda: Network(bias={"axis": 3}, dense=True).build(),
    "weights of another dimension as long": lambda: square_weights(2),
    "one zero point for all scales": lambda: Network(weights={"zero_point": [0]}).build(),
    "too many zero points": lambda: Network(weights={"zero_point": [0] * 4}).build(),
    "a filter of zeros with scale 0": lambda: Network(
        weights={"scale": [0.25, 0.0, 0.5]}, bias={"scale": [0.125, 0.0, 0.25]}
    ).build(),
    "a dense filter of zeros with scale 0": lambda: Network(weights={"scale": [0.25, 0.0, 0.5]}, dense=True).build(),
    "quantization details that nobody reads": lambda: Network(weights={"quantization": details}).build(),
    "more data than the shape needs": longer_than_its_shape,
    "RESHAPE between quantizations": lambda: two_quantizations("RESHAPE", "int8", new_shape=(1, 24)),
    "RESHAPE between quantizations, and layers round it": requantized_between_layers,
    "RESHAPE to a shape that comes from outside": lambda: shape_from_outside("int32"),
    "RESHAPE to a shape of floats": lambda: shape_from_outside("float32"),
    "CONCATENATION of int32 with scales": lambda: two_quantizations("CONCATENATION", "int32", axis=2),
    "CONCATENATION of int16 with scales": lambda: two_quantizations("CONCATENATION", "int16", axis=2),
    "a type of options that RESHAPE never had": lambda: patch(
        two_quantizations("RESHAPE", "int8", new_shape=(1, 24)),
        {"Model.subgraphs[0].operators[0].builtin_options_type": 5},
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_the_reference_of_odd_files_is_tflm(name: str) -> None:
    assert_reference_is_tflm(ODD[name]())


def test_odd_files_are_compiled_exactly() -> None:
    assert_all_exact([plan_of(make(), fusion=fusion) for make in ODD.values() for fusion in ("none", "rows")])


def test_the_new_field_names_the_operator() -> None:
    assert read_tflite("m", mul(deprecated_codes=False)).ops[0].kind == "MUL"


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_misaligned_files_are_read(shift: int) -> None:
    """Only C needs alignment. The root moves with the rest, after bytes that nobody reads."""
    data = Network().build()
    root = int.from_bytes(data[:4], "little")
    moved = (root + shift).to_bytes(4, "little") + data[4:8] + bytes(shift) + data[8:]
    graph, other = read_tflite("m", data), read_tflite("m", moved)
    assert graph_text(graph) == graph_text(other)
    np.testing.assert_array_equal(graph.ops[0].inputs[1].data, other.ops[0].inputs[1].data)


def test_large_files_are_not_called_damaged() -> None:
    """A sound model of more constants than are read, and of one tensor that is larger."""
    for shape, count in (((1 << 22,), 9), ((9 << 22,), 1)):
        model = ModelBuilder()
        x, y = model.tensor("x", shape), model.tensor("y", shape)
        data = np.zeros(shape, np.int8)
        constants = [model.tensor("c", shape, data=data) for _ in range(count)]
        model.op("ADD_N", [x, *constants], [y])
        with pytest.raises(CompileError, match="make it smaller") as caught:
            read_tflite("m", model.build([x], [y]))
        assert "damaged" not in str(caught.value)


def test_rows_beyond_16_bits_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audio: one column, more rows than any 16-bit number counts, and than were once allowed together. A plan is checked
    call by call, thousands a second: that of fewer calls, over as many rows of input."""

    def layer(stride: int) -> bytes:
        sketch = Sketch(4)
        x = sketch.value((1, 66_000, 1, 1))
        return sketch.build([x], [sketch.conv(x, 2, (9, 1), (stride, 1))])

    assert_reference_is_tflm(layer(2), runs=1)
    checked = plan_of(layer(32))
    monkeypatch.setattr(plan_graph, "verify_plan", lambda plan: None)
    assert_all_exact([checked, plan_of(layer(2))], runs=1)


# --- whatever the interpreter runs is not damaged ----------------------------------------------

_TFLM = """
import json, sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime
interpreter = runtime.Interpreter.from_bytes(open(sys.argv[1], "rb").read(), arena_size=1 << 22)
interpreter.invoke()
interpreter.get_output(0)
"""


def tflm_runs(data: bytes, folder: Path) -> bool:
    """Tells whether TFLM runs the file. Uses a process of its own, because TFLM may crash."""
    path = folder / "m.tflite"
    path.write_bytes(data)
    done = subprocess.run([sys.executable, "-c", _TFLM, path], capture_output=True, timeout=60)
    return done.returncode == 0


def reasons(data: bytes) -> CompileError | None:
    try:
        check(fold_constants(read_tflite("m", data)))
    except CompileError as error:
        return error
    return None


def test_no_mutant_that_tflm_runs_is_called_damaged(tmp_path: Path) -> None:
    """Sound FlatBuffers that say odd things: of those that are refused as damaged, TFLM runs none.

    TFLM does not check the place of data, and reads what lies behind the file; nor the types of custom options.
    """
    pytest.importorskip("tflite_micro")
    pytest.importorskip("ai_edge_litert")
    starts = [sample(), Network().build(), Network(dense=True).build(), mul()]
    starts += [model_of(op) for cases in NAMED.values() for op in islice(cases.values(), 1)]
    damaged = refused = 0
    for number, data in enumerate(starts):
        for mutant in islice(structural_mutants(data, 77 + number), 12):
            error = reasons(mutant)
            refused += error is not None
            unchecked = ("lies outside the file", "its options")
            if error is not None and "damaged" in str(error) and not any(text in str(error) for text in unchecked):
                damaged += 1
                assert not tflm_runs(mutant, tmp_path), str(error)
    assert refused > 50
