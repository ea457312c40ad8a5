"""Networks of known families, exact from TFLM's interpreter to the emulated core."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from core_rotation import share_of_core
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from known_architectures import FAMILIES
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle


@pytest.mark.parametrize("name", FAMILIES)
def test_references_equal_tflm(name: str) -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(FAMILIES[name]())


@pytest.mark.parametrize("name", FAMILIES)
def test_outputs_follow_the_inputs(name: str) -> None:
    """Without this the other tests would prove nothing."""
    graph = read_tflite("model.tflite", FAMILIES[name]())
    runs = ReferenceOracle(graph).run_all(input_set(graph, 8, seed=0))
    for values in zip(*runs, strict=True):
        assert len(np.unique(values)) >= 5


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
def test_generated_code_is_exact(target: str, pytestconfig: pytest.Config) -> None:
    if target != "host" and not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    mine = share_of_core(target, [*FAMILIES.values()], pytestconfig)
    assert_all_exact([plan_of(make(), target, kernels="tinyfuse") for make in mine], runs=4)


def test_the_output_shape_of_a_transposed_convolution_may_be_computed() -> None:
    """TFLM never looks at it: models of SEANet bring it as an input."""
    model = ModelBuilder()
    shape = model.tensor("shape", (4,), "int32")
    x = model.tensor("x", (1, 3, 4, 2), scale=0.5, zero_point=3)
    y = model.tensor("y", (1, 6, 4, 3), scale=9.0, zero_point=-5)
    weights = np.random.default_rng(5).integers(-127, 128, (3, 2, 1, 2)).astype(np.int8)
    w = model.tensor("w", weights.shape, scale=0.1, data=weights)
    model.op("TRANSPOSE_CONV", [shape, w, x], [y], padding="SAME", stride_h=2, stride_w=1)
    data = model.build([shape, x], [y])
    assert_reference_is_tflm(data)
    assert_exact(plan_of(data))
