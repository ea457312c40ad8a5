"""Kernels for cores without the DSP extension that have the weights of two channels in a word, on the host under
sanitizers and on emulated cores."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_cases import FAMILIES, Shape, make_op, random_input
from op_harness import Case, assert_exact
from overlaps import covered_inputs
from test_conv_kernels import HARD_FLAGS, case_of, few, skip_without, takes_rings

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.layers.int8_dsp.lanes import BYTES, BYTES_SINGLE_ROUNDING, matmul_layer
from tinyfuse.kernels.layers.int8_no_dsp.paired_weights import pair_weights, pairs_fit
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.targets import Target, load_target

#: sums of 1, 4, 9, 15, 16, 17, 18 and 32 steps of four inputs, four of which are an iteration of the loop; one pixel, odd
#: and even counts
SHAPES = (
    Shape("CONV_2D", 1, 1, 4, 2), Shape("CONV_2D", 3, 5, 3, 3, (3, 4)), Shape("CONV_2D", 3, 3, 60, 5), Shape("CONV_2D", 4, 4, 64, 2),
    Shape("CONV_2D", 5, 2, 68, 8), Shape("CONV_2D", 4, 5, 8, 6, (3, 3), (2, 2)), Shape("CONV_2D", 1, 5, 128, 4, activation="RELU6"),
    Shape("CONV_2D", 4, 7, 1, 4, (4, 4)), Shape("FULLY_CONNECTED", 1, 1, 8, 4), Shape("FULLY_CONNECTED", 2, 1, 61, 4),
    Shape("DEPTHWISE_CONV_2D", 5, 6, 5, 5, (3, 3)), Shape("DEPTHWISE_CONV_2D", 7, 5, 8, 8, (3, 3), (2, 2)), Shape("DEPTHWISE_CONV_2D", 9, 1, 3, 3, (3, 1)),
    Shape("DEPTHWISE_CONV_2D", 6, 3, 9, 9, (5, 2)), Shape("DEPTHWISE_CONV_2D", 9, 4, 4, 4, (4, 4), padding="VALID"),
    Shape("DEPTHWISE_CONV_2D", 3, 7, 2, 2, (1, 1), (1, 2), activation="RELU6"), Shape("DEPTHWISE_CONV_2D", 4, 2, 8, 8, (2, 1), padding=(2, 4, 0, 0)),
    Shape("DEPTHWISE_CONV_2D", 3, 9, 2, 2, (3, 5), (1, 3)), Shape("FULLY_CONNECTED", 1, 1, 64, 9, per_channel=False), Shape("FULLY_CONNECTED", 3, 1, 70, 8, activation="RELU6"),
)  # fmt: skip


def with_zero_point(op: Op, zero_point: int) -> Op:
    return replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,))),))


def with_large_weights(op: Op, rng: np.random.Generator) -> Op:
    """The layer with weights for which the lower half of a paired product is as large as possible."""
    data = rng.choice(np.array([-127, 127], np.int8), op.operand(1).shape)
    if not FAMILIES[op.kind].depthwise:
        data.reshape(len(data), -1)[:, ::2] -= data.reshape(len(data), -1)[:, ::2] < 0  # -128
    return replace(op, inputs=(op.input, replace(op.inputs[1], data=data), *op.inputs[2:]))


def paired_cases(target: Target) -> list[Case]:
    """Layers in both forms: largest weights, multipliers far apart, large biases, constant channels; whole, by rows,
    from rings, output over input."""
    rng = np.random.default_rng(9)
    context = Context(target, kernels="tinyfuse", weights="unpacked")
    cases: list[Case] = []
    for shape in SHAPES:
        plain, apart = make_op(shape, rng), make_op(shape, np.random.default_rng(10), extreme=True)
        both_signs = with_zero_point(plain, 3), with_zero_point(apart, 3)
        for op in (with_zero_point(plain, -128), *both_signs, with_large_weights(plain, rng)):
            for kernel in kernels_for(op):
                if "_paired_" in kernel.name and kernel.accepts(op, context):
                    for extreme in (False, True):
                        data, ring = random_input(op, rng, extreme), extreme and takes_rings(kernel, op)
                        cases.append(case_of(op, kernel, data, ring, int(extreme)))
                        cases += [case_of(op, kernel, data, over=True)] * (
                            not ring and 0 in covered_inputs(op, kernel, not kernel.whole)
                        )
    return cases


@pytest.mark.parametrize("target", ("host", "cortex-m0plus", "cortex-m3"))
def test_paired_weights(target: str, tmp_path: Path) -> None:
    if shutil.which("gcc" if target == "host" else "qemu-system-arm") is None:
        pytest.skip("needs gcc" if target == "host" else "needs qemu-system-arm")
    core = load_target(target)
    cases, context, rng = paired_cases(core), Context(core), np.random.default_rng(0)
    names = {case.kernel.name for case in cases}
    matmuls = {f"tinyfuse_{kind}_s8" for kind in ("conv_paired_row", "pointwise_paired", "dense_paired")}
    assert names == {*matmuls, "tinyfuse_depthwise_paired_row_s8"}
    forms = {(case.kernel.name, matmul_layer(case.op, context).form) for case in cases if case.kernel.name in matmuls}
    assert forms == {(name, form) for name in matmuls for form in (BYTES, BYTES_SINGLE_ROUNDING)}
    assert {case.op.operand(1).shape for case in cases} == {make_op(s, rng).operand(1).shape for s in SHAPES}
    assert_exact(cases, core, tmp_path, weights="unpacked")


@pytest.mark.parametrize("target", ("cortex-m0plus", "cortex-m3"))
@pytest.mark.parametrize(("compiler", "flags"), HARD_FLAGS)
def test_assembly_is_exact_with_any_flags(
    compiler: str, flags: str, target: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    skip_without(compiler)
    core = load_target(target)
    assert_exact(few(paired_cases(core), flags, pytestconfig), core, tmp_path, flags, compiler, weights="unpacked")


def test_what_joins() -> None:
    """Two weights of -128 side by side would not be told apart."""
    weights = np.array([[-128, -127, 127, -128], [3, -4, 5, 6]], np.int8)
    assert pairs_fit(weights)
    assert pair_weights(weights[None]).tolist() == [
        [-128 + 65536 * 3, -127 - 65536 * 4, 127 + 65536 * 5, -128 + 65536 * 6]
    ]
    assert not pairs_fit(np.array([[-128, -128], [1, 1]], np.int8))
    assert pairs_fit(np.array([[1, -128, -128, 1]], np.int8))
