"""Files that leave the batch open, as `TFLiteConverter.from_keras_model` writes them: shapes that follow from it are 1 in
the file, or computed by operators. TFLM runs none of these models as they are; LiteRT, which resizes tensors, does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from core_rotation import on_one_core
from executors import assert_all_exact, assert_exact, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops import graph_macs
from tinyfuse.rewrite.fold_constants import fold_constants, model_macs
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import InterpreterOracle, PiecesOracle, make_oracle

_QUANT = {"int8": {"scale": 0.1, "zero_point": 0}, "float32": {}}


class OpenModel(ModelBuilder):
    """A builder for files with open dimensions: their size in the file is 1."""

    def __init__(self, dtype: str) -> None:
        super().__init__()
        self.dtype, self._random = dtype, np.random.default_rng(1)

    def open(self, name: str, shape: Sequence[int]) -> int:
        """Adds an activation; -1 is an open dimension."""
        known = tuple(1 if dim == -1 else dim for dim in shape)
        return self.tensor(name, known, self.dtype, shape_signature=shape, **_QUANT[self.dtype])

    def numbers(self, name: str, values: object, dtype: str = "int32") -> int:
        data = np.array(values, dtype)
        return self.tensor(name, data.shape, dtype, data=data)

    def weights(self, shape: Sequence[int]) -> list[int]:
        """Adds weights and biases of a layer."""
        if self.dtype == "int8":
            data, bias = (self._random.integers(-127, 128, n, dt) for n, dt in ((shape, np.int8), (shape[0], np.int32)))
            return [
                self.tensor("w", shape, "int8", 0.01, 0, data=data),
                self.tensor("b", shape[:1], "int32", np.float32(0.1) * np.float32(0.01), 0, data=bias),
            ]
        arrays = (self._random.normal(size=n).astype(np.float32) for n in (shape, shape[:1]))
        return [self.tensor("layer", data.shape, "float32", data=data) for data in arrays]

    def shape_of(self, x: int, rank: int) -> int:
        found = self.tensor("shape", (rank,), "int32")
        self.op("SHAPE", [x], [found], out_type="INT32")
        return found

    def picked(self, shape: int, indexes: Sequence[int]) -> int:
        found = self.tensor("picked", (len(indexes),), "int32")
        self.op("GATHER", [shape, self.numbers("which", indexes)], [found])
        return found

    def product(self, numbers: int) -> int:
        found = self.tensor("product", (), "int32")
        self.op("REDUCE_PROD", [numbers, self.numbers("axis", [0])], [found])
        return found


def dilated_image(dtype: str) -> bytes:
    """A dilated 3x3 convolution as converters write it, with SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    m = OpenModel(dtype)
    x, split = m.open("x", (-1, 9, 7, 3)), m.open("split", (-1, 7, 6, 3))
    summed, y = m.open("summed", (-1, 5, 4, 4)), m.open("y", (-1, 9, 7, 4))
    block = m.numbers("block", [2, 2])
    m.op("SPACE_TO_BATCH_ND", [x, block, m.numbers("around", [[2, 3], [2, 3]])], [split])
    m.op("CONV_2D", [split, *m.weights((4, 3, 3, 3))], [summed], padding="VALID", stride_w=1, stride_h=1)
    m.op("BATCH_TO_SPACE_ND", [summed, block, m.numbers("crops", [[0, 1], [0, 1]])], [y])
    return m.build([x], [y])


def dilated_sequence(dtype: str) -> bytes:
    """A dilated convolution over time, as Conv1D is written."""
    m = OpenModel(dtype)
    x, split, image = m.open("x", (-1, 12, 3)), m.open("split", (-1, 4, 3)), m.open("image", (-1, 1, 4, 3))
    summed, line, y = m.open("summed", (-1, 1, 2, 4)), m.open("line", (-1, 2, 4)), m.open("y", (-1, 6, 4))
    block = m.numbers("block", [3])
    m.op("SPACE_TO_BATCH_ND", [x, block, m.numbers("around", [[0, 0]])], [split])
    m.op("EXPAND_DIMS", [split, m.numbers("axis", 1)], [image])
    m.op("CONV_2D", [image, *m.weights((4, 1, 3, 3))], [summed], padding="VALID", stride_w=1, stride_h=1)
    m.op("SQUEEZE", [summed], [line], squeeze_dims=[1])
    m.op("BATCH_TO_SPACE_ND", [line, block, m.numbers("crops", [[0, 0]])], [y])
    return m.build([x], [y])


def dense_of_steps(dtype: str) -> bytes:
    """A dense layer on every step of a sequence, as Tensordot is written: shapes are products of other shapes."""
    m = OpenModel(dtype)
    x, flat, dense = m.open("x", (-1, 5, 6)), m.open("flat", (-1, -1)), m.open("dense", (-1, 4))
    y, shape = m.open("y", (-1, 5, 4)), m.shape_of(x, 3)
    kept, summed = m.picked(shape, [0, 1]), m.picked(shape, [2])
    two, after = m.tensor("two", (2,), "int32"), m.tensor("after", (3,), "int32")
    m.op("PACK", [m.product(kept), m.product(summed)], [two], values_count=2)
    m.op("CONCATENATION", [kept, m.numbers("outputs", [4])], [after])
    m.op("RESHAPE", [x, two], [flat])
    m.op("FULLY_CONNECTED", [flat, *m.weights((4, 6))], [dense])
    m.op("RESHAPE", [dense, after], [y])
    return m.build([x], [y])


def twice_as_wide(dtype: str) -> bytes:
    """Repeats every column, as upsampling in Keras 3, before a layer."""
    m = OpenModel(dtype)
    x, apart, twice = m.open("x", (-1, 4, 3, 2)), m.open("apart", (-1, 4, 3, 1, 2)), m.open("twice", (-1, 4, 3, 2, 2))
    wide, y, shape = m.open("wide", (-1, -1, 6, 2)), m.open("y", (-1, 4, 6, 3)), m.shape_of(x, 4)
    rows, after = m.tensor("rows", (2,), "int32"), m.tensor("after", (4,), "int32")
    m.op("EXPAND_DIMS", [x, m.numbers("axis", 3)], [apart])
    m.op("TILE", [apart, m.numbers("times", [1, 1, 1, 2, 1])], [twice])
    begin, end, stride = (m.numbers(name, values) for name, values in (("b", [0]), ("e", [2]), ("s", [1])))
    m.op("STRIDED_SLICE", [shape, begin, end, stride], [rows])
    m.op("CONCATENATION", [rows, m.numbers("wide", [6, 2])], [after])
    m.op("RESHAPE", [twice, after], [wide])
    m.op("CONV_2D", [wide, *m.weights((3, 1, 1, 2))], [y], padding="VALID", stride_w=1, stride_h=1)
    return m.build([x], [y])


def first_state(dtype: str) -> bytes:
    """A state filled with one number, with one row for each image of the batch."""
    m = OpenModel(dtype)
    x, state, y = m.open("x", (-1, 6)), m.open("state", (-1, 6)), m.open("y", (-1, 6))
    after = m.tensor("after", (2,), "int32")
    m.op("CONCATENATION", [m.picked(m.shape_of(x, 2), [0]), m.numbers("units", [6])], [after])
    one = np.array(5, dtype)
    m.op("FILL", [after, m.tensor("one", (), dtype, data=one, **_QUANT[dtype])], [state])
    m.op("ADD", [x, state], [y])
    return m.build([x], [y])


def masked(dtype: str) -> bytes:
    """A causal attention mask with a computed shape."""
    m = OpenModel(dtype)
    x, y, shape = m.open("x", (-1, 4, 6)), m.open("y", (-1, 4, 6)), m.tensor("mask", (1, 4, 6), "bool")
    m.op("FILL", [m.shape_of(x, 3), m.numbers("true", True, "bool")], [shape])
    m.op("SELECT_V2", [shape, x, m.tensor("least", (), dtype, data=np.array(-99, dtype), **_QUANT[dtype])], [y])
    return m.build([x], [y])


MODELS = (dilated_image, dilated_sequence, dense_of_steps, twice_as_wide, first_state, masked)
Maker = Callable[[str], bytes]


@pytest.mark.parametrize("model", MODELS)
def test_shapes_are_those_of_litert(model: Maker) -> None:
    """LiteRT's results for the original file equal TFLM's for the file with our shapes."""
    data = model("float32")
    graph = read_tflite("m.tflite", data)
    inputs, litert = input_set(graph, 3, 0), make_oracle("litert", data, graph)
    ours = make_oracle("reference" if model is twice_as_wide else "tflm", data, graph)  # TFLM has no TILE
    for wanted, found in zip(litert.run_all(inputs), ours.run_all(inputs), strict=True):
        np.testing.assert_array_equal(wanted[0], found[0])


@on_one_core(host=True)
def test_modules_are_exact(target: str) -> None:
    datas = [model(dtype) for model in MODELS for dtype in ("int8", "float32")]
    for data in datas:
        graph = read_tflite("m.tflite", data)
        inputs, oracle = input_set(graph, 3, 0), make_oracle("auto", data, graph)
        assert isinstance(oracle, InterpreterOracle | PiecesOracle)
        references = make_oracle("reference", data, graph).run_all(inputs)
        for wanted, found in zip(oracle.run_all(inputs), references, strict=True):
            np.testing.assert_array_equal(wanted[0], found[0])
    assert_all_exact([plan_of(data, target, kernels="tinyfuse") for data in datas])


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("model", [dilated_image, dilated_sequence])
def test_dilated_convolutions_are_put_together(model: Maker, dtype: str) -> None:
    plan = plan_of(model(dtype))
    assert not {op.kind for op in plan.graph.ops} & {"SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"}


def test_nothing_is_left_of_computed_shapes() -> None:
    folded = fold_constants(read_tflite("m.tflite", dense_of_steps("int8")))
    assert [op.kind for op in folded.ops] == ["RESHAPE", "FULLY_CONNECTED", "RESHAPE"]
    assert [op.output.shape for op in folded.ops] == [(5, 6), (5, 4), (1, 5, 4)]


def _tile(times: Sequence[int]) -> bytes:
    m = OpenModel("int8")
    x, y, z = m.open("x", (-1, 4)), m.open("y", (-1, 4)), m.open("z", (-1, 4))
    m.op("TILE", [x, m.numbers("times", times)], [y])
    m.op("RELU", [y], [z])
    return m.build([x], [z])


@pytest.mark.parametrize("times", [(0, 1), (-1, 1), (1 << 30, 1), (1, 1, 1)])
def test_shapes_that_no_tensor_has_are_the_files(times: Sequence[int]) -> None:
    """... so that the operator's own rule tells what is wrong with it."""
    with pytest.raises(CompileError, match="TILE"):
        plan_of(_tile(times))


def test_an_output_of_another_shape_than_the_files_is_refused() -> None:
    with pytest.raises(CompileError, match=r"which is \[3, 4\] and not what it says .*batch of 1"):
        plan_of(_tile((3, 1)))


def _padded(zero_point: int) -> bytes:
    m = ModelBuilder()
    x, y = (m.tensor(name, shape, "int8", 0.1, zero_point) for name, shape in (("x", (1, 4, 3)), ("y", (2, 3, 3))))
    operands = [m.tensor(n, np.shape(v), "int32", data=np.array(v, np.int32)) for n, v in (("b", [2]), ("p", [[1, 1]]))]
    m.op("SPACE_TO_BATCH_ND", [x, *operands], [y])
    return m.build([x], [y])


def test_a_padding_that_is_no_zero_is_told() -> None:
    (warning,) = plan_of(_padded(-5)).warnings
    assert "the zero point is -5" in warning and "convert the model with a batch of 1" in warning
    assert plan_of(_padded(0)).warnings == ()


def _gelu() -> bytes:
    m = OpenModel("int8")
    x, y, z = m.open("x", (-1, 8)), m.open("y", (-1, 64)), m.open("z", (-1, 64))
    m.op("FULLY_CONNECTED", [x, *m.weights((64, 8))], [y])
    m.op("GELU", [y], [z])
    return m.build([x], [z])


def test_tflm_computes_all_that_it_has() -> None:
    """LiteRT rounds dense layers once, so alone it would find a module wrong that is right."""
    data = _gelu()
    graph = read_tflite("m.tflite", data)
    oracle, inputs = make_oracle("auto", data, graph), input_set(graph, 40, 0)
    assert (oracle.name, type(oracle)) == (
        "tflm",
        PiecesOracle,
    ) and "TFLM lacks, compared with litert: GELU" in oracle.warnings[0]
    found, litert = (make.run_all(inputs) for make in (oracle, make_oracle("litert", data, graph)))
    assert any((a != b).any() for (a,), (b,) in zip(found, litert, strict=True))
    for (wanted,), (ours,) in zip(found, make_oracle("reference", data, graph).run_all(inputs), strict=True):
        np.testing.assert_array_equal(wanted, ours)
    assert_exact(plan_of(data))


def test_multiply_accumulates_are_those_of_the_shapes_that_run() -> None:
    """Nothing is computed again: the model's own count is that of its closed shapes, as the plan's is."""
    for dtype in _QUANT:
        plan = plan_of(dilated_image(dtype), fusion="none")
        assert plan.macs == model_macs(plan.source) > graph_macs(plan.source)
