"""Every operator that the ONNX reader converts against onnxruntime, with random attributes, shapes and quantization.

The campaign draws 400 files of each operator:

    pytest --campaign tests/exact/test_onnx_operators.py
"""

from __future__ import annotations

import numpy as np
import pytest
from executors import assert_all_exact
from onnx_draw import OperatorDraw
from onnx_operators import OPERATORS, UNPROVEN, operator_file
from test_onnx import assert_references_are_onnxruntime

from tinyfuse.compiler import compile_graph
from tinyfuse.frontend.onnx.conversions import KINDS
from tinyfuse.frontend.onnx.graph import file_for_onnxruntime
from tinyfuse.frontend.read_model import read_model
from tinyfuse.options import Options
from tinyfuse.targets import load_target


def assert_exact(kind: str, seeds: range) -> None:
    for seed in seeds:
        data = operator_file(kind, seed)
        if kind in UNPROVEN:
            assert file_for_onnxruntime("model.onnx", data, KINDS).float_sums
        else:
            assert_references_are_onnxruntime(data, f"{kind} {seed}", runs=3)


def test_a_dequantized_value_is_read_by_a_layer_and_in_float32() -> None:
    """The float32 reader in front hid the stored values from the layer, which was refused."""
    d = OperatorDraw("shared")
    name = d.real((1, 6))[0]
    weights = d.w.weights(np.arange(18, dtype=np.int8).reshape(6, 3), np.array(0.01), 1)
    quotient = d.w.node("Div", [name, d.constant((6,))[0]])[0]
    ends = [*d.stored(quotient, (1, 6), 1.0), *d.stored(d.w.node("MatMul", [name, weights])[0], (1, 3), 1.0)]
    assert_references_are_onnxruntime(d.w.model(ends), "shared")


def test_generated_code_is_exact() -> None:
    kinds = ("PRelu", "BatchNormalization", "LayerNormalization", "Resize linear", "Resize nearest", "AveragePool",
             "MatMul of activations", "ConvTranspose", "ReduceMean", "Swish")  # fmt: skip
    options = Options("net", kernels="tinyfuse")
    graphs = [read_model("model.onnx", operator_file(kind, seed)) for kind in kinds for seed in (1, 2)]
    assert_all_exact([compile_graph(graph, load_target("host"), options) for graph in graphs], 3, on_host=True)


def test_products_of_operator_set_21_are_exact_on_every_cpu() -> None:
    """On x86 without VNNI onnxruntime's sums were saturated."""
    assert_exact("MatMul", range(110, 122))


@pytest.mark.parametrize("kind", OPERATORS)
def test_operators_are_onnxruntime(kind: str) -> None:
    assert_exact(kind, range(6))


@pytest.mark.campaign
@pytest.mark.parametrize("kind", OPERATORS)
def test_many_operators_are_onnxruntime(kind: str) -> None:
    assert_exact(kind, range(100, 500))
